"""A merged, interpolated tree into the typed sections: declared types decide, findings say what was not taken."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
from attrs import define, frozen

from nerve.config import coerce
from nerve.config.findings import ConfigError, Findings, Kind, Unusable, dotted
from nerve.config.kinds import STRICT, Between, Form, Marker
from nerve.config.merge import Tree
from nerve.config.secret import Secret

S = TypeVar("S")
_ABSENT = object()

# Keys that older installations carry: not unknown, yet without effect.
RETIRED = {
    "memory.sqlite_dsn": "has no effect: semantic memory lives in tables of nerve.db",
}


@frozen
class Declared:
    """A type taken apart: what it is without ``Annotated`` and ``| None``, and its markers."""

    base: Any
    markers: tuple[object, ...]

    @classmethod
    def of(cls, hint: Any, markers: tuple[object, ...] = ()) -> "Declared":
        if get_origin(hint) is Annotated:
            inner, *more = get_args(hint)
            return cls.of(inner, (*markers, *more))
        if get_origin(hint) in (Union, UnionType):
            (inner,) = (arg for arg in get_args(hint) if arg is not NoneType)
            return cls.of(inner, markers)
        return cls(hint, markers)


def declared_fields(section: Any) -> Mapping[str, Declared]:
    """The keys of a section class with their types, in order."""
    return _declared_fields(section)


@cache
def _declared_fields(section: Any) -> Mapping[str, Declared]:
    hints = get_type_hints(section, include_extras=True)
    return MappingProxyType({a.name: Declared.of(hints[a.name]) for a in attrs.fields(section)})


@define
class Binder:
    """``defaults`` holds, by dotted key, what depends on the circumstances (home, lockdown, mode), not on a class."""

    findings: Findings
    paths: coerce.PathRules
    home: Path
    workspace: Path
    defaults: Mapping[str, object]

    def section(self, section: type[S], raw: Tree, path: str, standing: S | None = None) -> S:
        """Bind one section.  ``standing`` is the parent's default for it and supplies the defaults of its keys."""
        fields = declared_fields(section)
        self._report_unknown(raw, fields, path)
        values: dict[str, object] = {}
        for name, declared in fields.items():
            key = dotted(path, name)
            default = self.defaults.get(key, _ABSENT)
            if default is _ABSENT:
                default = getattr(standing, name) if standing is not None else _class_default(section, name)
            if attrs.has(declared.base):
                values[name] = self._subsection(declared.base, raw.get(name), key, default)
                continue
            if (value := self._attempt(declared, raw.get(name), key, default)) is not _ABSENT:
                values[name] = value
        return section(**values)

    def _subsection(self, section: type[Any], raw: object, path: str, default: object) -> object:
        if raw is not None and not isinstance(raw, Mapping):
            self.findings.add(Kind.UNUSABLE, path, "expected a mapping; its defaults are used")
            raw = None
        return self.section(section, raw or {}, path, None if default is _ABSENT else default)

    def _report_unknown(self, raw: Tree, fields: Mapping[str, Declared], path: str) -> None:
        for key in raw:
            if key in fields:
                continue
            full = dotted(path, key)
            if full in RETIRED:
                self.findings.add(Kind.RETIRED, full, RETIRED[full])
            else:
                self.findings.add(Kind.UNKNOWN_KEY, full, "unknown key, ignored")

    def _attempt(self, declared: Declared, raw: object, path: str, default: object) -> object:
        """The value, or ``default`` with a finding; a strict key refuses instead."""
        try:
            value = None if raw is None else self._value(declared, raw, path, default)
        except Unusable as error:
            if STRICT in declared.markers:
                raise ConfigError(f"{path}: expected {error.expected}") from None
            kind = Kind.DOT_PATH if error.dot_path else Kind.UNUSABLE
            self.findings.add(kind, path, f"expected {error.expected}; the default is used")
            value = None
        return default if value is None else value

    def _value(self, declared: Declared, raw: object, path: str, default: object = _ABSENT) -> object:
        base, markers = declared.base, declared.markers
        origin = get_origin(base)
        if origin is Literal:
            return _choice(get_args(base), raw, no_too=Marker.NO_TOO in markers)
        if origin is tuple:
            return self._list(Declared.of(get_args(base)[0]), raw, path, free=Marker.FREE in markers)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(Declared.of(get_args(base)[1]), raw, path, default)
        if attrs.has(base):
            return self._item(base, raw, path, free=Marker.FREE in markers)
        return self._scalar(base, markers, raw, path)

    def _scalar(self, base: object, markers: tuple[object, ...], raw: object, path: str) -> object:
        if base is Any:
            return _frozen(raw)
        if base is bool:
            return coerce.boolean(raw)
        if base is Path:
            return self.paths.path(raw, self.workspace if Marker.IN_WORKSPACE in markers else self.home)
        if base is Secret:
            return Secret(coerce.text(raw, integer_too=Marker.INTEGER_TOO in markers))
        if base is int:
            return self._bounded(coerce.integer(raw), markers, path)
        if base is float:
            return self._bounded(coerce.number(raw), markers, path)
        assert base is str, base
        text = coerce.text(raw, integer_too=Marker.INTEGER_TOO in markers)
        if Marker.EXPANDED in markers:
            return self.paths.expand(text.strip()) or None
        for marker in markers:
            if isinstance(marker, Form):
                text = _in_form(marker, text)
        return text

    def _bounded(self, value: float, markers: tuple[object, ...], path: str) -> float:
        for marker in markers:
            if not isinstance(marker, Between) or marker.low <= value <= marker.high:
                continue
            bounds = f"from {marker.low:g} to {marker.high:g}"
            if not marker.clamp:
                raise Unusable(f"a number {bounds}")
            nearest = marker.low if value < marker.low else marker.high
            self.findings.add(Kind.ADJUSTED, path, f"expected a number {bounds}; {nearest:g} is used")
            return type(value)(nearest)
        return value

    def _list(self, element: Declared, raw: object, path: str, *, free: bool) -> tuple[object, ...]:
        """One scalar is a list of one; text for a list of integers is split on commas; bad elements are dropped."""
        if isinstance(raw, Mapping):
            raise Unusable("a list")
        given = [(path, raw)] if not isinstance(raw, list) else [(f"{path}[{i}]", v) for i, v in enumerate(raw)]
        if element.base is int:
            given = [
                (at, part) for at, item in given for part in (item.split(",") if isinstance(item, str) else [item])
            ]
        kept: list[object] = []
        nested = Declared(element.base, (*element.markers, Marker.FREE)) if free else element
        for at, item in given:
            if item is None or (isinstance(item, str) and not item.strip()):
                continue
            try:
                kept.append(self._value(nested, item, at))
            except Unusable as error:
                self.findings.add(Kind.UNUSABLE, at, f"expected {error.expected}; the element is dropped")
        return tuple(kept)

    def _mapping(self, element: Declared, raw: object, path: str, default: object) -> Mapping[str, object]:
        """Laid over the default, key by key; an empty value takes a default entry away; bad entries are dropped."""
        if not isinstance(raw, Mapping):
            raise Unusable("a mapping")
        values: dict[str, object] = dict(default) if isinstance(default, Mapping) else {}
        nested = Declared(element.base, (*element.markers, Marker.FREE))
        for key, item in raw.items():
            at = dotted(path, key)
            if item is None:
                values.pop(key, None)
                continue
            try:
                values[key] = self._value(nested, item, at)
            except Unusable as error:
                self.findings.add(Kind.UNUSABLE, at, f"expected {error.expected}; the entry is dropped")
        return MappingProxyType(values)

    def _item(self, item: type[Any], raw: object, path: str, *, free: bool) -> object:
        """An entry of a list or mapping: not usable without its required keys."""
        if not isinstance(raw, Mapping):
            raise Unusable("a mapping")
        fields = declared_fields(item)
        if not free:
            self._report_unknown(raw, fields, path)
        values = {}
        for name, declared in fields.items():
            value = self._attempt(declared, raw.get(name), dotted(path, name), _ABSENT)
            if value is not _ABSENT:
                values[name] = value
        if wanting := [a.name for a in attrs.fields(item) if a.default is attrs.NOTHING and a.name not in values]:
            raise Unusable(f"a mapping with {' and '.join(wanting)}")
        made = item(**values)
        if (check := getattr(made, "problem", None)) is not None and (problem := check()) is not None:
            raise Unusable(f"a mapping with {problem}")
        return made


def _class_default(section: Any, name: str) -> object:
    default = getattr(attrs.fields(section), name).default
    if default is attrs.NOTHING:
        return _ABSENT
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def _choice(choices: tuple[str, ...], raw: object, *, no_too: bool) -> str:
    value = "no" if no_too and raw is False else raw
    if isinstance(value, str) and value.strip() in choices:
        return value.strip()
    raise Unusable("one of " + ", ".join(choice or "nothing" for choice in choices))


def _in_form(form: Form, text: str) -> str:
    try:
        return form.read(text)
    except ValueError:
        raise Unusable(form.expected) from None


def _frozen(raw: object) -> object:
    if isinstance(raw, Mapping):
        return MappingProxyType({key: _frozen(value) for key, value in raw.items()})
    if isinstance(raw, list):
        return tuple(_frozen(value) for value in raw)
    return raw
