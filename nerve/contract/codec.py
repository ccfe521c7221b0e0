"""The only converter: bytes and query strings to models, models to bytes.

Requests are strict about types (``5`` is no string, ``"5"`` no number) and lenient about unknown keys, which a
newer client may send.  cattrs writes; reading is our own walk, because a 422 has to name every bad field at once.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache, lru_cache
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import orjson
from cattrs import Converter
from cattrs.fns import identity
from cattrs.gen import make_dict_unstructure_fn, override

from nerve.contract import rules
from nerve.contract.rules import Problem, Refused
from nerve.contract.unset import UNSET, Unset

T = TypeVar("T")

NONE: Mapping[str, str] = MappingProxyType({})

MAX_JSON_DEPTH = 64


class Invalid(Exception):
    """The input does not fit its schema; holds every problem found and never the input."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{'.'.join(map(str, p.loc))}: {p.msg}" for p in self.problems))


# --- JSON in ------------------------------------------------------------------------------------------------------


def parse_json(raw: bytes | str) -> Any:
    """Parse JSON of a bounded depth.  Raises Invalid."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Invalid([Problem("json_invalid", ("body",), "This is not valid JSON.")]) from None
    brackets = raw.count(b"[") + raw.count(b"{") if isinstance(raw, bytes) else raw.count("[") + raw.count("{")
    if brackets > MAX_JSON_DEPTH and _depth(value) > MAX_JSON_DEPTH:
        message = f"The JSON is nested more than {MAX_JSON_DEPTH} levels deep."
        raise Invalid([Problem("json_too_deep", ("body",), message)])
    return value


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth - 1


def structure(cls: type[T], value: Any, loc: tuple[str | int, ...] = ("body",)) -> T:
    """A model from parsed JSON.  Raises Invalid with every problem, each with its path from ``loc``."""
    problems: list[Problem] = []
    made = _read(cls, value, loc, problems)
    if problems:
        raise Invalid(problems)
    return made  # type: ignore[no-any-return]


def decode_body(cls: type[T], raw: bytes) -> T:
    return structure(cls, parse_json(raw))


def decode_params(
    cls: type[T], path: Mapping[str, str], query: Mapping[str, str], headers: Mapping[str, str] = NONE
) -> T:
    """Parameters of path, query and headers.  Numbers and booleans are read from text; the last of several counts."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for key, attribute, annotation in _fields(cls):
        source, where = (path, "path") if key in path else (headers, "header") if key in headers else (query, "query")
        if key in source:
            loc = (where, key)
            text = rules.from_text(source[key], annotation, loc, problems)
            if text is not UNSET:
                values[attribute.name] = _checked(_read(annotation, text, loc, problems), attribute, loc, problems)
        elif attribute.default is attrs.NOTHING:
            problems.append(Problem("missing", ("query", key), "This parameter is required."))
    if problems:
        raise Invalid(problems)
    return cls(**values)


def _fields(cls: type[Any]) -> tuple[tuple[str, "attrs.Attribute[Any]", Any], ...]:
    return _resolved_fields(cls)  # type: ignore[arg-type]  # a class is hashable, whatever mypy thinks of type[Any]


@cache
def _resolved_fields(cls: Any) -> tuple[tuple[str, "attrs.Attribute[Any]", Any], ...]:
    attrs.resolve_types(cls)
    return tuple((a.metadata.get("key", a.name), a, a.type) for a in attrs.fields(cls))


