"""Rows of agents.  A record is written whole: who holds the roster of a session is the only one that changes it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, get_args, get_type_hints

import apsw
import attrs
import orjson
from attrs import frozen

from nerve.contract.generated.entities import AgentEndReason, AgentStatus
from nerve.domain.agents import AgentRecord, ended, lifecycle
from nerve.errors import ErrorCode, NerveError
from nerve.store import agent_items
from nerve.store.instants import from_text, to_text
from nerve.store.rows import bound, one, run

NAMES = tuple(attribute.name for attribute in attrs.fields(AgentRecord))
COLUMNS = ", ".join(NAMES)
_LIVE = "status IN ('starting', 'running', 'stopping')"


@frozen
class AgentTexts:
    """The full brief and the final report."""

    prompt: str | None
    result_text: str | None

    def with_(self, newer: "AgentTexts") -> "AgentTexts":
        """What is None in ``newer`` stays as it is."""
        pick = self.prompt if newer.prompt is None else newer.prompt
        return AgentTexts(pick, self.result_text if newer.result_text is None else newer.result_text)


NO_TEXTS = AgentTexts(None, None)


def _read_as(hint: Any) -> Callable[[Any], Any] | None:
    """How a column becomes the value of a field of that type; None: as SQLite gives it."""
    kinds = [kind for kind in (*get_args(hint), hint) if isinstance(kind, type)]
    if any(issubclass(kind, StrEnum) for kind in kinds):
        return next(kind for kind in kinds if issubclass(kind, StrEnum))
    if datetime in kinds:
        return from_text
    if bool in kinds:
        return bool
    return orjson.loads if hint == dict[str, Any] | None else None


_READS = [(n, read) for n, name in enumerate(NAMES) if (read := _read_as(get_type_hints(AgentRecord)[name]))]


def _record(row: tuple[Any, ...]) -> AgentRecord:
    values = list(row)
    for n, read in _READS:
        if values[n] is not None:
            values[n] = read(values[n])
    return AgentRecord(**dict(zip(NAMES, values, strict=True)))


def _columns(record: AgentRecord) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in NAMES:
        value = getattr(record, name)
        values[name] = orjson.dumps(value).decode() if isinstance(value, dict) else bound(value)
    return values


def of_session(db: apsw.Connection, session_id: str) -> list[AgentRecord]:
    """All of a session, in the order in which they were started.  Raises SESSION_NOT_FOUND."""
    _check_session(db, session_id)
    rows = db.execute(f"SELECT {COLUMNS} FROM session_agents WHERE session_id = ? ORDER BY n", (session_id,))
    return [_record(row) for row in rows]


def _check_session(db: apsw.Connection, session_id: str) -> None:
    if one(db, "SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)


def get(db: apsw.Connection, session_id: str, agent_id: str) -> tuple[AgentRecord, AgentTexts]:
    """Raises SESSION_NOT_FOUND, AGENT_NOT_FOUND, or AGENT_IN_OTHER_SESSION for one of a session that it came from."""
    _check_session(db, session_id)
    row = one(db, f"SELECT {COLUMNS}, prompt, result_text FROM session_agents WHERE id = ?", (agent_id,))
    if row is None:
        raise NerveError(ErrorCode.AGENT_NOT_FOUND)
    record = _record(row[:-2])
    if record.session_id != session_id:
        raise _not_here(db, session_id, record.session_id)
    return record, AgentTexts(*row[-2:])


def _not_here(db: apsw.Connection, session_id: str, owner_id: str) -> NerveError:
    if owner_id not in ancestors(db, session_id):
        return NerveError(ErrorCode.AGENT_NOT_FOUND)
    return NerveError(ErrorCode.AGENT_IN_OTHER_SESSION, owner_session_id=owner_id)


def ancestors(db: apsw.Connection, session_id: str) -> list[str]:
    """The session's parent, its parent and so on."""
    rows = db.execute(
        "WITH RECURSIVE up(id) AS (SELECT parent_session_id FROM sessions WHERE id = ?1"
        " UNION SELECT s.parent_session_id FROM sessions s JOIN up ON s.id = up.id)"
        " SELECT id FROM up WHERE id IS NOT NULL AND id <> ?1",
        (session_id,),
    )
    return [row[0] for row in rows]


def save(
    db: apsw.Connection,
    records: Iterable[AgentRecord],
    items: Iterable[tuple[str, int, str]] = (),
    texts: Mapping[str, AgentTexts] | None = None,
) -> None:
    """Write the records whole, new ones too, and transcript items ``(agent_id, seq, json)``.

    Texts that are None in ``texts`` stay as they are.  Nothing is written of a session that is gone by now.
    """
    marks, kept = ", ".join("?" * len(NAMES)), ", ".join(f"{name} = excluded.{name}" for name in NAMES)
    for record in records:
        if one(db, "SELECT 1 FROM sessions WHERE id = ?", (record.session_id,)) is not None:
            run(
                db,
                f"INSERT INTO session_agents ({COLUMNS}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {kept}",
                tuple(_columns(record).values()),
            )
    for agent_id, text in (texts or {}).items():
        run(
            db,
            "UPDATE session_agents SET prompt = coalesce(?2, prompt), result_text = coalesce(?3, result_text)"
            " WHERE id = ?1",
            (agent_id, text.prompt, text.result_text),
        )
    agent_items.append(db, items)


def interrupt_live(db: apsw.Connection, reason: AgentEndReason, now: datetime, session_id: str | None = None) -> int:
    """What is left open by a runtime that is gone is interrupted, in one session or, at a start, in all of them
    (decisions D9); how many those were."""
    where = f"{_LIVE} AND session_id = coalesce(?, session_id) ORDER BY depth DESC, n"
    rows = list(db.execute(f"SELECT {COLUMNS} FROM session_agents WHERE {where}", (session_id,)))
    for row in rows:
        record = ended(_record(row), AgentStatus.INTERRUPTED, reason, now)
        seq = agent_items.last_seq(db, record.id) + 1
        save(
            db,
            [record],
            [(record.id, seq, agent_items.to_json(agent_items.lifecycle_item(lifecycle(record), seq, now)))],
        )
    return len(rows)


def prune(db: apsw.Connection, session_id: str, keep: int, not_before: datetime) -> list[str]:
    """Drop the session's ended agents beyond the newest ``keep``, and those that ended before; their ids."""
    rows = db.execute(
        f"SELECT id, ended_at, row_number() OVER (ORDER BY ended_at DESC, n DESC) FROM session_agents"
        f" WHERE session_id = ? AND NOT {_LIVE}",
        (session_id,),
    )
    gone = [row[0] for row in rows if row[2] > keep or (row[1] is not None and row[1] < to_text(not_before))]
    for agent_id in gone:
        run(db, "DELETE FROM session_agents WHERE id = ?", (agent_id,))
    return gone


def forget_old(db: apsw.Connection, not_after: datetime, items: int = 2_000) -> bool:
    """Drop a part of what belongs to one agent that ended before: so many items, at last its record.

    False once nothing is left to drop.
    """
    row = one(db, "SELECT id FROM session_agents WHERE ended_at < ? ORDER BY ended_at LIMIT 1", (to_text(not_after),))
    if row is not None and agent_items.drop(db, row[0], items) < items:
        run(db, "DELETE FROM session_agents WHERE id = ?", (row[0],))
    return row is not None
