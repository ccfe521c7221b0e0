"""From a raw path to the resource that it names.

Segments are split first and percent-decoded once, so an encoded slash stays inside its segment.  Literal segments win
over parameters, for all methods of a path: ``PATCH /things/archived`` is 405 where only its GET exists, even beside
``PATCH /things/{id}``.  A trailing slash makes another path, an empty segment matches nothing.
"""

import re
from collections.abc import Iterable
from typing import Any, Generic
from urllib.parse import unquote_to_bytes

from attrs import define, field, frozen

from nerve.contract.route import AuthMode, Endpoint, Route, S

_MALFORMED = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_PARAMETER = re.compile(r"\{([^{}]+)\}")


@frozen
class Operation(Generic[S]):
    """An endpoint of this mode, with the names of its path parameters in order."""

    endpoint: Endpoint[S]
    names: tuple[str, ...]


@define(eq=False)
class Resource(Generic[S]):
    """Everything that one path serves."""

    operations: dict[str, Operation[S]] = field(factory=dict)
    any_host: bool = False
    allow: str = ""

    def add(self, operation: Operation[S]) -> None:
        """Raises ValueError if the method is taken."""
        route = operation.endpoint.route
        if route.method in self.operations:
            raise ValueError(f"{route.method} {route.path} has two endpoints")
        self.operations[route.method] = operation
        self.any_host = self.any_host or route.any_host
        methods = sorted(self.operations) + (["HEAD"] if "GET" in self.operations else []) + ["OPTIONS"]
        self.allow = ", ".join(dict.fromkeys(methods))

    def operation(self, method: str) -> Operation[S] | None:
        if (found := self.operations.get(method)) is None and method == "HEAD":
            return self.operations.get("GET")
        return found


@define(eq=False)
class _Node(Generic[S]):
    literals: dict[str, "_Node[S]"] = field(factory=dict)
    parameter: "_Node[S] | None" = None
    resource: Resource[S] | None = None

    def child(self, segment: str) -> "_Node[S]":
        if _PARAMETER.fullmatch(segment) is None:
            return self.literals.setdefault(segment, _Node())
        if self.parameter is None:
            self.parameter = _Node()
        return self.parameter


Found = tuple[Resource[S], tuple[str, ...]]


class Router(Generic[S]):
    """Built once from the endpoints of one authentication mode; those of the other mode do not exist here."""

    def __init__(self, endpoints: Iterable[Endpoint[S]], mode: AuthMode) -> None:
        self._root: _Node[S] = _Node()
        self._literal: dict[bytes, Found[S]] = {}
        self._depth = 0
        for endpoint in endpoints:
            if mode in endpoint.route.modes:
                self._add(endpoint)

    def _add(self, endpoint: Endpoint[S]) -> None:
        route: Route[Any, Any, Any] = endpoint.route
        segments = route.path.split("/")[1:]
        node = self._root
        for segment in segments:
            node = node.child(segment)
        if node.resource is None:
            node.resource = Resource()
        names = tuple(_PARAMETER.findall(route.path))
        node.resource.add(Operation(endpoint, names))
        self._depth = max(self._depth, len(segments))
        if not names:
            self._literal[route.path.encode("ascii")] = (node.resource, ())

    def find(self, raw_path: bytes) -> Found[S] | None:
        """The resource and the values of its parameters; None for a path that names nothing."""
        if (found := self._literal.get(raw_path)) is not None:
            return found
        raw_segments = raw_path.split(b"/", self._depth + 1)[1:]
        if raw_path[:1] != b"/" or len(raw_segments) > self._depth:
            return None
        segments: list[str] = []
        for raw in raw_segments:
            if (segment := decode_segment(raw)) is None:
                return None
            segments.append(segment)
        return _walk(self._root, segments, ())


def _walk(node: _Node[S], segments: list[str], values: tuple[str, ...]) -> Found[S] | None:
    if not segments:
        return None if node.resource is None else (node.resource, values)
    first, rest = segments[0], segments[1:]
    if (literal := node.literals.get(first)) is not None and (found := _walk(literal, rest, values)) is not None:
        return found
    if node.parameter is None or not first:
        return None
    return _walk(node.parameter, rest, (*values, first))


def decode_segment(raw: bytes) -> str | None:
    """Percent-decode once.  None if an escape is malformed or the result is no UTF-8: such a path names nothing."""
    if b"%" in raw:
        if _MALFORMED.search(raw) is not None:
            return None
        raw = unquote_to_bytes(raw)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
