"""A line to a server that can be cut: a TCP relay on loopback, in a thread of its own."""

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from attrs import define, field

READ_BYTES = 65536
STEP_SECONDS = 0.02
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST


@define(eq=False)
class Line:
    """``up`` is whether new connections are taken; ``connections`` counts those there have been."""

    address: str
    up: bool = True
    connections: int = 0
    relayed_bytes: int = 0
    _target: tuple[str, int] = ("", 0)
    _pairs: list[tuple[socket.socket, socket.socket]] = field(factory=list)
    _lock: threading.Lock = field(factory=threading.Lock)

    def cut(self, *, and_keep_down: bool = False) -> None:
        """Reset every connection on both sides."""
        with self._lock:
            self.up = not and_keep_down
            for pair in self._pairs:
                for end in pair:
                    with contextlib.suppress(OSError):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    end.close()
            self._pairs.clear()

    def mend(self) -> None:
        self.up = True

    def _serve(self, listener: socket.socket, closing: threading.Event) -> None:
        while not closing.is_set():
            with self._lock:
                self._step(listener)
            closing.wait(STEP_SECONDS / 10)
        self.cut(and_keep_down=True)

    def _step(self, listener: socket.socket) -> None:
        """Take and pass on what there is."""
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            others = {}
            for one, other in self._pairs:
                for end, far in ((one, other), (other, one)):
                    selector.register(end, selectors.EVENT_READ)
                    others[end] = far
            for key, _ in selector.select(STEP_SECONDS):
                if key.fileobj is listener:
                    self._take(listener)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._pass_on(key.fileobj, others[key.fileobj])

    def _take(self, listener: socket.socket) -> None:
        near, _ = listener.accept()
        if not self.up:
            near.close()
            return
        try:
            far = socket.create_connection(self._target, 5)
        except OSError:
            near.close()
            return
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections += 1
        self._pairs.append((near, far))

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            data = source.recv(READ_BYTES)
            self.relayed_bytes += len(data)
            sink.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._pairs = [pair for pair in self._pairs if source not in pair]
            source.close()
            sink.close()


@contextmanager
def line_to(address: str) -> Iterator[Line]:
    """A line to the server at this address, as long as the block lasts."""
    url = urlsplit(address)
    listener = socket.create_server(("127.0.0.1", 0))
    closing = threading.Event()
    line = Line(f"http://127.0.0.1:{listener.getsockname()[1]}", target=(url.hostname or "", url.port or 80))
    thread = threading.Thread(target=line._serve, args=(listener, closing), name="line", daemon=True)
    thread.start()
    try:
        yield line
    finally:
        closing.set()
        thread.join(10)
        listener.close()
