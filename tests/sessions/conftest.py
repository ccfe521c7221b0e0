from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from nerve.contract.generated.entities import SessionSource
from nerve.store.inline import InlineDatabase, open_inline
from nerve.store.rows import insert
from nerve.store.sessions import SessionDraft

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALICE, BOB, SYSTEM = "act_alice", "act_bob", "act_system"


@pytest.fixture
def new_id() -> Callable[[str], str]:
    counts: Counter[str] = Counter()

    def count(kind: str) -> str:
        counts[kind] += 1
        return f"{kind}_{counts[kind]}"

    return count


@pytest.fixture
def database() -> Iterator[InlineDatabase]:
    """A store with three actors."""
    with open_inline() as database:
        for actor_id in (ALICE, BOB, SYSTEM):
            kind = "system" if actor_id == SYSTEM else "human"
            insert(database._db, "actors", id=actor_id, kind=kind, display_name="", created_at=NOW)
        yield database


@pytest.fixture
def draft() -> SessionDraft:
    return SessionDraft(
        title=None, source=SessionSource.WEB, backend="scripted", backend_reason=None, model=None, cwd="/work"
    )
