"""Reading a request body: within its bound of bytes and seconds, and never left half-read behind a reply."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import trio

from nerve.asgi.policy import HttpPolicy
from nerve.asgi.protocol import ClientLeft, Message, Receive
from nerve.contract import codec
from nerve.contract.route import AuthPolicy, BodyStream, NoBody, Route
from nerve.errors import ErrorCode, NerveError, Problem

SETTLE_BYTES = 64 * 1024  # a body this small is read to its end, so that the connection can be kept
SETTLE_SECONDS = 1.0
LINGER_SECONDS = 2.0  # how long, and how much, a client may go on uploading until it notices that it was refused
LINGER_BYTES = 64 * 1024 * 1024


class RequestBody:
    """The receiving side of one HTTP exchange; one task at a time may use it."""

    def __init__(self, receive: Receive, headers: Mapping[bytes, bytes], *, http1: bool, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self.http1 = http1
        self.declared = _content_length(headers.get(b"content-length"))
        # Only HTTP/1 says in the head that there is no body.
        none = http1 and b"content-length" not in headers and b"transfer-encoding" not in headers
        self.finished = none or self.declared == 0
        self._too_slow = False
        self._unsettled = False
        self._taken_bytes = 0

    def allow(self, limit: int) -> None:
        """Another bound of bytes for this body.  Raises NerveError ``body_too_large`` if it says it is larger."""
        self._limit = limit
        if self.declared is not None and self.declared > limit:
            raise NerveError(ErrorCode.BODY_TOO_LARGE, limit=limit)

    async def read(self, seconds: float) -> bytes:
        """The whole body.

        Raises NerveError: ``body_too_large`` as soon as that is known; ``invalid_request`` if it takes too long.
        """
        self.allow(self._limit)
        if self.finished:
            return b""
        with trio.move_on_after(seconds):
            first = await self._part()
            small = self.finished and len(first) <= self._limit
            return first if small else await self._rest(bytearray(first))
        raise self._slow()

    def _slow(self) -> NerveError:
        self._too_slow = self._unsettled = True
        return NerveError(ErrorCode.INVALID_REQUEST, problems=[_TOO_SLOW])

    async def _rest(self, body: bytearray) -> bytes:
        while True:
            if len(body) > self._limit:
                raise NerveError(ErrorCode.BODY_TOO_LARGE, limit=self._limit)
            if self.finished:
                return bytes(body)
            body += await self._part()

    def parts(self, seconds: float, stall_seconds: float) -> AsyncIterator[bytes]:
        """The body as it comes.  Raises as ``read`` does, and ClientLeft."""
        return _Parts(self, trio.current_time() + seconds, stall_seconds)

    async def next_part(self, until: float) -> bytes | None:
        """None at the end.  Raises as ``read`` does, and ClientLeft."""
        while not self.finished:
            part = None
            with trio.move_on_at(until):
                part = await self._part()
            if part is None:
                raise self._slow()
            self._taken_bytes += len(part)
            if self._taken_bytes > self._limit:
                raise NerveError(ErrorCode.BODY_TOO_LARGE, limit=self._limit)
            if part:
                return part
        return None

    async def settle(self) -> bool:
        """Drop what is left if it is small and comes soon.  False: the connection can't be used again."""
        if not self.finished and not self._unsettled and (self.declared or 0) <= SETTLE_BYTES:
            await self._drop(SETTLE_BYTES, SETTLE_SECONDS)
            self._unsettled = not self.finished
        return self.finished

    async def linger(self) -> None:
        """Keep reading for a little while after a reply, so that a reset does not overtake it."""
        if not self._too_slow:
            try:
                await self._drop(LINGER_BYTES, LINGER_SECONDS)
            except ClientLeft:
                self.finished = True

    async def _drop(self, most_bytes: int, seconds: float) -> None:
        dropped = 0
        with trio.move_on_after(seconds):
            while not self.finished and dropped <= most_bytes:
                dropped += len(await self._part())

    async def until_left(self) -> None:
        """Wait for the client to leave.  Returns early if it sends more than a body may have."""
        surplus = 0
        while surplus <= self._limit:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return
            surplus += len(self._taken(message))
        await trio.sleep_forever()

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        return self._taken(message)

    def _taken(self, message: Message) -> bytes:
        self.finished = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part


