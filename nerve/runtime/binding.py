"""Binding a reader to a session: the snapshot it gets first, then the log without a gap or a repeat.

``Database.read`` runs without a checkpoint between its snapshot and its return, so what follows it here in the same
breath sees the log's memory as of the same moment: nothing is published in between.
"""

from collections import deque

import orjson
from attrs import define, field

from nerve.contract import codec
from nerve.contract.frames import encode_frame
from nerve.contract.generated.entities import SessionStatus
from nerve.contract.generated.frames_server import GapFrame, SessionStatusFrame
from nerve.contract.unset import UNSET
from nerve.runtime.event_log import SessionLog
from nerve.runtime.outbox import Outbox
from nerve.runtime.supervisor import Supervisor
from nerve.store import binding, event_log
from nerve.store.binding import BindingRow
from nerve.store.event_log import LogRow

PAGE = 500
PAGE_BYTES = 256 * 1024


@define(eq=False)
class Binding:
    """One reader's tie to one session; made by ``bind``, ended by ``release``."""

    session_id: str
    _supervisor: Supervisor
    _outbox: Outbox
    _log: SessionLog = field()

    @classmethod
    async def bind(cls, supervisor: Supervisor, outbox: Outbox, session_id: str) -> "Binding":
        """Raises SESSION_NOT_FOUND, and then nothing has changed.  The outbox gets state frames from here on."""
        log = await supervisor.logs.hold(session_id)
        return cls(session_id, supervisor, outbox, log)

    def attach(self) -> None:
        self._outbox.cursor = None
        self._outbox.passed_over.clear()
        self._supervisor.house.hub.bind(self._outbox, self.session_id)

    def release(self) -> None:
        self._supervisor.house.hub.unbind(self._outbox, self.session_id)
        self._supervisor.logs.drop(self.session_id)

    async def snapshot(self) -> None:
        """Send ``session_status`` with what the running turn has said; live frames follow at once."""
        while True:
            await self._supervisor.agents.save(self.session_id)
            first = self._supervisor.turn_start(self.session_id)
            events: list[str] = []
            row, cursor = await self._read_turn(first, events)
            if self._supervisor.turn_start(self.session_id) == first:
                break
        for unsaved in self._log.tail_after(cursor) or () if first is not None else ():
            events.append(unsaved.frame)
        # A frame may be on disk and not published yet; it was read here, so its publication is passed over.
        self._outbox.cursor = max(cursor, self._log.last_seq)
        buffered = self._newest(events) if first is not None else None
        self._send_status(row, self._outbox.cursor, buffered)
        self._send_pending(1, _first_number(buffered) - 1 if buffered else self._outbox.cursor)

    def _send_pending(self, first: int, last: int) -> None:
        """What waits for a person and has its number in this range, which no other frame brings (decisions D28)."""
        if self._outbox.logged_only:
            return  # its numbers only rise (decisions D6)
        for seq, frame in self._supervisor.pending_interactions(self.session_id):
            if first <= seq <= last:
                self._outbox.put(frame, seq)

    def _newest(self, events: list[str]) -> list[str]:
        """What keeps the bounds after the turn has gone on while it was read."""
        limits = self._supervisor.house.limits
        kept = deque(events[-limits.log_frames :])
        size = sum(len(text.encode()) for text in kept)
        while size > limits.buffer_bytes and len(kept) > 1:
            size -= len(kept.popleft().encode())
        return list(kept)

    async def _read_turn(self, first: int | None, events: list[str]) -> tuple[BindingRow, int]:
        """Fill ``events`` with the newest part of the turn that keeps the bounds; the number of the last one read."""
        house = self._supervisor.house
        if first is None:
            return await house.database.read(binding.read, self.session_id, None, 0, 0), 0
        bounds = (first, house.limits.log_frames, house.limits.buffer_bytes)
        cursor: int = await house.database.read_large(event_log.buffer_start, self.session_id, *bounds) - 1
        while True:
            row: BindingRow = await house.database.read(binding.read, self.session_id, cursor, PAGE, PAGE_BYTES)
            events += [frame.frame for frame in row.frames]
            cursor = row.frames[-1].seq if row.frames else cursor
            if _is_last(row.frames):
                return row, cursor

    def _send_status(self, row: BindingRow, last_seq: int, events: list[str] | None) -> None:
        frame = SessionStatusFrame(
            session_id=self.session_id,
            is_running=self._supervisor.turn_start(self.session_id) is not None,
            status=SessionStatus(row.status),
            last_seq=last_seq,
            agents=self._supervisor.agents.snapshot_of(self.session_id, row.agents, row.waiting),
        )
        plain = codec.unstructure(frame)
        if events is not None:
            plain["buffered_events"] = [orjson.Fragment(text) for text in events]
        self._outbox.put(codec.encode_plain(plain))

    async def status_only(self) -> None:
        """Send ``session_status`` without events: a replay by number follows."""
        await self._supervisor.agents.save(self.session_id)
        row = await self._supervisor.house.database.read(binding.read, self.session_id, None, 0, 0)
        self._send_status(row, self._log.last_seq, None)

    async def replay_turn(self) -> None:
        """Send the running turn from its first frame on, then go live; at once live when no turn runs."""
        first = self._supervisor.turn_start(self.session_id)
        if first is None:
            self._outbox.cursor = self._log.last_seq
        else:
            await self.replay(first - 1)

    async def replay(self, after_seq: int) -> None:
        """Send every kept frame above ``after_seq`` one by one, a gap for what is lost, then go live (decisions D7)."""
        database = self._supervisor.house.database
        bounds = await database.read(event_log.bounds, self.session_id)
        cursor = after_seq
        if after_seq > self._log.last_seq:
            first = bounds.first if bounds.first is not None else self._log.last_seq + 1
            self._gap(first, self._log.last_seq, reset=True)
            self._send_pending(1, first - 1)
            cursor = first - 1
        while True:
            rows = await database.read(event_log.after, self.session_id, cursor, PAGE, PAGE_BYTES)
            for row in rows:
                cursor = self._step(after_seq, cursor, row)
            if _is_last(rows):
                break
            await self._outbox.room()
        for row in self._log.tail_after(cursor) or []:
            cursor = self._step(after_seq, cursor, row)
        if cursor < self._log.last_seq:
            self._lost(after_seq, cursor + 1, self._log.last_seq)
            cursor = self._log.last_seq
        self._outbox.cursor = cursor

    def _step(self, after_seq: int, cursor: int, row: LogRow) -> int:
        if row.seq > cursor + 1:
            self._lost(after_seq, cursor + 1, row.seq - 1)
        if row.seq not in self._outbox.passed_over:
            self._outbox.put(row.frame.encode(), row.seq)
        return row.seq

    def _lost(self, after_seq: int, from_seq: int, to_seq: int) -> None:
        """A gap, and what waits for a person from within it; from before it too if nothing was brought since."""
        self._gap(from_seq, to_seq)
        self._send_pending(1 if from_seq == after_seq + 1 else from_seq, to_seq)

    def _gap(self, from_seq: int, to_seq: int, *, reset: bool = False) -> None:
        frame = GapFrame(session_id=self.session_id, from_seq=from_seq, to_seq=to_seq, reset=True if reset else UNSET)
        self._outbox.put(encode_frame(frame))


def _first_number(events: list[str]) -> int:
    return int(orjson.loads(events[0])["seq"])


def _is_last(page: list[LogRow]) -> bool:
    return len(page) < PAGE and sum(len(row.frame) for row in page) < PAGE_BYTES
