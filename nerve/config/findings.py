"""What reading the configuration found out: notes that go to the log, and the one error that refuses it."""

import re
from enum import Enum

from attrs import define, field, frozen


class ConfigError(Exception):
    """The configuration can't be used.  Its text is one line, names keys and files, and never holds a value."""


class Unusable(Exception):
    """A value that its key can't take; ``expected`` says what it could.  Becomes a finding or a ConfigError."""

    def __init__(self, expected: str, *, dot_path: bool = False) -> None:
        super().__init__(expected)
        self.expected = expected
        self.dot_path = dot_path


class Kind(Enum):
    """``config validate`` judges kinds differently: a dot path is an error there, an unknown key only if strict."""

    UNKNOWN_KEY = "unknown key"
    UNUSABLE = "unusable value"
    DOT_PATH = "dot path"
    ADJUSTED = "value out of bounds"
    MISPLACED = "key in the wrong layer"
    RETIRED = "retired key"
    LAYER = "layer ignored"
    DOUBTFUL = "doubtful"


@frozen
class Finding:
    """``path`` is a dotted key, a variable or a file; the message never holds a value."""

    kind: Kind
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@define
class Findings:
    """Collects, each finding once, in the order of discovery."""

    _found: dict[Finding, None] = field(factory=dict)

    def add(self, kind: Kind, path: str, message: str) -> None:
        self._found[Finding(kind, path, message)] = None

    def all(self) -> tuple[Finding, ...]:
        return tuple(self._found)


_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa1-\ud7ff\ue000-\ufffd]")


def dotted(parent: str, key: str) -> str:
    """Join a key to its parent's path.  Keys come from files: shortened, and without control characters."""
    name = _UNPRINTABLE.sub("?", key if len(key) <= 64 else key[:61] + "...")
    return f"{parent}.{name}" if parent else name
