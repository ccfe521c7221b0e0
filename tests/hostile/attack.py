"""The attacker's side: raw bytes over a blocking socket, and the process that has to survive them."""

import contextlib
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from attrs import define, field

from tests.soak.scale import within

ROOT = Path(__file__).parents[2]
SECONDS = 5.0  # of every wait; in a sample each of them has more, see ``within``
MASK = b"\x11\x22\x33\x44"


@define(eq=False)
class Line:
    """One connection.  Every wait is bounded; ``close`` and ``reset`` are the two ways in which it can end."""

    socket: socket.socket
    received: bytes = b""

    def send(self, data: bytes) -> "Line":
        self.socket.sendall(data)
        return self

    def read_some(self, seconds: float = SECONDS) -> bytes:
        """b"" at the end, by FIN or reset.  Raises TimeoutError."""
        self.socket.settimeout(within(seconds))
        try:
            data = self.socket.recv(65536)
        except (ConnectionError, ssl.SSLError):
            return b""
        finally:
            with contextlib.suppress(OSError):
                self.socket.settimeout(within(SECONDS))
        self.received += data
        return data

    def read_to_end(self, seconds: float = SECONDS) -> bytes:
        """Everything until the server closes.  Raises TimeoutError if it does not."""
        deadline = time.monotonic() + seconds
        while self.read_some(max(0.001, deadline - time.monotonic())):
            pass
        return self.received

    def head(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and what came of the body; ConnectionError if the line ended before."""
        while b"\r\n\r\n" not in self.received:
            if not self.read_some():
                raise ConnectionError(f"the server closed after {self.received!r}")
        head, _, rest = self.received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return int(first.split()[1]), headers, rest

    def response(self) -> tuple[int, dict[str, str], bytes]:
        """One response with its whole body, taken off ``received``."""
        status, headers, _ = self.head()
        start = self.received.index(b"\r\n\r\n") + 4
        end = start + int(headers.get("content-length", 0))
        while len(self.received) < end:
            if not self.read_some():
                raise ConnectionError("the server closed within a body")
        body, self.received = self.received[start:end], self.received[end:]
        return status, headers, body

    def frame(self, seconds: float = SECONDS) -> tuple[int, bytes]:
        """Opcode and payload of the next frame of the server; (-1, b"") at the end.  Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while (found := self._take_frame()) is None:
            if not self.read_some(max(0.001, deadline - time.monotonic())):
                return -1, b""
        return found

    def _take_frame(self) -> tuple[int, bytes] | None:
        data = self.received
        if len(data) < 2:
            return None
        size, start = data[1] & 0x7F, 2
        if size >= 126:
            form, width = ("!H", 2) if size == 126 else ("!Q", 8)
            if len(data) < 2 + width:
                return None
            (size,), start = struct.unpack_from(form, data, 2), 2 + width
        if len(data) < start + size:
            return None
        self.received = data[start + size :]
        return data[0] & 0x0F, data[start : start + size]

    def close_code(self, seconds: float = SECONDS) -> int:
        """The code of the server's close frame, whatever comes before it; -1 if the line ends without one.

        Raises TimeoutError.
        """
        deadline = time.monotonic() + seconds
        while True:
            opcode, payload = self.frame(max(0.001, deadline - time.monotonic()))
            if opcode == 8:
                return struct.unpack("!H", payload[:2])[0] if payload else 1005
            if opcode == -1:
                return -1

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


ENDINGS: dict[str, Callable[[Line], None]] = {"close": Line.close, "reset": Line.reset}


def upgrade(path: str = "/echo", *extra: bytes) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1".encode(),
        b"Host: localhost",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        *extra,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, mask: bytes | None = MASK) -> bytes:
    """A client's frame; ``mask`` None leaves it unmasked."""
    flag = 0x80 if mask is not None else 0
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    if len(payload) < 126:
        head += bytes([flag | len(payload)])
    elif len(payload) < 65536:
        head += bytes([flag | 126]) + struct.pack("!H", len(payload))
    else:
        head += bytes([flag | 127]) + struct.pack("!Q", len(payload))
    if mask is None:
        return head + payload
    repeated = (mask * (len(payload) // 4 + 1))[: len(payload)]
    size = len(payload)
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big") if size else b""
    return head + mask + masked


def close_frame(code: int, reason: bytes = b"") -> bytes:
    return frame(8, struct.pack("!H", code) + reason)


@define(eq=False)
class Victim:
    """A server process.  ``end`` leaves nothing running."""

    order: dict[str, Any]
    port: int = 0
    _stderr: IO[bytes] = field(factory=tempfile.TemporaryFile)
    _sockets: list[socket.socket] = field(factory=list)
    _process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> "Victim":
        arguments = [sys.executable, "-m", "tests.hostile.victim", json.dumps(self.order)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=self._stderr
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline() or b"0")
        assert self.port, "the server did not start"
        return self

    def connect(self, *, receive_buffer: int | None = None) -> Line:
        """A small ``receive_buffer`` makes the window of a client that does not read fill up soon."""
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._sockets.append(sock)
        sock.settimeout(within(SECONDS))
        sock.connect(("127.0.0.1", self.port))
        return Line(sock)

    def secure(self, context: ssl.SSLContext, line: Line | None = None) -> Line:
        raw = line or self.connect()
        wrapped = context.wrap_socket(raw.socket, server_hostname="localhost")
        self._sockets.append(wrapped)
        return Line(wrapped)

    def open_socket(self, path: str = "/echo", *extra: bytes, receive_buffer: int | None = None) -> Line:
        line = self.connect(receive_buffer=receive_buffer).send(upgrade(path, *extra))
        status, _, rest = line.head()
        assert status == 101, status
        line.received = rest
        return line

    def get(self, path: str) -> bytes:
        """The body of a plain request on a line of its own."""
        line = self.connect()
        try:
            status, _, body = line.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).response()
        finally:
            line.close()
        assert status == 200
        return body

    def must_be_well(self) -> None:
        assert self.get("/ok") == b"ok"

    def census(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.get("/census"))
        return found

    def saw(self, what: str, seconds: float = SECONDS) -> bool:
        return eventually(lambda: what in self.census()["seen"], seconds)

    def terminate(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> int:
        """The exit code; raises subprocess.TimeoutExpired."""
        assert self._process is not None
        return self._process.wait(within(seconds))

    @property
    def log(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace")

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def hang_up(self) -> None:
        """Close every line that a test has left open."""
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()

    def end(self) -> None:
        self.hang_up()
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait(10)
            assert self._process.stdout is not None
            self._process.stdout.close()
        self._stderr.close()


def eventually(holds: Callable[[], bool], seconds: float = SECONDS) -> bool:
    deadline = time.monotonic() + within(seconds)
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def settled(victim: Victim, before: dict[str, Any], *, growth: int = 8 * 1024 * 1024) -> dict[str, Any]:
    """Wait until tasks and files are what they were ``before``; the census then.  Fails if they never are."""

    def back() -> bool:
        now = victim.census()
        return now["tasks"] <= before["tasks"] and now["files"] <= before["files"]

    assert eventually(back, 8.0), (before, victim.census())
    now = victim.census()
    assert now["resident"] - before["resident"] < growth, (before, now)
    return now
