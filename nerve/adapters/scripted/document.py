"""From YAML text to plain JSON values, within bounds.  Knows nothing of plays.

YAML is read as a stream of events, so that a bound ends the reading at once: text that is deep, long or full of
aliases costs no more than the bounds allow.  Scalars follow the core schema of YAML 1.2.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field, frozen
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from nerve.adapters.scripted.problem import PlayError, shown

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_VALUES = 50_000
MAX_CHARACTERS = 1024 * 1024

TAG = "tag:yaml.org,2002:"
NULL = re.compile(r"~|null|Null|NULL|\Z")
BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@frozen
class Sized:
    """A value, and what it amounts to once its aliases are written out."""

    value: Any
    values: int
    characters: int


def load(text: str) -> Any:
    """The one document of ``text`` as dicts, lists, strings, numbers, booleans and None.

    Raises PlayError, with an empty pointer, for anything that is no YAML, no JSON value, or above a bound.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise PlayError("", "a play is at most 256 KiB")
    try:
        return _Reader(_events(text)).document()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise PlayError("", f"not valid YAML{where}: {error.problem or error.context}") from None
    except YAMLError as error:
        raise PlayError("", f"not valid YAML: {str(error).splitlines()[0]}") from None
    except (ArithmeticError, LookupError, ValueError, AttributeError, TypeError, AssertionError):
        # The parser lets these out for some malformed escapes, tags and directives.
        raise PlayError("", "not valid YAML") from None


def _events(text: str) -> Iterator[Event]:
    yield from YAML(typ="safe", pure=True).parse(text)


@define
class _Reader:
    events: Iterator[Event]
    anchors: dict[str, Sized | None] = field(factory=dict)
    values: int = 0
    characters: int = 0

    def document(self) -> Any:
        root: Sized | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent) and root is not None:
                raise PlayError("", "a play is one YAML document")
            if isinstance(event, AliasEvent | ScalarEvent | SequenceStartEvent | MappingStartEvent):
                root = self._node(event, 0)
        if root is None:
            raise PlayError("", "the play is empty")
        return root.value

    def _node(self, event: Event, depth: int) -> Sized:
        if depth > MAX_DEPTH:
            raise PlayError("", f"values nest at most {MAX_DEPTH} deep")
        if isinstance(event, AliasEvent):
            return self._count(self._alias(event))
        anchor = event.anchor if isinstance(event, NodeEvent) else None
        if anchor is not None:
            self.anchors[anchor] = None
        node: Sized
        match event:
            case SequenceStartEvent():
                node = self._sequence(event, depth)
            case MappingStartEvent():
                node = self._mapping(event, depth)
            case ScalarEvent():
                node = self._count(_scalar(event))
            case _:
                raise PlayError("", "not valid YAML")
        if anchor is not None:
            self.anchors[anchor] = node
        return node

    def _alias(self, event: AliasEvent) -> Sized:
        if event.anchor not in self.anchors:
            raise PlayError("", f"unknown alias {_at(event)}")
        target = self.anchors[event.anchor]
        if target is None:
            raise PlayError("", f"an alias inside its own anchor {_at(event)}")
        return target

    def _count(self, node: Sized) -> Sized:
        """Add a scalar, or all that an alias stands for, to what the document amounts to."""
        self.values += node.values
        self.characters += node.characters
        if self.values > MAX_VALUES:
            raise PlayError("", f"a play holds at most {MAX_VALUES:,} values")
        if self.characters > MAX_CHARACTERS:
            raise PlayError("", "a play holds at most 1 MiB of text, its aliases written out")
        return node

    def _sequence(self, start: SequenceStartEvent, depth: int) -> Sized:
        _plain_tag(start, "seq")
        before = self.values, self.characters
        self._count(Sized(None, 1, 0))
        items: list[Any] = []
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                break
            items.append(self._node(event, depth + 1).value)
        return Sized(items, self.values - before[0], self.characters - before[1])

    def _mapping(self, start: MappingStartEvent, depth: int) -> Sized:
        _plain_tag(start, "map")
        before = self.values, self.characters
        self._count(Sized(None, 1, 0))
        entries: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                break
            if not isinstance(event, ScalarEvent):
                raise PlayError("", f"a key must be plain text {_at(event)}")
            if event.anchor is not None:
                self.anchors[event.anchor] = _scalar(event)
            key = _text(event)
            self._count(Sized(None, 1, len(key)))
            if key in entries:
                raise PlayError("", f"the key '{shown(key)}' is there twice {_at(event)}")
            entries[key] = self._node(next(self.events), depth + 1).value
        return Sized(entries, self.values - before[0], self.characters - before[1])


def _at(event: Event) -> str:
    return f"(line {event.start_mark.line + 1}, column {event.start_mark.column + 1})"


def _tag(event: CollectionStartEvent | ScalarEvent) -> str | None:
    return None if event.tag is None else str(event.tag)


def _plain_tag(event: CollectionStartEvent, kind: str) -> None:
    if _tag(event) not in (None, "!", TAG + kind):
        raise PlayError("", f"only YAML's own tags are known {_at(event)}")


def _text(event: ScalarEvent) -> str:
    """The scalar's text; pairs of surrogate escapes, as JSON writes them, become one character."""
    text: str = event.value
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise PlayError("", f"half a surrogate pair is no text {_at(event)}") from None


def _scalar(event: ScalarEvent) -> Sized:
    text = _text(event)
    tag = _tag(event)
    if tag == "!" or (tag is None and not event.implicit[0]) or tag == TAG + "str":
        return Sized(text, 1, len(text))
    if tag is None:
        for pattern, read in CORE:
            if pattern.fullmatch(text):
                return Sized(read(event, text), 1, len(text))
        return Sized(text, 1, len(text))
    for name, pattern, read in TAGGED:
        if tag == TAG + name:
            if not pattern.fullmatch(text):
                raise PlayError("", f"not a YAML {name} {_at(event)}")
            return Sized(read(event, text), 1, len(text))
    raise PlayError("", f"only YAML's own tags are known {_at(event)}")


def _integer(event: ScalarEvent, text: str) -> int:
    if len(text) > 18:
        raise PlayError("", f"a number has at most 18 digits {_at(event)}")
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _number(event: ScalarEvent, text: str) -> float:
    number = math.inf if text.lstrip("+-.").lower() in ("inf", "nan") else float(text)
    if not math.isfinite(number):
        raise PlayError("", f"a number must be finite {_at(event)}")
    return number


Read = Callable[[ScalarEvent, str], Any]
TAGGED: tuple[tuple[str, re.Pattern[str], Read], ...] = (
    ("null", NULL, lambda _event, _text: None),
    ("bool", BOOL, lambda _event, text: text.lower() == "true"),
    ("int", INT, _integer),
    ("float", FLOAT, _number),
)
CORE: tuple[tuple[re.Pattern[str], Read], ...] = tuple((pattern, read) for _, pattern, read in TAGGED)
