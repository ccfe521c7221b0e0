"""The client is the referee: whatever a test provokes has to be what spec/ promises.

``SpecObserver`` sits on every client of the suite and fails the test that gets an undocumented reply or frame.
``SpecClient`` calls operations by their id, and tells which documented reply it got.
"""

import json as jsonlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from urllib.parse import quote

import httpx
import trio
from attrs import evolve, frozen

from tests.asgi_wire import Reply, Request
from tests.contract.spec_reader import ERRORS
from tests.spec_frames import SocketReferee, SpecViolation, event_complaints
from tests.spec_replies import (
    BY_ID,
    Documented,
    Resource,
    body_complaints,
    error_names,
    errors_of,
    find,
    is_error,
    media_type_of,
)

__all__ = ["Answer", "SocketClient", "SpecClient", "SpecObserver", "SpecViolation", "Wire", "judge", "judged"]

STREAM_SECONDS = 1.0
LONGEST_TARGET = 8000  # bytes that a server has to take (RFC 9112 3)
# What this implementation adds to every reply; spec/ promises none of it.
_OURS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


@frozen
class SpecObserver:
    """Judges every reply and, by a referee of its own for each, every socket.

    ``mode`` is the server's auth mode; ``ours``: this implementation, which keeps more than spec/ promises.
    """

    mode: str = "local"
    ours: bool = True

    def replied(self, request: Request, reply: Reply) -> None:
        judge(self.mode, request, reply)
        if self.ours:
            judge_headers(request, reply)

    def of_socket(self, request: Request) -> SocketReferee:
        return SocketReferee()

    def client_frame(self, text: str) -> None:
        raise AssertionError("sockets have referees of their own")

    def server_frame(self, text: str) -> None:
        raise AssertionError("sockets have referees of their own")


def judge(mode: str, request: Request, reply: Reply) -> Documented | None:
    """Which promise the reply keeps; None for one that stands before any operation.  Raises SpecViolation."""
    where = _told(request, reply)
    if reply.status == 414 and len(request.path) + len(request.query) > LONGEST_TARGET:
        _require(_json(reply, where).keys() == {"detail"}, "an error has a detail", where)
        return None
    resource = find(mode, request.path)
    if resource is None:
        _before_routing(request, reply, where, "not_found", "wrong_host")
        return None
    if request.method == "OPTIONS":
        _options(request, resource, reply, where)
        return None
    call = resource.calls.get(request.method) or (resource.calls.get("GET") if request.method == "HEAD" else None)
    if call is None:
        _before_routing(request, reply, where, "method_not_allowed", "wrong_host")
        allowed = reply.status != 405 or _allow(reply) == resource.allow
        _require(allowed, f"Allow says {_allow(reply)}, not {resource.allow}", where)
        return None
    if request.method == "HEAD":
        _require(reply.status in _statuses(call.id), "the status is not documented", where)
        return None
    if str(reply.status) in call.raw["responses"]:
        return _success(call.id, reply, where)
    return _error(call.id, reply, where)


def judge_headers(request: Request, reply: Reply) -> None:
    """Raises SpecViolation if the reply lacks what every one of this implementation has."""
    for name, value in _OURS.items():
        _require(reply.headers.get(name) == value, f"{name} is missing", _told(request, reply))
    _require("x-request-id" in reply.headers, "it has no request id", _told(request, reply))


def _told(request: Request, reply: Reply) -> str:
    return f"{request.method} {request.path[:200]} answered {reply.status} {reply.body[:500]!r}"


def judged(response: httpx.Response, mode: str = "local") -> httpx.Response:
    """The response, if it keeps a promise.  Raises SpecViolation."""
    request = response.request
    path = request.url.raw_path.decode("ascii").partition("?")[0]
    headers = tuple((name.lower(), value) for name, value in response.headers.raw)
    sent, got = Request(request.method, path), Reply(response.status_code, headers, response.content)
    judge(mode, sent, got)
    judge_headers(sent, got)
    return response


def _statuses(operation_id: str) -> set[int]:
    declared = {int(status) for status in BY_ID[operation_id].raw["responses"]}
    return declared | {ERRORS[name]["status"] for name in errors_of(operation_id)}


def _success(operation_id: str, reply: Reply, where: str) -> Documented:
    media_type = media_type_of(operation_id, reply.status)
    _require(media_type in ("*/*", reply.media_type), f"it is no {media_type}", where)
    _require("retry-after" not in reply.headers, "a success has nothing to retry", where)
    body = reply.json if media_type == "application/json" else _text(media_type, reply)
    found = list(body_complaints(operation_id, reply.status, body))
    if media_type == "text/event-stream":
        found += event_complaints(body)
    _require(not found, "; ".join(found), where)
    return Documented(operation_id, reply.status)


def _text(media_type: str, reply: Reply) -> str:
    """What is no text is any string."""
    return reply.text if media_type.startswith("text/") else reply.body.decode("latin-1")


def _error(operation_id: str, reply: Reply, where: str) -> Documented:
    names = error_names(_json(reply, where), errors_of(operation_id), reply.status)
    _require(bool(names), f"{operation_id} documents no such error", where)
    _require(len(names) == 1, f"it may be any of {names}", where)
    _retry_after(reply, names[0], where)
    return Documented(operation_id, reply.status, names[0])


def _before_routing(request: Request, reply: Reply, where: str, *names: str) -> None:
    fitting = [name for name in names if ERRORS[name]["status"] == reply.status]
    if request.method != "HEAD":
        body = _json(reply, where)
        fitting = [name for name in fitting if is_error(body, name)]
    _require(bool(fitting), f"only {names} can be told here", where)
    _retry_after(reply, fitting[0], where)


