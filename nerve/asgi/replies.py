"""What goes over the wire for what a handler returned or an error says: status, headers, bytes."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from attrs import define, field

from nerve.asgi.protocol import RawHeaders
from nerve.contract import codec
from nerve.contract.generated.errors import ErrorKind
from nerve.contract.route import Document, EventStream, FileReply, Reply, ReplyKind, Route
from nerve.errors import NerveError, error_body

_COMMON: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"access-control-expose-headers", b"X-Nerve-Token, X-Request-Id, Retry-After"),
)
_JSON = ((b"content-type", b"application/json"), *_COMMON)
# The page runs no script and loads nothing, not even from here.
_PAGE_POLICY = (
    b"content-security-policy",
    b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)

# nginx holds back what it is not told to pass on.
_EVENTS = ((b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"), *_COMMON)


class UndeclaredReply(Exception):
    """A handler answered in a way that its operation does not declare: our mistake, told as ``internal``."""


@define(eq=False)
class HttpReply:
    """One reply, complete but for the headers that the exchange adds (length, request id, CORS, connection)."""

    status: int
    headers: RawHeaders
    content: bytes = field(default=b"", repr=False)
    stream: EventStream | None = None  # follows the head instead of ``content``
    file: FileReply | None = None  # the same


def reply_of(route: Route[Any, Any, Any], result: Any) -> HttpReply:
    """The reply for a handler's result: a model, a ``Reply`` around one, or a ``Document``.  Raises UndeclaredReply."""
    if isinstance(result, Reply):
        status = route.success if result.status is None else result.status
        extra = header_bytes(result.headers)
        result = result.body
    else:
        status, extra = route.success, []
    if status not in route.replies:
        raise UndeclaredReply(f"{route.operation_id} does not declare the status {status}")
    if isinstance(result, Document):
        return _document(route, status, extra, result)
    if isinstance(result, EventStream):
        if route.kind is not ReplyKind.EVENT_STREAM:
            raise UndeclaredReply(f"{route.operation_id} declares no EventStream")
        return HttpReply(status, [*_EVENTS, *extra], stream=result)
    if isinstance(result, FileReply):
        if route.kind is not ReplyKind.FILE:
            raise UndeclaredReply(f"{route.operation_id} declares no FileReply")
        return HttpReply(status, [*_file_head(result), *extra], file=result)
    if route.kind is not ReplyKind.JSON:
        raise UndeclaredReply(f"{route.operation_id} has to return what it declares")
    if status == 204:
        return HttpReply(status, [*_COMMON, *extra])
    return HttpReply(status, [*_JSON, *extra], codec.encode(result))


def _file_head(file: FileReply) -> RawHeaders:
    """What it is is said by its type and not guessed; as a page it could do nothing."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%' else "_" for c in file.filename)
    kind, encoded = "inline" if file.inline else "attachment", quote(file.filename, safe="", errors="replace")
    disposition = f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{encoded}"
    return [
        (b"content-type", file.media_type.encode("latin-1")),
        (b"content-disposition", disposition.encode("ascii")),
        (b"content-security-policy", b"default-src 'none'; sandbox"),
        *_COMMON,
    ]


def _document(
    route: Route[Any, Any, Any], status: int, extra: list[tuple[bytes, bytes]], document: Document
) -> HttpReply:
    if route.kind is ReplyKind.JSON:
        raise UndeclaredReply(f"{route.operation_id} declares no Document")
    headers = [(b"content-type", document.media_type.encode("latin-1")), *_COMMON, *extra]
    if route.kind is ReplyKind.HTML:
        headers.append(_PAGE_POLICY)
    return HttpReply(status, headers, document.content)


def error_reply(error: NerveError, kind: ErrorKind | None = None) -> HttpReply:
    """The documented body of an error, in the operation's form of it or in the error's own."""
    told = error_body(error, kind)
    return HttpReply(told.status, [*_JSON, *header_bytes(told.headers)], codec.encode_plain(told.body))


def options_reply(allow: str, extra: Iterable[tuple[bytes, bytes]] = ()) -> HttpReply:
    return HttpReply(204, [(b"allow", allow.encode("ascii")), *_COMMON, *extra])


def header_bytes(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Raises UndeclaredReply for a header that would break out of its line."""
    encoded = []
    for name, value in headers:
        if not name.isascii() or not value.isprintable():
            raise UndeclaredReply(f"the header {name!r} has an impossible value")
        encoded.append((name.lower().encode("ascii"), value.encode("latin-1")))
    return encoded
