"""Where a chat shows what it has to show: a terminal that is edited in, a plain stream, or JSON lines."""

import json
import os
import shutil
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TextIO

from attrs import define, field

from nerve.cli.chat_screen import Prompt, Screen
from nerve.cli.chat_text import ASCII, Piece, Symbols, paint
from nerve.client import LineEvent, LiveEvent
from nerve.contract import codec

_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
_CLEAR = "\x1b[H\x1b[2J"
_COOKED = termios.ICANON | termios.ECHO | termios.IEXTEN
FALLBACK_SIZE = (80, 24)


class Output(Protocol):
    """``apart``: what is remarked does not stand in the same text as what is shown."""

    @property
    def apart(self) -> bool: ...

    def event(self, event: LiveEvent) -> None:
        """Something came from the server, before it is rendered."""
        ...

    def show(self, pieces: Sequence[Piece]) -> None: ...

    def remark(self, pieces: Sequence[Piece]) -> None:
        """What this program says, not the session."""
        ...

    def prompt(self, prompt: Prompt | None) -> None: ...

    def resized(self, *, clear: bool = False) -> None: ...

    def continued(self) -> None:
        """The program was stopped, and goes on; a shell may have set the terminal back."""
        ...

    def lent(self) -> AbstractContextManager[None]:
        """Another program has the terminal meanwhile; what is said here waits."""
        ...


@define(eq=False)
class PlainOutput:
    """A stream from top to bottom; remarks go to stderr where stdout is not a terminal."""

    out: TextIO
    remarks: TextIO
    colour: bool

    @property
    def apart(self) -> bool:
        return self.remarks is not self.out

    def event(self, event: LiveEvent) -> None:
        return

    def show(self, pieces: Sequence[Piece]) -> None:
        self.out.write(paint(pieces, colour=self.colour))
        self.out.flush()

    def remark(self, pieces: Sequence[Piece]) -> None:
        self.remarks.write(paint(pieces, colour=self.colour and self.remarks is self.out))
        self.remarks.flush()

    def prompt(self, prompt: Prompt | None) -> None:
        return

    def resized(self, *, clear: bool = False) -> None:
        return

    def continued(self) -> None:
        return

    def lent(self) -> AbstractContextManager[None]:
        return nullcontext()


@define(eq=False)
class JsonOutput:
    """Every frame as one line of JSON, and nothing else, on stdout."""

    out: TextIO
    remarks: TextIO
    apart: bool = True

    def event(self, event: LiveEvent) -> None:
        if not isinstance(event, LineEvent):
            self.out.write(json.dumps(codec.unstructure(event)) + "\n")
            self.out.flush()

    def show(self, pieces: Sequence[Piece]) -> None:
        return

    def remark(self, pieces: Sequence[Piece]) -> None:
        self.remarks.write(paint(pieces, colour=False))
        self.remarks.flush()

    def prompt(self, prompt: Prompt | None) -> None:
        return

    def resized(self, *, clear: bool = False) -> None:
        return

    def continued(self) -> None:
        return

    def lent(self) -> AbstractContextManager[None]:
        return nullcontext()


@define(eq=False)
class TerminalOutput:
    """A terminal with a prompt in its last row."""

    screen: Screen
    keyboard: int = field(factory=lambda: sys.stdin.fileno())
    descriptor: int = field(factory=lambda: sys.stdout.fileno())
    apart: bool = False
    _waiting: list[str] | None = None  # what is said while another program has the terminal

    def event(self, event: LiveEvent) -> None:
        return

    def show(self, pieces: Sequence[Piece]) -> None:
        self._write(self.screen.show(pieces))

    def remark(self, pieces: Sequence[Piece]) -> None:
        self.show(pieces)

    def prompt(self, prompt: Prompt | None) -> None:
        self._write(self.screen.edit(prompt))

    def resized(self, *, clear: bool = False) -> None:
        if self._waiting is None:
            self._write((_CLEAR if clear else "") + self.screen.redraw())

    def continued(self) -> None:
        if self._waiting is None:
            self.take_keys()
            self.resized()

    @contextmanager
    def lent(self) -> Iterator[None]:
        self.prompt(None)
        self.leave_keys()
        waiting: list[str] = []
        self._waiting = waiting
        try:
            yield
        finally:
            self._waiting = None
            self.take_keys()
            self.put("".join(waiting))

    def take_keys(self) -> None:
        begin_editing(self.keyboard)

    def leave_keys(self) -> None:
        end_editing(self.keyboard)

    def _write(self, text: str) -> None:
        if self._waiting is None:
            self.put(text)
        else:
            self._waiting.append(text)

    def put(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self.descriptor, data) :]


def columns() -> int:
    return shutil.get_terminal_size(FALLBACK_SIZE).columns


def symbols_for(encoding: str | None) -> Symbols:
    """Plain ones where the terminal does not know the others."""
    try:
        "›∴●│✓✗·✎■…⏎".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return Symbols()


@contextmanager
def edited(descriptor: int) -> Iterator[None]:
    """The terminal gives every key at once and echoes none, and marks what is pasted; ^C stays a signal."""
    before = termios.tcgetattr(descriptor)
    try:
        begin_editing(descriptor)
        yield
    finally:
        os.write(sys.stdout.fileno(), _PASTE_OFF.encode())
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def begin_editing(descriptor: int) -> None:
    """Also after another program has had the terminal."""
    mode = termios.tcgetattr(descriptor)
    mode[3] &= ~_COOKED
    mode[3] |= termios.NOFLSH  # ^C must not swallow what is on its way to the screen
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
    os.write(sys.stdout.fileno(), _PASTE_ON.encode())


def end_editing(descriptor: int) -> None:
    """The terminal as a program expects it."""
    os.write(sys.stdout.fileno(), _PASTE_OFF.encode())
    mode = termios.tcgetattr(descriptor)
    mode[3] |= _COOKED
    mode[3] &= ~termios.NOFLSH
    termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