def _read(annotation: Any, value: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> Any:
    """The typed value, or None after adding to ``problems``."""
    if annotation is Any:
        return value
    origin = get_origin(annotation)
    if origin in (UnionType, Union):
        return _read_union(get_args(annotation), value, loc, problems)
    if origin is Literal:
        if value not in get_args(annotation) or isinstance(value, bool) != isinstance(get_args(annotation)[0], bool):
            problems.append(Problem("literal_error", loc, "This value is not one of the allowed ones."))
        return value
    if origin is list:
        return _read_list(get_args(annotation)[0], value, loc, problems)
    if origin is dict:
        return _read_dict(get_args(annotation)[1], value, loc, problems)
    if attrs.has(annotation):
        return _read_object(annotation, value, loc, problems)
    return _read_scalar(annotation, value, loc, problems)


def _read_scalar(annotation: Any, value: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> Any:
    try:
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return rules.member(annotation, value)
        return rules.SCALARS[annotation](value)
    except Refused as refused:
        problems.append(Problem(refused.type, loc, refused.msg))
        return None


def _read_union(options: tuple[Any, ...], value: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> Any:
    if value is None and type(None) in options:
        return None
    real = [o for o in options if o not in (type(None), Unset)]
    best: list[Problem] | None = None
    for option in real:
        found: list[Problem] = []
        made = _read(option, value, loc, found)
        if not found:
            return made
        if best is None or len(found) < len(best):
            best = found
    problems.extend(best or ())
    return None


def _read_list(item: Any, value: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> Any:
    if not isinstance(value, list):
        problems.append(Problem("list_type", loc, "This must be a list."))
        return None
    return [_read(item, entry, (*loc, index), problems) for index, entry in enumerate(value)]


def _read_dict(item: Any, value: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> Any:
    if not isinstance(value, dict):
        problems.append(Problem("dict_type", loc, "This must be an object."))
        return None
    return {key: _read(item, entry, (*loc, key), problems) for key, entry in value.items()}


def _read_object(cls: type[Any], value: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> Any:
    if not isinstance(value, dict):
        problems.append(Problem("dict_type", loc, "This must be an object."))
        return None
    before = len(problems)
    values: dict[str, Any] = {}
    for key, attribute, annotation in _fields(cls):
        if key in value:
            here = (*loc, key)
            values[attribute.name] = _checked(_read(annotation, value[key], here, problems), attribute, here, problems)
        elif attribute.default is attrs.NOTHING:
            problems.append(Problem("missing", (*loc, key), "This field is required."))
    return cls(**values) if len(problems) == before else None


def _checked(value: Any, attribute: "attrs.Attribute[Any]", loc: tuple[str | int, ...], problems: list[Problem]) -> Any:
    if value is None or not attribute.metadata:
        return value
    try:
        return rules.check(value, attribute.metadata)
    except Refused as refused:
        problems.append(Problem(refused.type, loc, refused.msg))
        return None


# --- models out ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)  # lists show the same instants again and again, and writing one is costly
def instant(value: datetime) -> str:
    """UTC, ISO 8601, milliseconds, ``Z``: the one form of an instant on the wire (decisions D54)."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _unstructure_factory(cls: type[Any], converter: Converter) -> Any:
    attrs.resolve_types(cls)
    omit = {
        a.name: override(omit_if_default=a.default is UNSET, rename=a.metadata.get("key")) for a in attrs.fields(cls)
    }
    return make_dict_unstructure_fn(cls, converter, **omit)  # type: ignore[arg-type]


def _stays_as_it_is(annotation: Any) -> bool:
    """``str | None`` and the like, which cattrs would ask about one by one."""
    return get_origin(annotation) in (UnionType, Union) and set(get_args(annotation)) <= _PLAIN


_PLAIN = {str, int, float, bool, type(None)}
_KEPT = 1024  # a few pages
_kept: dict[int, tuple[object, orjson.Fragment]] = {}


def _new_converter() -> Converter:
    converter = Converter(detailed_validation=False)
    converter.register_unstructure_hook(datetime, instant)
    converter.register_unstructure_hook_func(_stays_as_it_is, identity)
    converter.register_unstructure_hook_factory(attrs.has, _unstructure_factory)
    return converter


_converter = _new_converter()
_writer = _new_converter()  # as above, but some classes become JSON at once


def keep_written(cls: type[Any]) -> None:
    """Have ``encode`` write each object of an immutable class once, for those that are shown again and again.

    An object is known by its identity alone, which is its own as long as it is kept here.
    """
    _writer.register_unstructure_hook(cls, _written)


def _written(value: Any) -> orjson.Fragment:
    kept = _kept.get(id(value))
    if kept is None:
        if len(_kept) >= _KEPT:
            del _kept[next(iter(_kept))]
        kept = _kept[id(value)] = (value, orjson.Fragment(orjson.dumps(_converter.unstructure(value))))
    return kept[1]


def unstructure(value: Any) -> Any:
    """Plain JSON values of a model; a field that is UNSET is left out."""
    return _converter.unstructure(value)


def encode(value: Any) -> bytes:
    return orjson.dumps(_writer.unstructure(value))


def encode_plain(value: Any) -> bytes:
    """JSON bytes of what is plain already, such as an error body."""
    return orjson.dumps(value)
