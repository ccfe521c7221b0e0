"""One WebSocket, from its opening to its end: frames as the contract's models, and one turn's frames."""

import ssl
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit

import trio
from attrs import define, field, frozen
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, WebSocketConnection, wrap_client_stream
from wsproto.utilities import ProtocolError

from nerve.client.errors import SocketEnded, TurnRefused, reason_of
from nerve.client.turns import TurnWatch
from nerve.contract import codec
from nerve.contract.generated.frames_client import ClientFrame, MessageFrame
from nerve.contract.generated.frames_server import SERVER_FRAMES, ServerFrame

MAX_FRAME_BYTES = 16 * 1024 * 1024  # a snapshot of a long turn is one frame
UNREAD_FRAMES = 64
OPEN_SECONDS = 10.0
SEND_SECONDS = 30.0
CLOSE_SECONDS = 2.0
ENDED_SECONDS = 0.1
REASON_SECONDS = 1.0  # between a refusal and the error that explains it
PROTOCOL_ERROR = 1002
ABNORMAL = 1006

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


@frozen(eq=False)
class ClientSocket:
    """Every method raises SocketEnded.

    The server's pings are answered while nobody calls ``receive``, until more than ``UNREAD_FRAMES`` frames have come:
    pings come behind them on the same line, so the server then takes the socket for a stalled one and closes it.
    """

    _connection: WebSocketConnection

    async def send(self, frame: ClientFrame) -> None:
        """Waits while the server does not read, at most ``SEND_SECONDS``."""
        try:
            with trio.fail_after(SEND_SECONDS):
                await self._connection.send_message(codec.encode(frame).decode())
        except ConnectionClosed as closed:
            raise _ended(closed) from None
        except trio.TooSlowError:
            raise SocketEnded("the server does not read") from None

    async def receive(self) -> ServerFrame:
        """The next frame; those of a type that this version does not know are passed over."""
        while True:
            try:
                message = await self._connection.get_message()
            except ConnectionClosed as closed:
                raise _ended(closed) from None
            try:
                frame = read_frame(codec.parse_json(message))
            except codec.Invalid as invalid:
                raise SocketEnded(f"the server sent what is no frame: {invalid}") from None
            if frame is not None:
                return frame

    async def turn(self, session_id: str, content: str) -> "ClientTurn":
        """Send a message; the frames of its turn are what iterating over the answer gives."""
        message_id = new_message_id()
        await self.send(MessageFrame(session_id=session_id, content=content, client_msg_id=message_id))
        return ClientTurn(self, TurnWatch(session_id, message_id))


def new_message_id() -> str:
    return uuid.uuid4().hex  # noqa: TID251  a client has no Effects, and this id is its own


def read_frame(found: Any) -> ServerFrame | None:
    """The frame that parsed JSON stands for; None for a type of a newer server.  Raises codec.Invalid."""
    kind = found.get("type") if isinstance(found, dict) else None
    model = SERVER_FRAMES.get(kind) if isinstance(kind, str) else None
    if model is None:
        return None
    frame: ServerFrame = codec.structure(model, found, ())
    return frame


@define(eq=False)
class ClientTurn:
    """The frames of one turn, from its start on; the last one is ``done``, ``stopped`` or ``error``.

    A turn that is running before it is waited for.  Iterating raises TurnRefused and SocketEnded.
    """

    _socket: ClientSocket
    _watch: TurnWatch

    def __aiter__(self) -> "ClientTurn":
        return self

    async def __anext__(self) -> ServerFrame:
        while not self._watch.over:
            frame = await self._socket.receive()
            if self._watch.see(frame):
                return frame
        with trio.move_on_after(REASON_SECONDS):
            while not self._watch.explained:
                self._watch.see(await self._socket.receive())
        if self._watch.refusal is not None:
            raise TurnRefused(self._watch.refusal)
        raise StopAsyncIteration


