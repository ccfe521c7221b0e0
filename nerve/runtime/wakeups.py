"""What is scheduled in which session, known without waiting; and the sweep that puts into queues what is due.

A scheduled turn is begun like any other: by its session, in the transaction that claims its record.  So a crash
leaves it either pending or begun, and a session that is busy simply gets to it later.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

import trio
from attrs import define, field

from nerve.domain.wakeups import SWEEP_SECONDS, PendingWakeup, WakeupKind
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.backends import Backends
from nerve.store import intake, turns, wakeups
from nerve.store.database import Database
from nerve.store.wakeups import DueWakeup, Wakeup

log = logging.getLogger("nerve.runtime")

AT_ONCE = 1000  # taken up by one sweep; the rest by the next


@define(eq=False)
class Schedule:
    """A copy in memory of what is pending; whoever changes a record calls ``refresh`` after the write."""

    _database: Database
    _effects: Effects
    _pending: dict[str, PendingWakeup] = field(factory=dict)
    _stirred: trio.Event = field(factory=trio.Event)

    async def load(self) -> None:
        self._pending = await self._database.read(wakeups.all_pending)

    def pending(self, session_id: str) -> PendingWakeup | None:
        return self._pending.get(session_id)

    async def until_pending(self) -> None:
        """Wait until anything is pending anywhere."""
        while not self._pending:
            self._stirred = trio.Event()
            await self._stirred.wait()

    def any_overdue(self) -> bool:
        now = self._effects.now()
        return any(wakeup.fire_at <= now for wakeup in self._pending.values())

    async def refresh(self, session_id: str) -> bool:
        """True if something changed.  Nothing waits between the read and the copy, so the last one to read is right."""
        found = await self._database.read(wakeups.pending, session_id)
        changed = found != self._pending.get(session_id)
        if found is None:
            self._pending.pop(session_id, None)
        else:
            self._pending[session_id] = found
            self._stirred.set()
        return changed

    async def put(
        self,
        session_id: str,
        kind: WakeupKind,
        source: str,
        prompt: str,
        delay: timedelta,
        *,
        actor_id: str | None,
        cause_id: str | None,
        reason: str | None = None,
        file_ids: tuple[str, ...] = (),
    ) -> tuple[datetime, Wakeup | None]:
        """Schedule a turn in the place of what was pending; when it fires, and what it replaced.

        On disk when this returns.  ``file_ids`` are a message's.  Raises SESSION_NOT_FOUND and FILE_NOT_FOUND.
        """
        now = self._effects.now()
        wakeup = Wakeup(
            id=self._effects.new_id("queue"),
            session_id=session_id,
            kind=kind.value,
            source=source,
            prompt=prompt,
            reason=reason,
            fire_at=now + delay,
            created_by_actor_id=actor_id,
            caused_by_actor_id=cause_id,
            created_at=now,
        )
        message = partial(intake.put_off, file_ids=file_ids)
        record = message if kind is WakeupKind.MESSAGE else wakeups.schedule
        replaced = await self._database.write(record, wakeup)
        await self.refresh(session_id)
        return wakeup.fire_at, replaced


class Sessions(Protocol):
    """What the sweep asks of the supervisor."""

    async def run_scheduled(self, session_id: str, *, announce: bool) -> None:
        """Have the session get to it; ``announce``: tell that it waits, unless it starts at once."""
        ...

    async def wakeup_changed(self, session_id: str) -> None:
        """Take a change of what is pending to those who watch."""
        ...


@define(eq=False)
class Sweep:
    """Lives in the supervisor's nursery."""

    _database: Database
    _effects: Effects
    _backends: Backends
    _schedule: Schedule
    _sessions: Sessions

    async def run(self) -> None:
        """Look every ``SWEEP_SECONDS``, first at once.  A full disk or a busy database puts it off to the next time."""
        while True:
            await self._schedule.until_pending()
            try:
                await self._once()
            except NerveError as refusal:
                if refusal.code not in (ErrorCode.STORE_FULL, ErrorCode.STORE_BUSY):
                    raise
                log.warning("scheduled turns have to wait: %s", refusal.message)
            except Exception:  # the barrier of the sweep: what one session or runtime breaks is tried again
                log.exception("the sweep over scheduled turns failed")
            await trio.sleep(SWEEP_SECONDS)

    async def _once(self) -> None:
        if not self._schedule.any_overdue():
            return
        for wakeup in await self._database.read(wakeups.overdue, self._effects.now(), AT_ONCE):
            if await self._may_run(wakeup):
                newly = await self._database.write(wakeups.promote, wakeup.session_id, self._effects.now())
                await self._sessions.run_scheduled(wakeup.session_id, announce=newly)

    async def _may_run(self, wakeup: DueWakeup) -> bool:
        """A hidden prompt needs a runtime that somebody chose; where that is missing it is skipped (decisions D57)."""
        if wakeup.fallback_reason is None or wakeup.kind == WakeupKind.MESSAGE:
            return True
        session_id, now = wakeup.session_id, self._effects.now()
        choice = await self._backends.choose()
        if choice.reason is None:
            return await self._database.write(turns.moved_while_idle, session_id, choice.backend, now)
        if await self._database.write(wakeups.skip, session_id, choice.reason, now):
            await self._sessions.wakeup_changed(session_id)
        return False
