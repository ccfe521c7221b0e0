"""The numbered event log of one session: merges deltas, numbers frames, records them, publishes them.

Record first, publish second.  Only deltas (``token``, ``thinking``, ``tool_output``) go out first: they are merged
once per tick before they get their number, and are written within a quarter of a second.  Numbers come from stored
blocks, so one that was shown is never used again, also after ``kill -9`` (decisions D6, D7, D10, D55).
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw
import trio
from attrs import define, field

from nerve.contract.frames import encode_logged
from nerve.contract.generated.frames_server import LoggedFrame, ThinkingFrame, TokenFrame, ToolOutputFrame
from nerve.effects import Effects
from nerve.errors import NerveError
from nerve.runtime.hub import Hub, Subscriber
from nerve.store import event_log as rows
from nerve.store.database import Database
from nerve.store.event_log import LogRow

T = TypeVar("T")

TICK_SECONDS = 0.015
SAVE_SECONDS = 0.1  # of the 250 ms that the contract allows, the rest is the write's
BLOCK = 1024
MAX_UNSAVED_BYTES = 4 * 1024 * 1024

Delta = TokenFrame | ThinkingFrame | ToolOutputFrame


@define
class _Pending:
    """Deltas of one kind in a row, waiting for their number."""

    frame: Delta
    pieces: list[str]

    def takes(self, delta: Delta) -> bool:
        if type(self.frame) is not type(delta):
            return False
        return not isinstance(delta, ToolOutputFrame) or delta.tool_use_id == self.frame.tool_use_id  # type: ignore[union-attr]

    def merged(self) -> Delta:
        frame = self.frame
        if isinstance(frame, ToolOutputFrame):
            return ToolOutputFrame(
                session_id=frame.session_id, tool_use_id=frame.tool_use_id, content="".join(self.pieces)
            )
        return type(frame)(session_id=frame.session_id, content="".join(self.pieces))


def _nothing(db: apsw.Connection) -> None:
    return None


def _nobody(result: Any) -> None:
    return None


@define(eq=False)
class SessionLog:
    """``last_seq`` is the highest number shown, ``saved_seq`` the highest that is on disk.

    ``refused`` is called when the disk refuses a delta: the owner ends the turn, nothing goes on unrecorded for long.
    """

    session_id: str
    _database: Database
    _hub: Hub
    _effects: Effects
    last_seq: int
    _reserved: int
    saved_seq: int = field(init=False)
    refused: Callable[[NerveError], None] | None = None
    turn_id: str | None = None
    _pending: list[_Pending] = field(factory=list)
    _unsaved: list[LogRow] = field(factory=list)
    _lock: trio.Lock = field(factory=trio.Lock)
    _stirred: trio.Event = field(factory=trio.Event)

    def __attrs_post_init__(self) -> None:
        self.saved_seq = self.last_seq

    def delta(self, frame: Delta) -> None:
        """Add a piece; it goes out with the next tick."""
        if self._pending and self._pending[-1].takes(frame):
            self._pending[-1].pieces.append(frame.content)
        else:
            self._pending.append(_Pending(frame, [frame.content]))
        self._stirred.set()

    def tail_after(self, seq: int) -> list[LogRow] | None:
        """What was shown after ``seq`` and is not on disk yet; None if something between has been saved meanwhile."""
        if self.saved_seq > seq:
            return None
        return [row for row in self._unsaved if row.seq > seq]

    async def record(
        self,
        frames: Sequence[LoggedFrame],
        fn: Callable[..., Any] = _nothing,
        *args: Any,
        at_end: Callable[[apsw.Connection], None] | None = None,
    ) -> None:
        """Write ``fn``'s rows and the frames as one transaction, then publish the frames.

        Waits for deltas before it and for the disk.  If it raises, nothing was written and nothing published;
        cancelled before its transaction began, the same.  ``at_end``, for the frames that end a turn, is done after
        they are written, and the unused numbers of the block are given back.
        """
        await self.record_made(lambda db: (fn(db, *args), frames), at_end=at_end)

    async def record_made(
        self,
        make: Callable[[apsw.Connection], tuple[T, Sequence[LoggedFrame]]],
        *,
        skip: Callable[[T], Subscriber | None] = _nobody,
        at_end: Callable[[apsw.Connection], None] | None = None,
    ) -> T:
        """As ``record``, for frames that only the transaction knows; ``skip`` names a socket that is left out."""
        async with self._lock:
            await self._emit()
            written: tuple[T, list[LogRow]] = await self._database.write(self._write, make, at_end)
            result, numbered = written
            # From here to the last publish nothing waits, so what is recorded is always published.
            if numbered:
                self.last_seq = numbered[-1].seq
            self.saved_seq = self.last_seq
            self._reserved = max(self._reserved, self.last_seq) if at_end is None else self.last_seq
            self._unsaved.clear()
            left_out = skip(result)
            for row in numbered:
                self._hub.publish_bytes(self.session_id, row.frame.encode(), row.seq, left_out)
            return result

    def _write(
        self,
        db: apsw.Connection,
        make: Callable[[apsw.Connection], tuple[T, Sequence[LoggedFrame]]],
        at_end: Callable[[apsw.Connection], None] | None,
    ) -> tuple[T, list[LogRow]]:
        result, frames = make(db)
        numbered = [self._row(frame, self.last_seq + n) for n, frame in enumerate(frames, 1)]
        rows.append(db, self.session_id, [*self._unsaved, *numbered], self._effects.now())
        last = numbered[-1].seq if numbered else self.last_seq
        if at_end is not None:
            rows.release(db, self.session_id, last)
            at_end(db)
        elif last > self._reserved:
            rows.reserve(db, self.session_id, last)
        return result, numbered

    def _row(self, frame: LoggedFrame, seq: int) -> LogRow:
        return LogRow(seq, self.turn_id, encode_logged(frame, seq).decode())

    async def _emit(self) -> None:
        """Number what is pending and publish it; the lock is held.  Waits only when a new block has to be stored."""
        if not self._pending:
            return
        needed = self.last_seq + len(self._pending)
        if needed > self._reserved:
            up_to = needed + BLOCK
            await self._database.write(rows.reserve, self.session_id, up_to)
            self._reserved = up_to
        # A delta may have come while the block was stored: only what was counted goes out now.
        pending, self._pending = self._pending, []
        for n, waiting in enumerate(pending):
            if self.last_seq + 1 > self._reserved:
                self._pending = pending[n:]
                break
            row = self._row(waiting.merged(), self.last_seq + 1)
            self.last_seq = row.seq
            self._unsaved.append(row)
            self._hub.publish_bytes(self.session_id, row.frame.encode(), row.seq)

    async def _save(self) -> None:
        """Write what was shown and is not on disk; the lock is held."""
        if not self._unsaved:
            return
        unsaved = list(self._unsaved)
        await self._database.write(rows.append, self.session_id, unsaved, self._effects.now())
        self.saved_seq = unsaved[-1].seq
        del self._unsaved[: len(unsaved)]

    async def flush(self) -> None:
        """Publish and write everything; returns when it is on disk."""
        async with self._lock:
            await self._emit()
            await self._save()

    async def run(self) -> None:
        """The ticker and writer of deltas, while the session lives.  Raises what is no refusal of the store."""
        while True:
            await self._stirred.wait()
            self._stirred = trio.Event()
            due = trio.current_time() + SAVE_SECONDS
            while self._pending or self._unsaved:
                await trio.sleep(TICK_SECONDS)
                await self._tick(due)
                if trio.current_time() >= due:
                    due = trio.current_time() + SAVE_SECONDS

    async def _tick(self, due: float) -> None:
        try:
            async with self._lock:
                await self._emit()
                if trio.current_time() >= due or sum(len(row.frame) for row in self._unsaved) > MAX_UNSAVED_BYTES:
                    await self._save()
        except NerveError as error:  # a full disk or a busy database: the owner is told, the next tick tries again
            if self.refused is not None:
                self.refused(error)
            await trio.sleep(SAVE_SECONDS)
