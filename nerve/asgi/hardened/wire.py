"""One socket, plain or TLS, whose every wait ends.

Cures of Hypercorn 0.18: it sends with ``send_all`` in a shielded scope, so one client that does not read holds a task,
a deadline and the whole shutdown for ever; it writes a response in up to three locked writes; and it closes a socket
that still has unread bytes, whose reset overtakes the answer.
"""

import contextlib
import fcntl
import os
import socket
import ssl
import struct
import sys
import termios
from collections.abc import Callable

import trio

from nerve.asgi.hardened.limits import Limits

_READ_BYTES = 64 * 1024
_RESET = struct.pack("ii", 1, 0)
_USER_TIMEOUT_MS = 20_000  # for bytes that the kernel holds; what is not yet there has ``stall_seconds``
_SEND_BYTES = 64 * 1024
_OWED_BYTES = 16 * 1024
_LOOKS = 4  # at what the kernel still holds, within ``stall_seconds``


class Gone(ConnectionError):
    """The peer, or the socket, is no longer there."""


class Stalled(Gone):
    """The peer took nothing for ``stall_seconds``."""


class Wire:
    """``put`` queues, ``flush`` waits until the kernel has taken all of it; one task at a time reads.

    A cancelled ``flush`` keeps what was not sent, so the next one goes on within the same frame.
    """

    def __init__(self, sock: trio.socket.SocketType, limits: Limits, tls: ssl.SSLContext | None = None) -> None:
        self._socket = sock
        self._limits = limits
        self._out = bytearray()
        self._flushing = trio.Lock()
        self._tls = None if tls is None else _Tls(tls)
        self._owed = 0  # bytes that TLS itself had to answer since the peer last took everything
        self.open = True
        self._on_progress: Callable[[], None] | None = None
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            self._option(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS)
        self._option(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def _option(self, level: int, option: int, value: int) -> None:
        try:
            self._socket.setsockopt(level, option, value)
        except OSError:  # not TCP, or the peer has reset it already
            return

    def _must_be_open(self) -> None:
        """Raises Gone.  Trio takes a second wait for any closed socket for a second task on the same one."""
        if not self.open:
            raise Gone("the socket is closed")

    def on_progress(self, moved: Callable[[], None]) -> None:
        """Have ``moved`` called whenever the kernel took bytes.  It must not wait or raise."""
        self._on_progress = moved

    @property
    def waiting(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return len(self._out)

    @property
    def flushing(self) -> bool:
        return self._flushing.locked()

    async def handshake(self) -> None:
        """TLS, within its seconds.  Raises Gone."""
        if self._tls is None:
            return
        with trio.move_on_after(self._limits.tls_seconds) as scope:
            while not self._tls.shake():
                await self._flush_tls()
                if not (data := await self._receive()):
                    raise Gone("no handshake")
                self._tls.incoming.write(data)
            await self._flush_tls()
        if scope.cancelled_caught:
            raise Gone("no handshake in time")

    async def _flush_tls(self) -> None:
        assert self._tls is not None
        self._out += self._tls.outgoing.read()
        await self.flush()

    # --- in -------------------------------------------------------------------------------------------------------

    async def read(self, size: int = _READ_BYTES) -> bytes:
        """What has come, waiting for the first byte; b"" at the peer's end.  Raises Gone.

        Cancelled, nothing is lost.
        """
        if self._tls is None:
            return await self._receive(size)
        while True:
            data = self._tls.read(size)
            self._owe(self._tls.outgoing.read())
            if data is not None:
                await trio.lowlevel.checkpoint()
                return data
            raw = await self._receive()
            if raw:
                self._tls.incoming.write(raw)
            else:
                self._tls.incoming.write_eof()

    def _owe(self, answers: bytes) -> None:
        """Answers to what TLS does below the stream, such as new keys.  Raises Gone for who asks and does not read."""
        if not answers:
            return
        if not self._out:
            self._owed = 0
        self._out += answers
        self._owed += len(answers)
        if not self._flushing.locked():
            self._send_now()
        if self._out and self._owed > _OWED_BYTES:
            raise Gone("the peer does not read")

    async def _receive(self, size: int = _READ_BYTES) -> bytes:
        # Waiting first: after a response there is hardly ever anything yet, and a vain recv costs as much as another.
        try:
            while True:
                self._must_be_open()
                await trio.lowlevel.wait_readable(self._socket)
                with contextlib.suppress(BlockingIOError):
                    return os.read(self._socket.fileno(), size)
        except (OSError, ValueError, trio.ClosedResourceError) as exc:
            raise Gone("the socket is broken") from exc

    # --- out ------------------------------------------------------------------------------------------------------

    def put(self, data: bytes) -> None:
        """Queue bytes behind those that wait.  Raises Gone."""
        self._must_be_open()
        if self._tls is not None:
            data = self._tls.encrypted(data)
        self._out += data

    async def write(self, data: bytes) -> None:
        """``put`` and ``flush``.  Raises Gone, Stalled.  No checkpoint when the kernel takes all of it at once."""
        self.put(data)
        if not self._flushing.locked():
            # Nearly every response fits into the kernel's buffer: one call and no wait.
            self._send_now()
        if self._out:
            await self.flush()

    async def flush(self) -> None:
        """Wait until everything queued is with the kernel.  Raises Stalled when nothing moves, and Gone."""
        async with self._flushing:
            out = self._out
            while out:
                if not self._send_now():
                    await self._writable()

    def _send_now(self) -> bool:
        """Whether the kernel took anything.  Raises Gone."""
        out = self._out
        try:
            sent = os.write(self._socket.fileno(), out if len(out) <= _SEND_BYTES else out[:_SEND_BYTES])
        except BlockingIOError:
            return False
        except OSError as exc:
            raise Gone("the socket is broken") from exc
        del out[:sent]
        if self._on_progress is not None:
            self._on_progress()
        return True

    async def _writable(self) -> None:
        """Raises Stalled once the peer has taken nothing for ``stall_seconds``, and Gone."""
        held, looks = self._held(), 0
        while True:
            with trio.move_on_after(self._limits.stall_seconds / _LOOKS) as look:
                try:
                    await trio.lowlevel.wait_writable(self._socket)
                except (OSError, ValueError, trio.ClosedResourceError) as exc:
                    raise Gone("the socket is broken") from exc
            if not look.cancelled_caught:
                return
            # The kernel asks for more only when a third of its megabytes is free, on a slow line after minutes.
            before, held = held, self._held()
            looks = 0 if held < before else looks + 1
            if looks == _LOOKS:
                raise Stalled("the peer does not read")
            if held < before and self._on_progress is not None:
                self._on_progress()

    def _held(self) -> int:
        """Bytes that the kernel holds for the peer.  Raises Gone."""
        try:
            return int.from_bytes(fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
        except (OSError, ValueError) as exc:
            raise Gone("the socket is broken") from exc

    # --- the end --------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Close at once; what waits is lost and the peer sees a reset.  Wakes whoever reads or sends."""
        if self.open:
            self.open = False
            self._on_progress = None
            self._option_linger()
            self._socket.close()

    def _option_linger(self) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        except OSError:
            return

    def close(self) -> None:
        """Close; what the kernel holds is still delivered."""
        if self.open:
            self.open = False
            self._on_progress = None
            self._socket.close()

    async def finish(self, *, linger: bool) -> None:
        """Close in good order: what waits goes out within ``reset_seconds``, else a reset.

        ``linger``: the peer may still be sending, and closing over unread bytes would reset the line before it has
        read the last answer; so read on, within ``linger_seconds`` and ``linger_bytes``.
        """
        try:
            with trio.move_on_after(self._limits.reset_seconds) as scope:
                if self._tls is not None and self.open:
                    self._out += self._tls.farewell()
                await self.flush()
            if scope.cancelled_caught:
                return
            if linger:
                self._socket.shutdown(socket.SHUT_WR)
                await self._drain()
            self.close()
        except (OSError, trio.ClosedResourceError):
            return
        finally:
            self.reset()

    async def _drain(self) -> None:
        left = self._limits.linger_bytes
        with trio.move_on_after(self._limits.linger_seconds):
            while left > 0 and (data := await self._receive()):
                left -= len(data)


class _Tls:
    """TLS over byte strings, so that no wait hides in it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def shake(self) -> bool:
        """One step of the handshake; whether it is complete.  Raises Gone."""
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as exc:
            raise Gone("no handshake") from exc
        return True

    def read(self, size: int) -> bytes | None:
        """Decrypted bytes, b"" at the end, None if more has to come.  Raises Gone."""
        try:
            return self._object.read(size)
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError as exc:
            raise Gone("broken TLS") from exc

    def encrypted(self, data: bytes) -> bytes:
        """Raises Gone."""
        try:
            if data:
                self._object.write(data)
        except ssl.SSLError as exc:
            raise Gone("broken TLS") from exc
        return self.outgoing.read()

    def farewell(self) -> bytes:
        # It would like to read the peer's, which nobody waits for.
        with contextlib.suppress(ssl.SSLError):
            self._object.unwrap()
        return self.outgoing.read()