@asynccontextmanager
async def open_socket(
    address: str,
    token: str,
    *,
    session_id: str | None = None,
    after_seq: int | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[ClientSocket]:
    """A WebSocket to the server at this address; the token travels as a header, not in the URL.

    Raises SocketEnded if the server does not let us in.  Leaving the block closes it, within ``CLOSE_SECONDS``.
    """
    bind = {"session_id": session_id, "after_seq": after_seq}
    query = urlencode({key: value for key, value in bind.items() if value is not None})
    failure: Exception | None = None
    stream = _WatchedStream(await _connected(address, tls))
    try:
        async with stream, trio.open_nursery() as nursery:
            try:
                connection = await _opened(nursery, stream, address, f"/ws?{query}" if query else "/ws", token)
                yield ClientSocket(connection)
                with trio.move_on_after(CLOSE_SECONDS):
                    await connection.aclose()
            except Exception as error:  # noqa: BLE001 - raised below, so that the nursery does not wrap it in a group
                failure = error
            nursery.cancel_scope.cancel()
    except* ConnectionRejected as refused:
        failure = _refused(address, refused.exceptions[0])  # raised by the library's reader where there is a body
    except* (ConnectionClosed, ProtocolError):
        failure = SocketEnded("the server broke the protocol", PROTOCOL_ERROR)  # what the reader fell over
    if failure is not None:
        raise failure


async def _opened(
    nursery: trio.Nursery, stream: "_WatchedStream", address: str, target: str, token: str
) -> WebSocketConnection:
    """The connection, after its handshake.  The library would wait for ever for one that breaks off."""
    connection: WebSocketConnection | None = None
    failure: SocketEnded | None = None
    with trio.move_on_after(OPEN_SECONDS):
        async with trio.open_nursery() as race:
            race.start_soon(_broken_off, stream, race.cancel_scope)
            try:
                connection = await wrap_client_stream(
                    nursery,
                    stream,  # type: ignore[arg-type]  # any stream will do
                    urlsplit(address).netloc,
                    target,
                    extra_headers=[(b"authorization", f"Bearer {token}".encode())],
                    max_message_size=MAX_FRAME_BYTES,
                    message_queue_size=UNREAD_FRAMES,
                )
            except ConnectionRejected as refused:
                failure = _refused(address, refused)
            except (HandshakeError, ConnectionClosed) as refused:
                failure = SocketEnded(f"{address} does not open a socket: {refused}")
            race.cancel_scope.cancel()
    if connection is None:
        what = "broke off the handshake" if stream.ended.is_set() else "does not answer in time"
        raise failure or SocketEnded(f"{address} {what}")
    return connection


async def _broken_off(stream: "_WatchedStream", handshake: trio.CancelScope) -> None:
    await stream.ended.wait()
    await trio.sleep(ENDED_SECONDS)  # a refusal that came before the end counts
    handshake.cancel()


@define(eq=False)
class _WatchedStream(trio.abc.Stream):
    """A stream that tells when nothing can come any more."""

    _stream: Stream
    ended: trio.Event = field(factory=trio.Event)

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        try:
            data = await self._stream.receive_some(max_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.ended.set()
            raise
        if not data:
            self.ended.set()
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self.ended.set()
        await self._stream.aclose()


async def _connected(address: str, tls: ssl.SSLContext | None) -> Stream:
    url = urlsplit(address)
    host = url.hostname or ""
    try:
        with trio.fail_after(OPEN_SECONDS):
            if url.scheme != "https":
                return await trio.open_tcp_stream(host, url.port or 80)
            secure = await trio.open_ssl_over_tcp_stream(host, url.port or 443, ssl_context=tls)
            await secure.do_handshake()
            return secure
    except (OSError, trio.BrokenResourceError) as error:
        raise SocketEnded(f"{address} can't be reached: {reason_of(error)}") from None
    except trio.TooSlowError:
        raise SocketEnded(f"{address} does not answer in time") from None


def _refused(address: str, refused: BaseException) -> SocketEnded:
    """With the sentence of the error body, if it has one."""
    while isinstance(refused, BaseExceptionGroup):
        refused = refused.exceptions[0]
    assert isinstance(refused, ConnectionRejected)
    try:
        found = codec.parse_json(refused.body or b"")
    except codec.Invalid:
        found = None
    detail = found.get("detail") if isinstance(found, dict) else None
    said = f", {detail}" if isinstance(detail, str) else ""
    return SocketEnded(f"{address} refuses the socket: HTTP {refused.status_code}{said}")


def _ended(closed: ConnectionClosed) -> SocketEnded:
    reason = closed.reason
    if reason is None or reason.code == ABNORMAL:
        return SocketEnded("the line to the server is lost")
    said = f" {reason.reason}" if reason.reason else ""
    return SocketEnded(f"the server closed the socket: {reason.code}{said}", reason.code)
