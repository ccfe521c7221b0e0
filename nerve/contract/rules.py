"""What a value of a request has to fulfil, and what is said when it doesn't.  The words never hold the input."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from attrs import frozen

from nerve.contract.unset import UNSET, Unset


@frozen
class Problem:
    """One entry of a 422 list."""

    type: str
    loc: tuple[str | int, ...]
    msg: str


class Refused(Exception):
    def __init__(self, type: str, msg: str) -> None:
        super().__init__(msg)
        self.type = type
        self.msg = msg


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Refused("string_type", "This must be a string.")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refused("int_type", "This must be a whole number.")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused("float_type", "This must be a number.")
    return float(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused("bool_type", "This must be true or false.")
    return value


def _datetime(value: Any) -> datetime:
    try:
        made = datetime.fromisoformat(_text(value))
    except ValueError:
        raise Refused("datetime_parsing", "This must be an ISO 8601 instant.") from None
    if made.tzinfo is None:
        raise Refused("datetime_parsing", "This instant needs a time zone.")
    return made


SCALARS: dict[Any, Callable[[Any], Any]] = {
    str: _text,
    int: _integer,
    float: _number,
    bool: _boolean,
    datetime: _datetime,
}


def member(enum: type[Enum], value: Any) -> Enum:
    try:
        return enum(_text(value))
    except ValueError:
        allowed = ", ".join(str(m.value) for m in enum)
        raise Refused("enum", f"This must be one of: {allowed}.") from None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def check(value: Any, metadata: Mapping[Any, Any]) -> Any:
    """Hold a typed value to the rules of its field; a number marked ``clamp`` is moved into its range instead."""
    if isinstance(value, str):
        _check_text(value, metadata)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return _check_number(value, metadata)
    elif isinstance(value, list) and len(value) > metadata.get("max_items", len(value)):
        raise Refused("too_long", f"This list may have at most {metadata['max_items']} items.")
    return value


def _check_text(value: str, metadata: Mapping[Any, Any]) -> None:
    if len(value) < metadata.get("min_length", 0):
        least = metadata["min_length"]
        words = "This must not be empty." if least == 1 else f"This needs at least {least} characters."
        raise Refused("string_too_short", words)
    if len(value) > metadata.get("max_length", len(value)):
        raise Refused("string_too_long", f"This may have at most {metadata['max_length']} characters.")
    if "pattern" in metadata and not _compiled(metadata["pattern"]).search(value):
        raise Refused("string_pattern_mismatch", "This does not have the expected form.")


def _check_number(value: float, metadata: Mapping[Any, Any]) -> float:
    low, high = metadata.get("minimum"), metadata.get("maximum")
    if metadata.get("clamp"):
        value = value if low is None else max(low, value)
        return value if high is None else min(high, value)
    if low is not None and value < low:
        raise Refused("greater_than_equal", f"This must be at least {low}.")
    if high is not None and value > high:
        raise Refused("less_than_equal", f"This must be at most {high}.")
    return value


_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


def from_text(text: str, annotation: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> Any:
    """A query value as the JSON value it stands for; UNSET after adding to ``problems``."""
    options = get_args(annotation) if get_origin(annotation) in (UnionType, Union) else (annotation,)
    kind = next(o for o in options if o not in (type(None), Unset))
    if kind is int:
        if _WHOLE.fullmatch(text):
            return int(text)
        problems.append(Problem("int_parsing", loc, "This must be a whole number."))
        return UNSET
    if kind is bool:
        if (word := text.lower()) in _TRUE | _FALSE:
            return word in _TRUE
        problems.append(Problem("bool_parsing", loc, "This must be true or false."))
        return UNSET
    return text
