"""The line at the prompt: bytes of a keyboard in, changes of a text out.  No terminal, no I/O."""

import codecs
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Protocol

from attrs import define, field, frozen

from nerve.cli.chat_text import clean

MAX_CHARACTERS = 200_000
MAX_HISTORY = 500
_LONGEST_SEQUENCE = 16


@frozen
class Entered:
    """A line, or several of them that were pasted, is complete."""

    text: str


class Key(Enum):
    """What the editor leaves to others."""

    EOF = "eof"
    CLEAR = "clear"
    TOO_LONG = "too long"  # what was pasted is not taken


Typed = Entered | Key


class Keyboard(Protocol):
    text: str
    cursor: int

    def feed(self, data: bytes) -> Iterator[Typed]: ...

    def discard(self) -> None: ...


@define(eq=False)
class CookedLines:
    """Whole lines of a terminal that edits them itself."""

    text: str = ""
    cursor: int = 0
    _decoder: codecs.IncrementalDecoder = field(factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    def feed(self, data: bytes) -> Iterator[Typed]:
        """Nothing is the end."""
        self.text += self._decoder.decode(data)
        while "\n" in self.text:
            line, self.text = self.text.split("\n", 1)
            yield Entered(clean(line))
        if not data:
            yield Key.EOF

    def discard(self) -> None:
        self.text = ""


@define(eq=False)
class Editor:
    """``text`` with the cursor before its ``cursor``-th character.

    Understands what terminals send for arrows, Home, End and Delete, Emacs's usual keys, Alt-Enter for a further line,
    and bracketed paste, in which line ends are text.
    """

    text: str = ""
    cursor: int = 0
    _history: list[str] = field(factory=list)
    _place: int | None = None  # in the history; None: the new line
    _draft: str = ""
    _pending: str = ""  # the beginning of a sequence whose rest has not come yet
    _pasted: list[str] | None = None
    _decoder: codecs.IncrementalDecoder = field(factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    def feed(self, data: bytes) -> Iterator[Typed]:
        """What was typed; nothing is the end."""
        if not data:
            yield Key.EOF
            return
        for character in self._decoder.decode(data):
            yield from self._character(character)

    def discard(self) -> None:
        """Throw the line away."""
        self.text, self.cursor, self._place = "", 0, None

    # --- keys -----------------------------------------------------------------------------------------------------

    def _character(self, character: str) -> Iterator[Typed]:
        if self._pending or character == "\x1b":
            self._pending += character
            yield from self._sequence()
        elif self._pasted is not None:
            if len(self._pasted) <= MAX_CHARACTERS:
                self._pasted.append(character)
        elif character in "\r\n":
            yield self._enter()
        elif character == "\x04" and not self.text:
            yield Key.EOF
        elif character == "\x0c":
            yield Key.CLEAR
        elif (action := _CONTROLS.get(character)) is not None:
            action(self)
        elif character.isprintable():
            self._insert(character)

    def _sequence(self) -> Iterator[Typed]:
        pending = self._pending
        if len(pending) < 2 or (pending[1] in "[O" and (len(pending) < 3 or not "@" <= pending[-1] <= "~")):
            if len(pending) > _LONGEST_SEQUENCE:
                self._pending = ""
            return
        self._pending = ""
        if pending == "\x1b[200~":
            self._pasted = []
        elif pending == "\x1b[201~" and self._pasted is not None:
            pasted, self._pasted = clean("".join(self._pasted)), None
            if not self._insert(pasted):
                yield Key.TOO_LONG
        elif self._pasted is None and (action := _SEQUENCES.get(pending)) is not None:
            action(self)

    def _enter(self) -> Entered:
        text = self.text
        if text.strip() and (not self._history or self._history[-1] != text):
            self._history.append(text)
            del self._history[:-MAX_HISTORY]
        self.discard()
        return Entered(text)

    # --- changes --------------------------------------------------------------------------------------------------

    def left(self) -> None:
        self.cursor = max(0, self.cursor - 1)

    def right(self) -> None:
        self.cursor = min(len(self.text), self.cursor + 1)

    def home(self) -> None:
        self.cursor = 0

    def end(self) -> None:
        self.cursor = len(self.text)

    def word_left(self) -> None:
        before = self.text[: self.cursor].rstrip()
        self.cursor = max(before.rfind(" "), before.rfind("\n")) + 1

    def word_right(self) -> None:
        while self.cursor < len(self.text) and self.text[self.cursor].isspace():
            self.cursor += 1
        while self.cursor < len(self.text) and not self.text[self.cursor].isspace():
            self.cursor += 1

    def backspace(self) -> None:
        self._cut(max(0, self.cursor - 1), self.cursor)

    def delete(self) -> None:
        self._cut(self.cursor, self.cursor + 1)

    def kill_left(self) -> None:
        self._cut(0, self.cursor)

    def kill_right(self) -> None:
        self._cut(self.cursor, len(self.text))

    def kill_word(self) -> None:
        end = self.cursor
        self.word_left()
        self._cut(self.cursor, end)

    def new_line(self) -> None:
        self._insert("\n")

    def older(self) -> None:
        self._recall(-1)

    def newer(self) -> None:
        self._recall(1)

    def _cut(self, begin: int, end: int) -> None:
        self.text = self.text[:begin] + self.text[end:]
        self.cursor = begin

    def _insert(self, text: str) -> bool:
        """False when there is no room for it."""
        if len(self.text) + len(text) > MAX_CHARACTERS:
            return False
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)
        return True

    def _recall(self, step: int) -> None:
        """Go through what was entered before; what was being typed is kept at its end."""
        place = len(self._history) if self._place is None else self._place
        wanted = max(0, min(len(self._history), place + step))
        if wanted == place:
            return
        if self._place is None:
            self._draft = self.text
        self._place = None if wanted == len(self._history) else wanted
        self.text = self._draft if self._place is None else self._history[self._place]
        self.cursor = len(self.text)


_Action = Callable[[Editor], None]

_CONTROLS: dict[str, _Action] = {
    "\x01": Editor.home,
    "\x02": Editor.left,
    "\x04": Editor.delete,
    "\x05": Editor.end,
    "\x06": Editor.right,
    "\x08": Editor.backspace,
    "\x0b": Editor.kill_right,
    "\x0e": Editor.newer,
    "\x10": Editor.older,
    "\x15": Editor.kill_left,
    "\x17": Editor.kill_word,
    "\x7f": Editor.backspace,
}

_SEQUENCES: dict[str, _Action] = {
    "\x1b[A": Editor.older,
    "\x1bOA": Editor.older,
    "\x1b[B": Editor.newer,
    "\x1bOB": Editor.newer,
    "\x1b[C": Editor.right,
    "\x1bOC": Editor.right,
    "\x1b[D": Editor.left,
    "\x1bOD": Editor.left,
    "\x1b[H": Editor.home,
    "\x1bOH": Editor.home,
    "\x1b[1~": Editor.home,
    "\x1b[F": Editor.end,
    "\x1bOF": Editor.end,
    "\x1b[4~": Editor.end,
    "\x1b[3~": Editor.delete,
    "\x1b[1;5C": Editor.word_right,
    "\x1b[1;5D": Editor.word_left,
    "\x1bb": Editor.word_left,
    "\x1bf": Editor.word_right,
    "\x1b\x7f": Editor.kill_word,
    "\x1b\r": Editor.new_line,
    "\x1b\n": Editor.new_line,
}