class _Parts:
    """No generator, because one that is left half-way would have to be closed."""

    def __init__(self, body: RequestBody, until: float, stall_seconds: float) -> None:
        self._body = body
        self._until = until
        self._stall_seconds = stall_seconds

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        part = await self._body.next_part(min(self._until, trio.current_time() + self._stall_seconds))
        if part is None:
            raise StopAsyncIteration
        return part


_TOO_SLOW = Problem("body_timeout", ("body",), "The request body did not arrive in time.")
_MISSING = Problem("missing", ("body",), "This request needs a body.")


def _content_length(value: bytes | None) -> int | None:
    return int(value) if value is not None and value.isdigit() and len(value) < 20 else None


def is_type(content_type: bytes | None, media_type: str) -> bool:
    """Whether a header names this media type, with whatever parameters."""
    named = (content_type or b"").decode("latin-1").partition(";")[0]
    return named.strip().lower() == media_type


def is_json(content_type: bytes | None) -> bool:
    """``application/json`` or ``application/*+json`` in UTF-8; an absent type is read as JSON."""
    if content_type == b"application/json" or content_type is None or not content_type.strip():
        return True
    media_type, *parameters = content_type.decode("latin-1").lower().split(";")
    media_type = media_type.strip()
    if media_type != "application/json" and not (
        media_type.startswith("application/") and media_type.endswith("+json") and " " not in media_type
    ):
        return False
    charsets = [value.strip() for name, _, value in (p.partition("=") for p in parameters) if name.strip() == "charset"]
    return all(charset.strip('"') in ("utf-8", "utf8") for charset in charsets)


async def read_body(
    route: Route[Any, Any, Any], body: RequestBody, content_type: bytes | None, policy: HttpPolicy
) -> bytes | BodyStream:
    """The raw body of an operation, its size and type checked, in this order; b"" if it takes none.

    A body that its handler reads is not begun.  Raises NerveError: ``body_too_large``, ``unsupported_media_type``,
    ``invalid_request``.
    """
    if route.body is NoBody:
        await body.settle()
        return b""
    if route.auth is AuthPolicy.OPEN:
        body.allow(min(policy.max_body_bytes, policy.max_open_body_bytes))
    elif route.max_body_bytes is not None:
        body.allow(route.max_body_bytes)
    if route.body is BodyStream:
        if not is_type(content_type, route.media_type):
            raise NerveError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, media_type=route.media_type)
        sent = (content_type or b"").decode("latin-1")
        return BodyStream(sent, body.parts(policy.upload_seconds, policy.upload_stall_seconds))
    raw = await body.read(policy.body_seconds)
    if raw and not is_json(content_type):
        raise NerveError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, media_type=route.media_type)
    return raw


def decode(
    route: Route[Any, Any, Any],
    path: Mapping[str, str],
    query: Mapping[str, str],
    headers: Mapping[str, str],
    raw: bytes | BodyStream,
) -> tuple[Any, Any]:
    """Parameters and body as the operation's models.  Raises NerveError ``invalid_request`` with all problems."""
    params = body = None
    problems: list[Problem] = []
    try:
        query = {name: text for name, text in query.items() if name not in route.headers}
        params = codec.decode_params(route.params, path, query, headers)
    except codec.Invalid as invalid:
        problems.extend(invalid.problems)
    try:
        body = _decode_body(route, raw)
    except codec.Invalid as invalid:
        problems.extend(invalid.problems)
    if problems:
        raise NerveError(ErrorCode.INVALID_REQUEST, problems=problems)
    return params, body


def _decode_body(route: Route[Any, Any, Any], raw: bytes | BodyStream) -> Any:
    if isinstance(raw, BodyStream):
        return raw
    if route.body is NoBody:
        return NoBody()
    if raw:
        return codec.decode_body(route.body, raw)
    if route.body_required:
        raise codec.Invalid([_MISSING])
    return codec.structure(route.body, {})
