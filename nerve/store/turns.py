"""Turns: begun, ended, found open at start.  Each function is the whole transaction of its step."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw
import orjson
from attrs import frozen

from nerve.domain.attachments import Attachment, stored_blocks, stored_content
from nerve.domain.titles import first_words
from nerve.domain.transcript import StoredMessage
from nerve.domain.turns import TurnState, bumps
from nerve.errors import ErrorCode, NerveError
from nerve.store import forks, uploads, waiting
from nerve.store.instants import to_text
from nerve.store.queue import QueuedMessage
from nerve.store.rows import Shape, insert, one, run, scalar
from nerve.store.session_events import record as record_event
from nerve.store.wakeups import ScheduledEntry


@frozen
class BegunTurn:
    """What beginning a turn changed, for those who are to be told."""

    entry: QueuedMessage
    user_message_id: int | None  # None: the prompt is hidden
    title: str | None  # the placeholder title, if the session got one
    attachments: tuple[Attachment, ...] = ()

    @property
    def scheduled(self) -> bool:
        return isinstance(self.entry, ScheduledEntry)


@frozen
class OpenTurn:
    id: str
    session_id: str
    first_seq: int
    started_at: datetime


@frozen
class TurnUsageRow:
    """Figures of one turn as the runtime reported them; tokens, and USD for this turn alone."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    cost_usd: float | None
    max_context_tokens: int | None
    num_turns: int | None


@frozen
class TurnEnd:
    """How a turn is recorded.  ``status`` is the session's status from then on."""

    turn_id: str
    session_id: str
    state: TurnState
    message: StoredMessage
    status: str
    reason: str | None
    native_turn_id: str | None
    model: str | None
    usage: TurnUsageRow | None
    events: Sequence[tuple[str, dict[str, Any]]]


OPEN_TURN = Shape(OpenTurn)


def begin(
    db: apsw.Connection, session_id: str, turn_id: str, first_seq: int, system_actor: str, now: datetime
) -> BegunTurn | None:
    """Take what is first, store the user's row and open the turn; None if nothing waits by now.

    A hidden prompt has neither a row nor words that could be a title.
    """
    entry = waiting.take_next(db, session_id)
    if entry is None:
        return None
    hidden = isinstance(entry, ScheduledEntry) and entry.hidden
    attachments = uploads.take(db, entry.id, now)
    message_id = None if hidden else _add_user_message(db, entry, attachments, turn_id, now)
    _open(db, entry, turn_id, first_seq, message_id, now)
    title = None if hidden else _placeholder_title(db, session_id, entry.content, system_actor, now)
    return BegunTurn(entry, message_id, title, attachments)


def begin_unasked(db: apsw.Connection, entry: QueuedMessage, turn_id: str, first_seq: int, now: datetime) -> BegunTurn:
    """Open a turn that nothing in a queue asks for."""
    _open(db, entry, turn_id, first_seq, None, now)
    return BegunTurn(entry, None, None)


def _open(
    db: apsw.Connection, entry: QueuedMessage, turn_id: str, first_seq: int, message_id: int | None, now: datetime
) -> None:
    insert(
        db,
        "turns",
        id=turn_id,
        session_id=entry.session_id,
        state=TurnState.RUNNING.value,
        source=entry.source,
        queue_id=entry.id,
        actor_id=entry.actor_id,
        client_msg_id=entry.client_msg_id,
        user_message_id=message_id,
        first_seq=first_seq,
        started_at=now,
    )
    # How the last turn ended is over; a client that was kept is not attached again, which would say so.
    run(
        db,
        "UPDATE sessions SET status = 'active' WHERE id = ? AND status IN ('stopped', 'error')",
        (entry.session_id,),
    )


def _add_user_message(
    db: apsw.Connection, entry: QueuedMessage, attachments: Sequence[Attachment], turn_id: str, now: datetime
) -> int:
    blocks = stored_blocks(entry.content, attachments)
    return _add_message(
        db,
        entry.session_id,
        now,
        role="user",
        content=stored_content(entry.content, attachments),
        blocks=None if blocks is None else orjson.dumps(blocks).decode(),
        channel=entry.source,
        turn_id=turn_id,
        actor_id=entry.actor_id,
    )


