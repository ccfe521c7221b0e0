"""What a real program writes: through a pipe into its output file, so that the file has a bound that holds.

A program that goes beyond the bound finds nobody reading any more; its owner hears of it and ends it.
"""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio
from attrs import define, field

from nerve.adapters.scripted import output_files
from nerve.effects import Blocking

MAX_BYTES = 16 * 1024 * 1024
SHOWN_BYTES = 30_000  # of a result; the file has it all
CHUNK_BYTES = 64 * 1024
LAST_WORDS_SECONDS = 1.0  # for what is in the pipe when the program is gone
LINE_CHARACTERS = 500


@define(eq=False)
class ProgramOutput:
    """``path`` None: there is no safe place for a file.  ``heard`` is told after each piece; it may wait.

    ``room`` is cancelled once more came than ``MAX_BYTES``; ``full`` is true then.
    """

    path: Path | None
    _blocking: Blocking
    _heard: Callable[[], Awaitable[None]]
    _reading: trio.lowlevel.FdStream
    writing: int  # for the program
    size: int = 0
    full: bool = False
    room: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _tail: bytearray = field(factory=bytearray, init=False)
    _patience: trio.CancelScope = field(factory=lambda: trio.CancelScope(shield=True), init=False)
    _over: trio.Event = field(factory=trio.Event, init=False)

    @classmethod
    def open(cls, path: Path | None, blocking: Blocking, heard: Callable[[], Awaitable[None]]) -> "ProgramOutput":
        """Raises OSError.  ``close_writing`` and ``close`` give back what it holds."""
        reading, writing = os.pipe()
        return cls(path, blocking, heard, trio.lowlevel.FdStream(reading), writing)

    def close_writing(self) -> None:
        """The program has its own end of the pipe by now."""
        os.close(self.writing)

    def close(self) -> None:
        self._reading.close()

    async def keep(self) -> None:
        """Until nobody can write any more; a cancel from outside does not end it, ``last_words`` does."""
        with self._patience:
            while not self.full and (data := await self._reading.receive_some(CHUNK_BYTES)):
                self.full = self.size + len(data) > MAX_BYTES
                await self._take(data[: MAX_BYTES - self.size])
        self._over.set()

    async def _take(self, data: bytes) -> None:
        self.size += len(data)
        self._tail += data
        del self._tail[:-SHOWN_BYTES]
        if self.full:
            self.room.cancel()
        if self.path is not None:
            await self._blocking(output_files.append, self.path, data)
        await self._heard()

    async def last_words(self) -> None:
        """The program is gone: what it wrote is kept when this returns, unless somebody else still writes."""
        with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
            await self._over.wait()
        self._patience.cancel()

    @property
    def text(self) -> str:
        """The end of it; what is no UTF-8 is replaced."""
        left_out = self.size - len(self._tail)
        text = self._tail.decode("utf-8", "replace")
        return text if not left_out else f"[{left_out:,} bytes before this are left out]\n{text}"

    @property
    def last_line(self) -> str | None:
        """The newest line that says something."""
        lines = (line.strip() for line in reversed(self._tail.decode("utf-8", "replace").splitlines()))
        return next((line[:LINE_CHARACTERS] for line in lines if line), None)
