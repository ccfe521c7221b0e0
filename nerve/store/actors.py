"""Who things are attributed to: the people and the system principal (gaps.md 1.2)."""

from datetime import datetime

import apsw
from attrs import frozen

from nerve.store.rows import Shape, insert, one, run

SYSTEM_ACTOR = "act_system"


@frozen
class ActorRow:
    """``username`` is the login name of the actor's account, if there is one."""

    id: str
    kind: str
    display_name: str
    username: str | None


_ACTOR = Shape(ActorRow)


def all_actors(db: apsw.Connection) -> list[ActorRow]:
    """Oldest first."""
    return _ACTOR.all(
        db,
        "SELECT actors.id, kind, display_name, username FROM actors LEFT JOIN accounts ON accounts.actor_id = actors.id"
        " ORDER BY actors.n",
    )


def has_actor(db: apsw.Connection, actor_id: str) -> bool:
    return one(db, "SELECT 1 FROM actors WHERE id = ?", (actor_id,)) is not None


def add_actor(db: apsw.Connection, actor_id: str, kind: str, display_name: str, now: datetime) -> None:
    insert(db, "actors", id=actor_id, kind=kind, display_name=display_name, created_at=now)


def rename_actor(db: apsw.Connection, actor_id: str, display_name: str) -> None:
    run(db, "UPDATE actors SET display_name = ? WHERE id = ?", (display_name, actor_id))


@frozen
class SessionCause:
    """On whose behalf a session works; None for sessions from before attribution or of unknown people."""

    actor_id: str | None


def cause_of_session(db: apsw.Connection, session_id: str) -> SessionCause | None:
    """None if there is no such session."""
    row = one(db, "SELECT caused_by_actor_id FROM sessions WHERE id = ?", (session_id,))
    return None if row is None else SessionCause(row[0])
