"""One raw scalar to its declared type (config.md section 1.2).  Raises Unusable, which never holds the value."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from nerve.config.findings import Unusable

_TRUE = frozenset({"true", "1", "yes", "on", "y", "t"})
_FALSE = frozenset({"false", "0", "no", "off", "n", "f"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def boolean(raw: object, *, empty: bool | None = False) -> bool:
    """``empty`` is what blank text means; None makes it unusable."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, int) and raw in (0, 1):
        return raw == 1
    if isinstance(raw, str):
        word = raw.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        if not word and empty is not None:
            return empty
    raise Unusable("true or false")


def integer(raw: object) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and _INTEGER.fullmatch(raw.strip()):
        return int(raw)
    raise Unusable("a whole number")


def number(raw: object) -> float:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        try:
            value = float(raw)
        except OverflowError:
            raise Unusable("a number") from None
    elif isinstance(raw, str) and _NUMBER.fullmatch(raw.strip()):
        value = float(raw)
    else:
        raise Unusable("a number")
    if not math.isfinite(value):
        raise Unusable("a number")
    return value


def text(raw: object, *, integer_too: bool = False) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Unusable("text")
    if integer_too and isinstance(raw, int):
        return str(raw)
    # Guessing would lose leading zeros: a token of digits is no number.
    raise Unusable("text (put a number in quotes)")


@frozen
class PathRules:
    """Where ``~`` and ``$VAR`` lead.  Another user's ``~name`` is not looked up."""

    user_home: Path
    environ: Mapping[str, str]

    def expand(self, raw: str) -> str:
        """Expand a leading ``~`` and every ``$VAR`` of ``raw``."""

        def value_of(found: re.Match[str]) -> str:
            value = self.environ.get(found.group(1))
            if not value:
                raise Unusable("a path without unset variables")
            return value

        # ~ first, so that the value of a variable is taken as it is.
        head, slash, rest = raw.partition("/")
        if head == "~":
            return f"{self.user_home}{slash}{_VARIABLE.sub(value_of, rest)}"
        if head.startswith("~"):
            raise Unusable("a path that starts at / or ~/")
        return _VARIABLE.sub(value_of, raw)

    def path(self, raw: object, base: Path) -> Path | None:
        """None when blank.  A relative path starts at ``base``, never at the current directory."""
        if not isinstance(raw, str):
            raise Unusable("a path")
        if not raw.strip():
            return None
        expanded = self.expand(raw.strip())
        if "\0" in expanded:
            raise Unusable("a path")
        if Path(expanded) == Path("."):
            raise Unusable("a path other than '.'", dot_path=True)
        return base / expanded