def _options(request: Request, resource: Resource, reply: Reply, where: str) -> None:
    if reply.status == 421:
        _before_routing(request, reply, where, "wrong_host")
        return
    _require((reply.status, reply.body) == (204, b""), "OPTIONS is answered with an empty 204", where)
    _require(_allow(reply) == resource.allow, f"Allow says {_allow(reply)}, not {resource.allow}", where)


def _allow(reply: Reply) -> set[str]:
    return {method.strip() for method in reply.headers.get("allow", "").split(",")}


def _retry_after(reply: Reply, name: str, where: str) -> None:
    declared = ERRORS[name].get("retry_after")
    seconds = reply.headers.get("retry-after")
    fits = seconds is None if declared is None else seconds is not None and seconds.isdigit()
    _require(fits, f"Retry-After of {name} is {seconds!r}, declared {declared!r}", where)


def _json(reply: Reply, where: str) -> Any:
    _require(reply.media_type == "application/json", "an error is JSON", where)
    try:
        return jsonlib.loads(reply.body)
    except ValueError:
        raise SpecViolation(f"{where}: this is no JSON") from None


def _require(condition: bool, complaint: str, where: str) -> None:
    if not condition:
        raise SpecViolation(f"{where}: {complaint}")


# --- the client that scenarios are written against ----------------------------------------------------------------


class SocketClient(Protocol):
    """One WebSocket.  What closes it comes from ``receive`` and ``expect_close`` as a ``Closed``."""

    async def send_json(self, frame: Any) -> None: ...
    async def send_text(self, text: str) -> None: ...
    async def send_bytes(self, data: bytes) -> None: ...
    async def receive_json(self, within: float = ...) -> Any: ...
    async def receive_until(self, type: str, within: float = ...) -> list[Any]: ...
    async def expect_close(self, code: int | None = None, within: float = ...) -> Any: ...
    async def close(self, code: int = ...) -> None: ...


class Exchange(Protocol):
    """A request that is under way.  ``status`` is 0 until the reply has begun."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]: ...
    @property
    def received(self) -> bytes: ...
    async def reply(self) -> Reply:
        """The whole reply, once it is there."""
        ...


class Wire(Protocol):
    """The way to one server: in memory, or over a network.  Every reply and frame has been judged before it returns."""

    @property
    def token(self) -> str | None: ...
    def with_(self, **changes: Any) -> "Wire":
        """A copy with another ``token``, ``host`` or ``headers``; in memory also another ``peer``."""
        ...

    async def request(self, method: str, path: str, **options: Any) -> Reply:
        """``json``, ``content``, ``query`` and ``headers`` as those of AsgiClient."""
        ...

    def open(
        self, method: str, path: str, *, json: Any = ..., content: Any = ..., query: Any = ..., headers: Any = ...
    ) -> AbstractAsyncContextManager[Exchange]:
        """A request whose reply may go on and on; leaving the block leaves it."""
        ...

    def websocket(
        self, path: str = ..., *, query: Any = ..., headers: Any = ...
    ) -> AbstractAsyncContextManager[SocketClient]: ...


@frozen
class Answer:
    """A reply, and which promise it keeps; None for one that stands before any operation."""

    reply: Reply
    documented: Documented | None

    @property
    def status(self) -> int:
        return self.reply.status

    @property
    def json(self) -> Any:
        return self.reply.json

    @property
    def code(self) -> str:
        return "" if self.documented is None else self.documented.code


@frozen
class SpecClient:
    """One caller.  ``mode`` is the server's auth mode."""

    wire: Wire
    mode: str = "local"

    def with_(self, **changes: Any) -> "SpecClient":
        return evolve(self, wire=self.wire.with_(**changes))

    async def call(
        self, operation_id: str, json: Any = ..., *, path: Mapping[str, str] | None = None, **options: Any
    ) -> Answer:
        """Call an operation; ``path`` holds the values of its path parameters, unencoded."""
        call = BY_ID[operation_id]
        filled = call.path
        for name, value in (path or {}).items():
            filled = filled.replace(f"{{{name}}}", quote(value, safe=""))
        if call.nerve.get("reply") == "event_stream":
            return self._answer(call.method.upper(), filled, await self._beginning(filled, **options))
        return await self.send(call.method.upper(), filled, json=json, **options)

    async def _beginning(self, path: str, **options: Any) -> Reply:
        """The reply as far as it comes within ``STREAM_SECONDS``; then the client leaves."""
        async with self.wire.open("GET", path, **options) as exchange:
            with trio.move_on_after(STREAM_SECONDS):
                return await exchange.reply()
            return Reply(exchange.status, exchange.headers, exchange.received)

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        """A request that spec/ may know nothing of; ``path`` is percent-encoded."""
        return self._answer(method, path, await self.wire.request(method, path, **options))

    def _answer(self, method: str, path: str, reply: Reply) -> Answer:
        request = Request(method=method, path=path.partition("?")[0])
        return Answer(reply, judge(self.mode, request, reply))

    async def ok(self, operation_id: str, json: Any = ..., **options: Any) -> Any:
        """Call an operation that has to succeed; its body."""
        answer = await self.call(operation_id, json, **options)
        assert answer.documented is not None, answer
        assert answer.code == "", answer
        return answer.json

    def connect(
        self, query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[SocketClient]:
        return self.wire.websocket("/ws", query=query or {}, headers=headers or {})
