"""``${VAR}`` references in configuration text (config.md section 1.2).  The environment is passed in."""

import re
from collections.abc import Iterator, Mapping

from attrs import define, field

from nerve.config.findings import ConfigError, dotted

_REFERENCE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@define
class Interpolation:
    """Replaces references, and remembers every required variable that is not set with the keys that want it."""

    _environ: Mapping[str, str]
    _missing: dict[str, list[str]] = field(factory=dict)

    def apply(self, value: object, path: str = "") -> object:
        """Return ``value`` with each string scalar replaced; keys stay as they are."""
        if isinstance(value, str):
            return _REFERENCE.sub(lambda found: self._replace(found, path), value) if "$" in value else value
        if isinstance(value, Mapping):
            return {key: self.apply(item, dotted(path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.apply(item, f"{path}[{at}]") for at, item in enumerate(value)]
        return value

    def _replace(self, found: re.Match[str], path: str) -> str:
        name, fallback = found.group(1), found.group(2)
        if name is None:
            return "$"
        value = self._environ.get(name)
        if value is None and fallback is None:
            self._missing.setdefault(name, []).append(path)
            return ""
        if not value and fallback is not None:
            return str(fallback)
        return readable(name, value or "")

    @property
    def complete(self) -> bool:
        return not self._missing

    def require(self) -> None:
        """Raise one ConfigError that lists every missing name, if there is any."""
        if self._missing:
            wanted = ", ".join(f"{name} (for {_places(paths)})" for name, paths in sorted(self._missing.items()))
            raise ConfigError(f"the configuration refers to variables that are not set: {wanted}")


def readable(name: str, value: str) -> str:
    """``value``, refused when the variable's bytes were not UTF-8: such text could be neither stored nor sent."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"the variable {name} is not UTF-8 text") from None
    return value


def references(value: object) -> Iterator[str]:
    """Every variable that ``value`` refers to, in reading order."""
    if isinstance(value, str):
        yield from (found.group(1) for found in _REFERENCE.finditer(value) if found.group(1) is not None)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def _places(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
