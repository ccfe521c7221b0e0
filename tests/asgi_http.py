"""One HTTP request in memory, with a referee for what the app sends back."""

from collections.abc import Sequence
from typing import Any

import trio
import trio.testing

from tests.asgi_wire import Connection, Message, Observer, Reply, Request, checked_headers

_NO_BODY = (204, 304)


class HttpExchange(Connection):
    """One request while it is under way."""

    def __init__(self, request: Request, observers: Sequence[Observer], patience: float) -> None:
        super().__init__(patience)
        self.request = request
        self._observers = observers
        self._status = 0
        self._headers: tuple[tuple[bytes, bytes], ...] = ()
        self._body = bytearray()
        self._messages = 0
        self._complete = False
        self.streams = trio.Event()  # the reply has begun, and is one that goes on
        self.reads = True  # False: the app's next ``send`` waits for ever
        self.answered = trio.Event()  # the whole body that Content-Length announces has been sent

    def feed(self, part: bytes, *, more: bool) -> None:
        self._to_app.send_nowait({"type": "http.request", "body": part, "more_body": more})

    async def send_body(self, part: bytes, *, more: bool = True) -> None:
        self.feed(part, more=more)
        await trio.testing.wait_all_tasks_blocked()

    def disconnect(self) -> None:
        if not self.left:
            self.left = True
            self._to_app.send_nowait({"type": "http.disconnect"})

    async def reply(self) -> Reply:
        """The whole reply; of one that goes on for ever, its beginning, and then the client leaves.

        Raises ProtocolViolation if the app ends without one.
        """
        with trio.fail_after(self.patience):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._leave_stream)
                await self.ended.wait()
                nursery.cancel_scope.cancel()
        self.raise_violations()
        reply = self._reply()
        for observer in self._observers:
            observer.replied(self.request, reply)
        return reply

    async def _leave_stream(self) -> None:
        await self.streams.wait()
        await trio.testing.wait_all_tasks_blocked()
        self.disconnect()

    @property
    def status(self) -> int:
        """0 before the reply has begun."""
        return self._status

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return self._headers

    @property
    def received(self) -> bytes:
        """What has come of the body so far."""
        return bytes(self._body)

    def _reply(self) -> Reply:
        return Reply(self._status, self._headers, bytes(self._body), self._messages)

    async def _send(self, message: Message) -> None:
        await trio.lowlevel.checkpoint()
        if self.gone():
            return
        if not self.reads:
            await trio.sleep_forever()
        self._messages += 1
        match message["type"]:
            case "http.response.start":
                self._start(message)
            case "http.response.body":
                self._more(message.get("body", b""), more=message.get("more_body", False))
            case other:
                self.violation(f"unknown message {other!r}")

    def _start(self, message: Message) -> None:
        if self._status:
            self.violation("the reply was started twice")
        if type(message["status"]) is not int or not 200 <= message["status"] <= 599:
            self.violation(f"impossible status {message['status']!r}")
        self._headers = checked_headers(self, message.get("headers", ()))
        self._status = message["status"]
        if (b"content-type", b"text/event-stream") in self._headers and self.request.method != "HEAD":
            self.streams.set()
        if self._status in _NO_BODY and self._announced is not None:
            self.violation(f"a {self._status} has no Content-Length")

    @property
    def _announced(self) -> int | None:
        return next((int(value) for name, value in self._headers if name == b"content-length"), None)

    def _more(self, part: Any, *, more: bool) -> None:
        if not self._status:
            self.violation("a body came before the start of the reply")
        if self._complete:
            self.violation("a body came after the end of the reply")
        if type(part) is not bytes:
            self.violation(f"a body has to be bytes, not {type(part).__name__}")
        self._body += part
        bodiless = self.request.method == "HEAD" or self._status in _NO_BODY
        if bodiless and self._body:
            self.violation(f"a reply to {self.request.method} with status {self._status} has no body")
        announced = 0 if bodiless else self._announced
        if announced is not None and (len(self._body) > announced or (not more and len(self._body) != announced)):
            self.violation(f"Content-Length says {announced}, the body has {len(self._body)} bytes")
        if announced == len(self._body):
            self.answered.set()
        if not more:
            self._complete = True

    def _returned(self) -> None:
        if not self._complete and not self.left and self.reads:
            self.violation("the app returned before it had answered")
