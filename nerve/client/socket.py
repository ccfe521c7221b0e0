"""The WebSocket half: frames as the contract's models, and one turn from a message to its end."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit

import trio
from attrs import define, field, frozen
from trio_websocket import ConnectionClosed, HandshakeError, WebSocketConnection, wrap_client_stream

from nerve.contract import codec
from nerve.contract.generated.frames_client import ClientFrame, MessageFrame
from nerve.contract.generated.frames_server import (
    SERVER_FRAMES,
    DoneFrame,
    ErrorFrame,
    QueueUpdateFrame,
    RemovalReason,
    ServerFrame,
    StoppedFrame,
)
from nerve.contract.unset import UNSET

MAX_FRAME_BYTES = 16 * 1024 * 1024  # a snapshot of a long turn is one frame
CLOSE_SECONDS = 2.0


class SocketEnded(Exception):
    """The server closed the socket, or did not open it."""


class TurnRefused(Exception):
    """The message did not become a turn; the text says why."""


@frozen(eq=False)
class ClientSocket:
    """Every method raises SocketEnded."""

    _connection: WebSocketConnection

    async def send(self, frame: ClientFrame) -> None:
        try:
            await self._connection.send_message(codec.encode(frame).decode())
        except ConnectionClosed as closed:
            raise _ended(closed) from None

    async def receive(self) -> ServerFrame:
        """The next frame; those of a type that this version does not know are passed over."""
        while True:
            try:
                message = await self._connection.get_message()
            except ConnectionClosed as closed:
                raise _ended(closed) from None
            found: Any = codec.parse_json(message)
            model = SERVER_FRAMES.get(found.get("type"))
            if model is not None:
                frame: ServerFrame = codec.structure(model, found)
                return frame

    async def turn(self, session_id: str, content: str) -> "ClientTurn":
        """Send a message; the frames of its turn are what iterating over the answer gives."""
        message_id = uuid.uuid4().hex  # noqa: TID251  a client has no Effects, and this id is its own
        await self.send(MessageFrame(session_id=session_id, content=content, client_msg_id=message_id))
        return ClientTurn(self, session_id, message_id)


@define(eq=False)
class ClientTurn:
    """The frames of one turn, from its start on; the last one is ``done``, ``stopped`` or ``error``.

    A turn that is running before it is waited for.  Iterating raises TurnRefused and SocketEnded.
    """

    _socket: ClientSocket
    _session_id: str
    _message_id: str
    _started: bool = field(default=False, init=False)
    _over: bool = field(default=False, init=False)

    def __aiter__(self) -> "ClientTurn":
        return self

    async def __anext__(self) -> ServerFrame:
        if self._over:
            raise StopAsyncIteration
        while True:
            frame = await self._socket.receive()
            if getattr(frame, "session_id", None) != self._session_id:
                continue
            if not self._started:
                self._started = _started(frame, self._message_id)
                continue
            self._over = isinstance(frame, DoneFrame | StoppedFrame | ErrorFrame) and frame.seq is not UNSET
            return frame


def _started(frame: ServerFrame, message_id: str) -> bool:
    """Whether this frame says that our message became a turn.  Raises TurnRefused."""
    if isinstance(frame, ErrorFrame) and frame.client_msg_id == message_id:
        raise TurnRefused(frame.error)
    if not isinstance(frame, QueueUpdateFrame) or not isinstance(frame.removed, list):
        return False
    reasons = [entry.reason for entry in frame.removed if entry.client_msg_id == message_id]
    if reasons and reasons[0] is not RemovalReason.STARTED:
        raise TurnRefused(f"the message was {reasons[0].value}")
    return bool(reasons)


@asynccontextmanager
async def open_socket(
    address: str, token: str, *, session_id: str | None = None, after_seq: int | None = None
) -> AsyncIterator[ClientSocket]:
    """A WebSocket to the server at this address; the token travels as a header, not in the URL.

    Raises SocketEnded if the server does not let us in.
    """
    bind = {"session_id": session_id, "after_seq": after_seq}
    query = urlencode({key: value for key, value in bind.items() if value is not None})
    failure: Exception | None = None
    async with await _connected(address) as stream, trio.open_nursery() as nursery:
        try:
            connection = await wrap_client_stream(
                nursery,
                stream,
                urlsplit(address).netloc,
                f"/ws?{query}" if query else "/ws",
                extra_headers=[(b"authorization", f"Bearer {token}".encode())],
                max_message_size=MAX_FRAME_BYTES,
            )
            yield ClientSocket(connection)
            with trio.move_on_after(CLOSE_SECONDS):
                await connection.aclose()
        except HandshakeError as refused:
            failure = SocketEnded(f"{address} does not open a socket: {refused}")
        except Exception as error:  # noqa: BLE001 - raised below, so that the nursery does not wrap it in a group
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _connected(address: str) -> trio.SocketStream | trio.SSLStream[trio.SocketStream]:
    url = urlsplit(address)
    host, tls = url.hostname or "", url.scheme == "https"
    try:
        if tls:
            return await trio.open_ssl_over_tcp_stream(host, url.port or 443)
        return await trio.open_tcp_stream(host, url.port or 80)
    except OSError as error:
        raise SocketEnded(f"{address} can't be reached: {error.strerror or error}") from None


def _ended(closed: ConnectionClosed) -> SocketEnded:
    reason = closed.reason
    if reason is None:
        return SocketEnded("the line to the server is lost")
    return SocketEnded(f"the server closed the socket: {reason.code} {reason.reason or ''}".rstrip())
