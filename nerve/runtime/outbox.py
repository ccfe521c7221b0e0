"""What waits to be sent to one reader: bounded in bytes, taken by one writer.

Live frames never wait for a reader: one that lets 1 MiB of them pile up is closed with 1013 and catches up by its last
number (decisions D18).  A frame that is greater than a quarter of that counts as a quarter, because one long message or
tool result must not throw readers out who keep up.  Snapshots and replays are fed at the reader's pace and don't count.
"""

from collections import deque
from collections.abc import Callable

import trio
from attrs import define, field

MAX_LIVE_BYTES = 1024 * 1024
GREAT_BYTES = 256 * 1024  # a greater frame counts as this: its size says nothing about who is to read it
FEED_BYTES = 256 * 1024
TOO_SLOW = 1013


def _as_it_is(data: bytes, seq: int | None) -> bytes:
    return data


def _weight(data: bytes) -> int:
    return min(len(data), GREAT_BYTES)


@define(eq=False)
class Outbox:
    """``form`` makes what is sent of a frame and its number.

    ``cursor`` is the number of the last logged frame given to this reader.

    None: a replay is still reading the log, which will bring what is published meanwhile; live ones are passed over.
    """

    account_id: str | None = None
    form: Callable[[bytes, int | None], bytes] = _as_it_is
    on_overflow: Callable[[], None] | None = None  # also what is on its way just now is not worth waiting for
    logged_only: bool = False  # state that a snapshot replaces is not for this reader
    cursor: int | None = None
    passed_over: set[int] = field(factory=set)  # while a replay is reading the log
    closing: tuple[int, str] | None = None
    progress: int = 0  # grows whenever the reader takes something
    _waiting: deque[tuple[bytes, bool]] = field(factory=deque)
    _live_bytes: int = 0
    _fed_bytes: int = 0
    _stirred: trio.Event = field(factory=trio.Event)
    _drained: trio.Event = field(factory=trio.Event)

    # --- the hub's side -------------------------------------------------------------------------------------------

    def deliver(self, data: bytes, seq: int | None = None) -> None:
        if self.closing is not None:
            return
        if seq is not None:
            if self.cursor is None or seq <= self.cursor:
                return
            self.cursor = seq
        elif self.logged_only:
            return
        # Asked before the newest is added, so that one great frame alone makes nobody slow.
        if self._live_bytes >= MAX_LIVE_BYTES:
            self._waiting.clear()
            self.close(TOO_SLOW, "too slow")
            if self.on_overflow is not None:
                self.on_overflow()
            return
        data = self.form(data, seq)
        self._live_bytes += _weight(data)
        self._waiting.append((data, True))
        self._stirred.set()

    def offer(self, data: bytes) -> None:
        if self._live_bytes < MAX_LIVE_BYTES // 2:
            self.deliver(data)

    def pass_over(self, seq: int) -> None:
        if self.cursor is None:
            self.passed_over.add(seq)

    def close(self, code: int, reason: str = "") -> None:
        """The first one counts.  What waits is sent before it, unless the reader is too slow."""
        if self.closing is None:
            self.closing = (code, reason)
            self._stirred.set()
            self._drained.set()

    # --- snapshots and replays ------------------------------------------------------------------------------------

    def put(self, data: bytes, seq: int | None = None) -> None:
        """Add a bounded piece that doesn't count as live."""
        if self.closing is None:
            data = self.form(data, seq)
            self._fed_bytes += len(data)
            self._waiting.append((data, False))
            self._stirred.set()

    async def room(self, limit: int = FEED_BYTES) -> None:
        """Wait until at most ``limit`` bytes of what was fed to the reader still wait, or it is being closed."""
        await trio.lowlevel.checkpoint()
        while self._fed_bytes > limit and self.closing is None:
            await self._drained.wait()

    # --- the writer's side ----------------------------------------------------------------------------------------

    async def next(self) -> bytes | None:
        """The next piece, which still counts as waiting until ``taken``; None once closing and nothing is left."""
        while not self._waiting:
            if self.closing is not None:
                return None
            self._stirred = trio.Event()
            await self._stirred.wait()
        return self._waiting[0][0]

    def moved(self) -> None:
        """Some of the piece that ``next`` gave has gone out."""
        self.progress += 1

    def taken(self) -> None:
        """The piece that ``next`` gave has gone out."""
        self.moved()
        if not self._waiting:
            return  # everything was dropped meanwhile, because the reader is too slow
        data, live = self._waiting.popleft()
        if live:
            self._live_bytes -= _weight(data)
        else:
            self._fed_bytes -= len(data)
            self._drained.set()
            self._drained = trio.Event()