def _add_message(db: apsw.Connection, session_id: str, now: datetime, *, bump: bool = True, **values: Any) -> int:
    """``bump``: the session moves to the front of its feed."""
    message_id = insert(db, "messages", session_id=session_id, created_at=now, **values)
    run(
        db,
        "UPDATE sessions SET message_count = message_count + 1, last_activity_at = ?1,"
        " updated_at = iif(?2, ?1, updated_at) WHERE id = ?3",
        (to_text(now), int(bump), session_id),
    )
    return message_id


def _placeholder_title(
    db: apsw.Connection, session_id: str, content: str, system_actor: str, now: datetime
) -> str | None:
    """Until a model writes one, a session that nobody named is called by its first words."""
    row = one(db, "SELECT title, caused_by_actor_id FROM sessions WHERE id = ?", (session_id,))
    title = first_words(content)
    if row is None or row[0] != session_id or not title:
        return None
    run(db, "UPDATE sessions SET title = ? WHERE id = ?", (title, session_id))
    details = {"title": title, "previous": row[0]}
    record_event(db, session_id, "title_changed", details, actor_id=system_actor, caused_by_actor_id=row[1], now=now)
    return title


def attached(db: apsw.Connection, session_id: str, native_id: str, began_afresh: bool, now: datetime) -> str | None:
    """A runtime client was built for the session; the conversation that nobody needs any more now, if there is one."""
    before: str | None = scalar(db, "SELECT sdk_session_id FROM sessions WHERE id = ?", (session_id,))
    if began_afresh and before is not None:
        _unmap(db, session_id)  # what the runtime had of it is lost
    run(
        db,
        "UPDATE sessions SET status = 'active', sdk_session_id = ?, connected_at = ?, fork_pending = 0,"
        " fork_turn = NULL WHERE id = ?",
        (native_id, to_text(now), session_id),
    )
    record_event(db, session_id, "started", {"sdk_session_id": native_id}, now=now)
    return forks.unneeded(db, before)


def _unmap(db: apsw.Connection, session_id: str) -> None:
    """From here on no earlier message is a place in the runtime's conversation, so none can be forked at."""
    for table in ("messages", "turns"):
        run(
            db,
            f"UPDATE {table} SET native_turn_id = NULL WHERE session_id = ? AND native_turn_id IS NOT NULL",
            (session_id,),
        )


def end(db: apsw.Connection, turn: TurnEnd, now: datetime) -> int:
    """Record the outcome, the assistant's row, the figures; the id of that row."""
    message_id = _add_message(
        db,
        turn.session_id,
        now,
        bump=bumps(scalar(db, "SELECT source FROM turns WHERE id = ?", (turn.turn_id,))),
        role="assistant",
        content=turn.message.content,
        thinking=turn.message.thinking,
        blocks=None if turn.message.blocks is None else orjson.dumps(turn.message.blocks).decode(),
        native_turn_id=turn.native_turn_id,
        turn_id=turn.turn_id,
    )
    run(
        db,
        "UPDATE turns SET state = ?, assistant_message_id = ?, native_turn_id = ?, error = ?, ended_at = ?"
        " WHERE id = ?",
        (turn.state.value, message_id, turn.native_turn_id, turn.reason, to_text(now), turn.turn_id),
    )
    if turn.native_turn_id is not None:
        run(
            db,
            "UPDATE messages SET native_turn_id = ? WHERE id = (SELECT user_message_id FROM turns WHERE id = ?)",
            (turn.native_turn_id, turn.turn_id),
        )
    run(db, "UPDATE sessions SET status = ? WHERE id = ?", (turn.status, turn.session_id))
    if turn.usage is not None:
        _record_usage(db, turn, turn.usage, now)
    for event_type, details in turn.events:
        record_event(db, turn.session_id, event_type, details, now=now)
    return message_id


