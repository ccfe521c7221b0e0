"""What both kinds of in-memory connection share: values, the referee's whistle, the app's life."""

import json as jsonlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn, Protocol, runtime_checkable

import trio
from attrs import field, frozen

App = Callable[[Any, Any, Any], Awaitable[None]]
Message = MutableMapping[str, Any]

WAIT_SECONDS = 10.0
_SINGLE = (b"content-type", b"content-length", b"x-request-id", b"access-control-allow-origin", b"x-nerve-token")


class ProtocolViolation(AssertionError):
    """The app broke the rules of ASGI, HTTP or WebSocket."""


class Refused(AssertionError):
    """A WebSocket upgrade was refused before it was accepted.  ``reply`` is None for a bare close."""

    def __init__(self, reply: "Reply | None") -> None:
        super().__init__("closed before accept" if reply is None else f"refused with {reply.status}")
        self.reply = reply


@frozen
class Request:
    method: str
    path: str  # as sent: percent-encoded, without the query
    query: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = field(default=b"", repr=False)


@frozen
class Reply:
    status: int
    raw_headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = field(repr=False)
    messages: int = 0  # how many ASGI messages it took

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode("ascii"): value.decode("latin-1") for name, value in self.raw_headers}

    @property
    def media_type(self) -> str:
        """Without its parameters, such as a charset."""
        return self.headers.get("content-type", "").partition(";")[0].rstrip().lower()

    @property
    def json(self) -> Any:
        assert self.media_type == "application/json", self
        return jsonlib.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")


@frozen
class Closed:
    """How a WebSocket ended for the client."""

    code: int
    reason: str = ""


class Observer(Protocol):
    """Hears of everything that crosses the front door."""

    def replied(self, request: Request, reply: Reply) -> None: ...
    def client_frame(self, text: str) -> None: ...
    def server_frame(self, text: str) -> None: ...


@runtime_checkable
class SocketObserver(Protocol):
    """An Observer that wants each socket told apart."""

    def of_socket(self, request: Request) -> Observer: ...


@asynccontextmanager
async def lone_errors() -> AsyncIterator[None]:
    """A single error leaves a nursery as itself, so that ``pytest.raises`` and people can read it."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


class Connection:
    """What both kinds of connection have in common: messages to the app, and the app's life."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.ended = trio.Event()
        self.left = False
        self.silent_when_gone = False
        self._violations: list[str] = []
        self._to_app, self._receive = trio.open_memory_channel[Message](10_000)

    def violation(self, text: str) -> NoReturn:
        """Recorded as well as raised: the app's own barrier may catch what is raised inside it."""
        self._violations.append(text)
        raise ProtocolViolation(text)

    def raise_violations(self) -> None:
        if self._violations:
            raise ProtocolViolation("; ".join(self._violations))

    async def run(self, app: App, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive.receive, self._send)
            if not self._violations:
                self._returned()
        except Exception:
            if not self._violations:  # else it is recorded already, whatever came of it on the way out
                raise
        finally:
            self.ended.set()
            self._over()

    @asynccontextmanager
    async def served_by(self, app: App, scope: dict[str, Any]) -> AsyncIterator[None]:
        """Runs the app beside the block; at its end the client leaves, and the app has to end within ``patience``."""
        async with lone_errors(), trio.open_nursery() as nursery:
            nursery.start_soon(self.run, app, scope)
            try:
                yield
            finally:
                self.disconnect()
                with trio.move_on_after(self.patience, shield=True):
                    await self.ended.wait()
                if not self.ended.is_set():
                    self._violations.append(f"the app still ran {self.patience} s after its client had left")
                nursery.cancel_scope.cancel()
        self.raise_violations()

    def disconnect(self) -> None:
        raise NotImplementedError

    def gone(self) -> bool:
        """Whether nobody takes what the app sends any more.  Raises OSError, as ASGI 2.4 asks of a server."""
        if self.left and not self.silent_when_gone:
            raise OSError("the client has left")
        return self.left

    async def _send(self, message: Message) -> None:
        raise NotImplementedError

    def _returned(self) -> None:
        """The app has returned: a violation if it owed an answer."""
        raise NotImplementedError

    def _over(self) -> None:
        """Nothing more comes from the app."""


def checked_headers(peer: Connection, headers: Any) -> tuple[tuple[bytes, bytes], ...]:
    seen = []
    for name, value in headers:
        if type(name) is not bytes or type(value) is not bytes:
            peer.violation(f"header {name!r} is not bytes")
        if not name or name != name.lower() or any(c <= 32 or c >= 127 or c in b'(),/:;<=>?@[]{}"\\' for c in name):
            peer.violation(f"header name {name!r} is not lower-case or no token")
        if any((c < 32 and c != 9) or c == 127 for c in value) or value != value.strip():
            peer.violation(f"header {name!r} has the impossible value {value!r}")
        seen.append((name, value))
    names = [name for name, _ in seen]
    for single in _SINGLE:
        if names.count(single) > 1:
            peer.violation(f"header {single!r} is sent twice")
    if b"transfer-encoding" in names:
        peer.violation("framing is the server's business, not the app's")
    return tuple(seen)
