"""Homes to measure on: an empty one, and one that has been lived in."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import apsw

from nerve.store.connection import configure, connect
from nerve.store.rows import insert
from tests.soak.daemon import Daemon

SESSIONS, MESSAGES = 2_000, 20_000
LONG, SHORT = "blong000", "bshort00"
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


@contextmanager
def new_home(cpus: frozenset[int] | None = None, program: tuple[str, ...] = ("-m", "nerve")) -> Iterator[Daemon]:
    """A daemon that is not started yet, on an empty home; ended with the block."""
    with tempfile.TemporaryDirectory(prefix="nerve-bench-") as directory:
        place = Path(directory)
        daemon = Daemon(place / "home", place / "workspace", cpus=cpus, program=program)
        try:
            yield daemon
        finally:
            daemon.end()


@contextmanager
def lived_in_home(
    cpus: frozenset[int] | None = None,
    sessions: int = SESSIONS,
    messages: int = MESSAGES,
    others: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Daemon]:
    """A claimed home with so many sessions and messages in all, its daemon stopped cleanly.

    ``others``: how many messages further sessions have, by their id.
    """
    with new_home(cpus) as daemon:
        daemon.start()
        daemon.claim()
        daemon.end()
        with closing(connect(daemon.database)) as db:
            configure(db)
            with db:
                _settle_in(db, sessions, messages, others)
        yield daemon


def _settle_in(db: apsw.Connection, sessions: int, messages: int, others: Mapping[str, int]) -> None:
    actor = next(db.execute("SELECT actor_id FROM accounts"))[0]
    lengths = {f"b{number:07x}": messages // sessions for number in range(sessions)} | dict(others)
    for number, (session_id, each) in enumerate(lengths.items()):
        at = _BEGINNING + timedelta(minutes=number)
        insert(
            db,
            "sessions",
            id=session_id,
            title=f"Conversation number {number}",
            source="web",
            status="idle",
            backend="scripted",
            cwd="/workspace",
            created_by_actor_id=actor,
            caused_by_actor_id=actor,
            created_at=at,
            updated_at=at,
            last_activity_at=at,
            message_count=each,
        )
        for n in range(each):
            role = "user" if n % 2 == 0 else "assistant"
            content = f"Message {n} of conversation {number}. " * 8
            insert(db, "messages", session_id=session_id, role=role, content=content, created_at=at)