def _record_usage(db: apsw.Connection, turn: TurnEnd, usage: TurnUsageRow, now: datetime) -> None:
    started = scalar(db, "SELECT started_at FROM turns WHERE id = ?", (turn.turn_id,))
    duration = (now - datetime.fromisoformat(started)).total_seconds() * 1000
    tokens = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
    }
    insert(
        db,
        "session_usage",
        session_id=turn.session_id,
        turn_id=turn.turn_id,
        model=turn.model,
        **tokens,
        max_context_tokens=usage.max_context_tokens,
        num_turns=usage.num_turns,
        cost_usd=usage.cost_usd or 0.0,
        duration_ms=int(duration),
        created_at=now,
    )
    extra = {"max_context_tokens": usage.max_context_tokens, "num_turns": usage.num_turns}
    last = {**tokens, **{key: value for key, value in extra.items() if value is not None}}
    run(
        db,
        "UPDATE sessions SET total_cost_usd = total_cost_usd + ?, last_usage = ? WHERE id = ?",
        (usage.cost_usd or 0.0, orjson.dumps(last).decode(), turn.session_id),
    )


def all_running(db: apsw.Connection) -> list[OpenTurn]:
    """What a crash left open; served by the partial index on running turns."""
    return OPEN_TURN.all(db, f"SELECT {OPEN_TURN.columns} FROM turns WHERE state = 'running' ORDER BY started_at")


def interrupted_between(db: apsw.Connection, session_id: str, since: datetime, until: datetime | None) -> bool:
    """Whether a turn of the session that began in that time was cut off by a crash or a shutdown."""
    found = scalar(
        db,
        "SELECT 1 FROM turns WHERE session_id = ? AND state IN ('interrupted', 'running') AND started_at >= ?"
        " AND (?3 IS NULL OR started_at < ?3) LIMIT 1",
        (session_id, to_text(since), None if until is None else to_text(until)),
    )
    return found is not None


@frozen
class RuntimeFacts:
    """What a client is built from."""

    backend: str
    backend_reason: str | None
    model: str | None
    cwd: str
    sdk_session_id: str | None
    fork_pending: bool
    fork_turn: str | None


RUNTIME_FACTS = Shape(RuntimeFacts)


def runtime_facts(db: apsw.Connection, session_id: str) -> RuntimeFacts:
    facts = RUNTIME_FACTS.one(db, f"SELECT {RUNTIME_FACTS.columns} FROM sessions WHERE id = ?", (session_id,))
    if facts is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    return facts


def detached(db: apsw.Connection, session_id: str, now: datetime) -> None:
    """The client is gone and the conversation can go on from its native id; other statuses stay as they are."""
    if run(db, "UPDATE sessions SET status = 'idle' WHERE id = ? AND status = 'active'", (session_id,)):
        resumable = scalar(db, "SELECT sdk_session_id IS NOT NULL FROM sessions WHERE id = ?", (session_id,))
        record_event(db, session_id, "idle", {"resumable": bool(resumable)}, now=now)


def moved_to_backend(db: apsw.Connection, session_id: str, backend: str, now: datetime) -> None:
    """A session on the fallback goes on with the configured runtime, in a conversation of its own (decisions D4)."""
    before = scalar(db, "SELECT backend FROM sessions WHERE id = ?", (session_id,))
    run(
        db,
        "UPDATE sessions SET backend = ?, backend_reason = NULL, sdk_session_id = NULL, fork_pending = 0,"
        " fork_turn = NULL WHERE id = ?",
        (backend, session_id),
    )
    _unmap(db, session_id)
    record_event(db, session_id, "backend_changed", {"backend": backend, "previous": before}, now=now)


def moved_while_idle(db: apsw.Connection, session_id: str, backend: str, now: datetime) -> bool:
    """As ``moved_to_backend``, unless the session is not on the fallback any more; False while a turn runs in it."""
    if scalar(db, "SELECT 1 FROM turns WHERE session_id = ? AND state = 'running'", (session_id,)) is not None:
        return False
    if scalar(db, "SELECT backend_reason FROM sessions WHERE id = ?", (session_id,)) is not None:
        moved_to_backend(db, session_id, backend, now)
    return True


def orphans_to_idle(db: apsw.Connection, now: datetime) -> None:
    """At start no client survives: whoever was active is idle now, or stopped without a native id."""
    rows = list(db.execute("SELECT id, sdk_session_id IS NOT NULL FROM sessions WHERE status = 'active'"))
    for session_id, has_id in rows:
        status, reason = ("idle", "orphan_recovery") if has_id else ("stopped", "orphan_recovery_no_sdk_id")
        run(db, "UPDATE sessions SET status = ? WHERE id = ?", (status, session_id))
        record_event(db, session_id, status, {"reason": reason}, now=now)
