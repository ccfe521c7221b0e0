"""A program on a pseudo-terminal: typed at, and watched through the terminal in memory."""

import codecs
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field

from tools.terminal import Terminal

STEP_SECONDS = 0.05
READ_BYTES = 65536
PATIENCE_SECONDS = 60.0  # only how long it takes to fail


class NotSeen(AssertionError):
    """It did not come in time; the text is what the screen shows instead."""


@define(eq=False)
class PtyProgram:
    terminal: Terminal
    _master: int
    _process: "subprocess.Popen[bytes]"
    raw: bytearray = field(factory=bytearray)
    on_output: Callable[[float, bytes], None] | None = None
    _decoder: codecs.IncrementalDecoder = field(factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    @property
    def screen(self) -> str:
        return self.terminal.text()

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """^C: the terminal makes a signal of it."""
        self.type("\x03")

    def resize(self, columns: int, height: int) -> None:
        self.terminal.columns, self.terminal.height = columns, height
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, columns, 0, 0))

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def put_aside(self, seconds: float = PATIENCE_SECONDS) -> None:
        """As a shell does it: stop the program, and set the terminal back."""
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + seconds
        while Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            if time.monotonic() > deadline:
                raise NotSeen("it does not stop")
            time.sleep(STEP_SECONDS / 10)
        mode = termios.tcgetattr(self._master)
        mode[3] |= termios.ECHO | termios.ICANON | termios.IEXTEN
        termios.tcsetattr(self._master, termios.TCSANOW, mode)

    def echoes(self) -> bool:
        """Whether the terminal is as a shell wants it."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def read(self, seconds: float = STEP_SECONDS) -> bool:
        """Take what has come, waiting for it at most so long; False once nothing can come any more."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, READ_BYTES)
        except OSError:
            data = b""
        self.raw += data
        self.terminal.feed(self._decoder.decode(data))
        if self.on_output is not None and data:
            self.on_output(time.monotonic(), data)
        return bool(data)

    def see(self, wanted: str | Callable[[str], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until the screen shows it.  Raises NotSeen."""
        shown = wanted if callable(wanted) else lambda screen: wanted in screen
        deadline = time.monotonic() + seconds
        while not shown(self.screen):
            if time.monotonic() > deadline or not self.read():
                raise NotSeen(f"{wanted!r} did not come:\n{self.screen}")

    def watch(self, seconds: float) -> None:
        """Take what comes for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self.read(min(left, STEP_SECONDS)):
            pass

    def ended(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the end; the exit code.  Raises NotSeen."""
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                raise NotSeen(f"it does not end:\n{self.screen}")
            self.read()
        while select.select([self._master], [], [], 0)[0] and self.read():
            pass
        return self._process.returncode


@contextmanager
def on_pty(
    words: Sequence[str | Path], env: Mapping[str, str], *, columns: int = 80, height: int = 24, cwd: Path | None = None
) -> Iterator[PtyProgram]:
    """A program with a controlling terminal of its own; killed at the end if it is still there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, columns, 0, 0))
    process = subprocess.Popen(
        words,
        env={"TERM": "xterm-256color", "LANG": "C.UTF-8", **env},
        cwd=cwd,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    try:
        yield PtyProgram(Terminal(columns, height), master, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait(10)
        os.close(master)
        os.close(slave)
