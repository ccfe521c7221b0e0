"""One REST operation without I/O: what to send for it, and what an answer means."""

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import attrs
from attrs import field, frozen

from nerve.client.errors import ApiError, Unreachable
from nerve.contract import codec
from nerve.contract.generated.errors import ERRORS, ErrorCode, ErrorKind
from nerve.contract.route import Document, NoBody, NoParams, ReplyKind, Route
from nerve.contract.unset import UNSET

P = TypeVar("P")
B = TypeVar("B")
R = TypeVar("R")

REFRESHED = "x-nerve-token"
_PARAMETER = re.compile(r"\{(\w+)\}")


@frozen
class Request:
    method: str
    target: str  # path and query, encoded
    headers: dict[str, str]
    content: bytes | None = field(default=None, repr=False)


def request_of(route: Route[P, B, R], params: P | None, body: B | None, token: str | None) -> Request:
    """Raises TypeError for parameters or a body that the operation needs and does not get."""
    if route.kind is ReplyKind.EVENT_STREAM:
        raise TypeError(f"{route.operation_id} answers with a stream of events; follow the session instead")
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    content = None
    if body is not None and not isinstance(body, NoBody):
        content = codec.encode(body)
        headers["content-type"] = "application/json"
    elif route.body_required:
        raise TypeError(f"{route.operation_id} needs a body")
    return Request(route.method, _target(route, params), headers, content)


def _target(route: Route[Any, Any, Any], params: Any) -> str:
    given = {} if params is None or isinstance(params, NoParams) else _plain(params)
    missing = [name for name in _PARAMETER.findall(route.path) if name not in given]
    if missing:
        raise TypeError(f"{route.operation_id} needs {', '.join(missing)}")
    path = _PARAMETER.sub(lambda found: quote(given.pop(found[1]), safe=""), route.path)
    return f"{path}?{urlencode(given)}" if given else path


def _plain(params: Any) -> dict[str, str]:
    """Parameters as text; those that were left out, or are what the server takes anyway, are not sent."""
    found = {}
    for attribute in attrs.fields(type(params)):
        value = getattr(params, attribute.name)
        if value is None or value is UNSET or (attribute.default is not attrs.NOTHING and value == attribute.default):
            continue
        found[attribute.metadata.get("key", attribute.name)] = _text(value)
    return found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.value) if isinstance(value, Enum) else str(value)


def reply_of(route: Route[P, B, R], status: int, headers: Mapping[str, str], content: bytes) -> R:
    """The model of the operation's reply.  Raises ApiError, or Unreachable for what is no answer of such a server.

    Names of ``headers`` are lower case.
    """
    if status not in route.replies:
        raise _error(route, status, headers, content)
    if route.kind is not ReplyKind.JSON:
        return Document(content, headers.get("content-type", ""))  # type: ignore[return-value]
    try:
        model: type[R] = route.replies[status]
        return codec.structure(model, codec.parse_json(content))
    except codec.Invalid as invalid:
        raise Unreachable(f"the answer to {route.operation_id} is not what it should be: {invalid}") from None


def _error(route: Route[Any, Any, Any], status: int, headers: Mapping[str, str], content: bytes) -> ApiError:
    try:
        body = codec.parse_json(content)
    except codec.Invalid:
        body = None
    detail = body.get("detail") if isinstance(body, dict) else None
    message, name = _said(detail)
    code = _named(name) if name is not None else _matching(route, status, message, detail)
    seconds = headers.get("retry-after", "")
    return ApiError(
        status,
        code,
        message or f"HTTP {status}",
        body,
        float(seconds) if seconds.isascii() and seconds.isdigit() else None,
    )


def _said(detail: Any) -> tuple[str | None, str | None]:
    """The sentence and the name that an error body carries, whichever of its documented forms it has."""
    match detail:
        case str():
            return detail, None
        case {"message": str(message), "code": str(name)} | {"message": str(message), "reason": str(name)}:
            return message, name
        case [{"msg": str()}, *_]:
            return "; ".join(_problem(problem) for problem in detail if isinstance(problem, dict)), None
        case _:
            return None, None


def _problem(problem: dict[str, Any]) -> str:
    where = problem.get("loc")
    path = ".".join(map(str, where[1:])) if isinstance(where, list) else ""
    return f"{path}: {problem.get('msg')}" if path else str(problem.get("msg"))


def _named(name: str) -> ErrorCode | None:
    try:
        return ErrorCode(name)
    except ValueError:
        return None


def _matching(route: Route[Any, Any, Any], status: int, message: str | None, detail: Any) -> ErrorCode | None:
    """The error among those that the operation declares; bodies of the form ``detail`` don't carry its name."""
    candidates = [code for code in route.errors if ERRORS[code].status == status]
    if isinstance(detail, list):
        return next((code for code in candidates if route.errors[code] is ErrorKind.VALIDATION), None)
    for code in [*candidates, ErrorCode.NOT_FOUND, ErrorCode.METHOD_NOT_ALLOWED, ErrorCode.PERSON_REQUIRED]:
        if ERRORS[code].status == status and message is not None and _sentence(code).fullmatch(message):
            return code
    return next((code for code in candidates if ERRORS[code].varies), None)


@cache
def _sentence(code: ErrorCode) -> re.Pattern[str]:
    parts = re.split(r"\{\w+\}", ERRORS[code].message)
    return re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
