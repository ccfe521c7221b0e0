"""YAML text to plain values.  Knows no file; its errors carry a position and never the text, which may be a secret."""

from collections.abc import Mapping
from datetime import date

from nerve.config.findings import ConfigError

NODES_MAX = 50_000
DEPTH_MAX = 50


def parse(source: str, name: str) -> object:
    """The one document of ``source`` as dicts with text keys, lists and scalars; None when there is none.

    Raises ConfigError(name, position) on anything that is not well-formed YAML of the safe kind.
    """
    # Imported here because most starts of an unconfigured instance have no file to parse.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    yaml.composer.warn_double_anchors = False
    try:
        return _Plain(name).of(yaml.load(source), 0)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise ConfigError(f"{name}: malformed YAML{where}") from None
    except (YAMLError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        # ruamel lets the errors of its scalar constructors through: `2024-13-45`, `!!int ''`, deep nesting.
        raise ConfigError(f"{name}: malformed YAML") from None


class _Plain:
    """Copies a loaded document, so that aliases can neither form a cycle nor multiply without end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = NODES_MAX

    def of(self, value: object, depth: int) -> object:
        self._left -= 1
        if self._left < 0 or depth > DEPTH_MAX:
            raise ConfigError(f"{self._name}: too large or nested too deeply")
        if isinstance(value, Mapping):
            return {self._key(key): self.of(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item, depth + 1) for item in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, str):
            return self._text(value)
        raise ConfigError(f"{self._name}: holds a YAML type that no key takes")

    def _key(self, key: object) -> str:
        match key:
            case None:
                return "null"
            case bool():
                return "true" if key else "false"
            case str():
                return self._text(key)
            case int() | float():
                return str(key)
            case date():
                return key.isoformat()
        raise ConfigError(f"{self._name}: malformed YAML, a key is not text")

    def _text(self, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{self._name}: holds text that is not Unicode") from None
        return value
