"""Scheduled turns: at most one pending per session, claimed by the transaction that begins its turn.

``due`` is set by the sweep once the time has come; from then on the record waits in the session's queue, after its
messages.  Each function is the whole transaction of its step, or part of one.
"""

from datetime import datetime, timedelta
from typing import Any

import apsw
from attrs import frozen

from nerve.domain.wakeups import LABELS, PendingWakeup, WakeupKind, spoken
from nerve.errors import ErrorCode, NerveError
from nerve.store.instants import to_text
from nerve.store.queue import QueuedMessage
from nerve.store.rows import Shape, insert, one, run
from nerve.store.session_events import record as record_event

KEPT = timedelta(days=30)  # a settled record
SOURCE = "wakeup"  # of the turn that an agent's own wakeup begins; a person's message keeps its own


@frozen
class Wakeup:
    """A record of ``session_wakeups``.  ``source`` is the turn's."""

    id: str
    session_id: str
    kind: str
    source: str
    prompt: str
    reason: str | None
    fire_at: datetime
    created_by_actor_id: str | None
    caused_by_actor_id: str | None
    created_at: datetime


@frozen
class ScheduledEntry(QueuedMessage):
    """A scheduled turn that is due, as it stands in the queue; ``label`` is shown instead of its text."""

    label: str = ""

    @property
    def hidden(self) -> bool:
        """Whether the prompt is the agent's own: nobody is shown it as a message."""
        return self.source == SOURCE


@frozen
class DueWakeup:
    """``fallback_reason``: why the session is on the fallback script; None when it is not."""

    session_id: str
    kind: str
    fallback_reason: str | None


WAKEUP = Shape(Wakeup)
DUE = Shape(DueWakeup)
PENDING = Shape(PendingWakeup)


def schedule(db: apsw.Connection, wakeup: Wakeup) -> Wakeup | None:
    """Store it in the place of the one that was pending, which is returned; old settled ones go on the way.

    Raises SESSION_NOT_FOUND.
    """
    if one(db, "SELECT 1 FROM sessions WHERE id = ?", (wakeup.session_id,)) is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    run(
        db,
        "DELETE FROM session_wakeups WHERE session_id = ? AND status <> 'pending' AND created_at < ?",
        (wakeup.session_id, to_text(wakeup.created_at - KEPT)),
    )
    replaced = cancel(db, wakeup.session_id, "replaced", wakeup.created_at)
    values = {name: getattr(wakeup, name) for name in WAKEUP.columns.split(", ")}
    insert(db, "session_wakeups", **values)
    return replaced


def cancel(db: apsw.Connection, session_id: str, why: str, now: datetime) -> Wakeup | None:
    """Cancel what is pending, if anything, and record ``wakeup_cancelled``."""
    found = WAKEUP.one(
        db, f"SELECT {WAKEUP.columns} FROM session_wakeups WHERE session_id = ? AND status = 'pending'", (session_id,)
    )
    if found is not None:
        _settle(db, found.id, "cancelled")
        details = {"kind": found.kind, "fire_at": to_text(found.fire_at), "reason": why}
        record_event(db, session_id, "wakeup_cancelled", details, now=now)
    return found


def _settle(db: apsw.Connection, wakeup_id: str, status: str) -> None:
    run(db, "UPDATE session_wakeups SET status = ?, due = 0 WHERE id = ?", (status, wakeup_id))


def pending(db: apsw.Connection, session_id: str) -> PendingWakeup | None:
    return PENDING.one(
        db,
        f"SELECT {PENDING.columns} FROM session_wakeups WHERE session_id = ? AND status = 'pending'",
        (session_id,),
    )


def all_pending(db: apsw.Connection) -> dict[str, PendingWakeup]:
    """By session."""
    rows = db.execute(f"SELECT session_id, {PENDING.columns} FROM session_wakeups WHERE status = 'pending'")
    return {row[0]: PENDING.read(row[1:]) for row in rows}


def overdue(db: apsw.Connection, now: datetime, limit: int) -> list[DueWakeup]:
    """Those whose time has come, in sessions that may run, the longest overdue first."""
    return DUE.all(
        db,
        "SELECT w.session_id, w.kind, s.backend_reason FROM session_wakeups w JOIN sessions s ON s.id = w.session_id"
        " WHERE w.status = 'pending' AND w.fire_at <= ? AND s.quarantined = 0 ORDER BY w.fire_at LIMIT ?",
        (to_text(now), limit),
    )


def promote(db: apsw.Connection, session_id: str, now: datetime) -> bool:
    """Put the overdue one into the queue; False if it stands there already or is gone."""
    return (
        run(
            db,
            "UPDATE session_wakeups SET due = 1 WHERE session_id = ? AND status = 'pending' AND due = 0"
            " AND fire_at <= ?",
            (session_id, to_text(now)),
        )
        > 0
    )


def skip(db: apsw.Connection, session_id: str, reason: str, now: datetime) -> bool:
    """Nobody attends to it and there is no model to run it (decisions D57); False if it is gone by now."""
    found = one(
        db,
        "SELECT id, created_by_actor_id, caused_by_actor_id FROM session_wakeups"
        " WHERE session_id = ? AND status = 'pending' AND kind = 'wakeup' AND fire_at <= ?",
        (session_id, to_text(now)),
    )
    if found is None:
        return False
    _settle(db, found[0], "cancelled")
    details: dict[str, Any] = {"reason": reason}
    record_event(db, session_id, "wakeup_skipped", details, actor_id=found[1], caused_by_actor_id=found[2], now=now)
    return True


def due_entry(db: apsw.Connection, session_id: str) -> ScheduledEntry | None:
    """The due one as an entry of the queue."""
    found = WAKEUP.one(
        db,
        f"SELECT {WAKEUP.columns} FROM session_wakeups WHERE session_id = ? AND status = 'pending' AND due = 1",
        (session_id,),
    )
    if found is None:
        return None
    kind = WakeupKind(found.kind)
    return ScheduledEntry(
        id=found.id,
        session_id=session_id,
        content=spoken(found.prompt) if kind is WakeupKind.WAKEUP else found.prompt,
        source=found.source,
        actor_id=found.created_by_actor_id,
        client_msg_id=None,
        model=None,
        created_at=found.created_at,
        label=LABELS[kind],
    )


def claim(db: apsw.Connection, session_id: str) -> ScheduledEntry | None:
    """Take the due one, for the transaction that begins its turn: nobody else can, and it never fires again."""
    entry = due_entry(db, session_id)
    if entry is not None:
        _settle(db, entry.id, "fired")
    return entry


def withdraw(db: apsw.Connection, entry: ScheduledEntry) -> None:
    """Its sender took it back while it stood in the queue."""
    _settle(db, entry.id, "cancelled")
