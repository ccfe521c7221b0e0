"""Whatever a batch is made of: what its callers are told is what the rows say."""

import tempfile
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from store_batches import one_batch

from nerve.store.inline import open_inline
from nerve.store.rows import insert
from nerve.store.threads import open_database

pytestmark = pytest.mark.slow


class Refused(Exception):
    pass


@frozen
class Job:
    """Adds its keys (each may be there already), then perhaps refuses or leaves a debt for the COMMIT."""

    keys: tuple[str, ...]
    ending: str

    def __call__(self, db: apsw.Connection) -> int:
        for key in self.keys:
            insert(db, "instance", key=key, value="")
        if self.ending == "refuse":
            raise Refused
        if self.ending == "debt":
            db.pragma("defer_foreign_keys", True)
            db.execute("INSERT INTO channel_sessions VALUES (hex(randomblob(8)), 'no such session', '')")
        return len(self.keys)


KEYS = st.lists(st.sampled_from("abcdefgh"), max_size=3).map(tuple)
JOBS = st.builds(Job, KEYS, st.sampled_from(["", "", "", "", "refuse", "debt"]))


def expected(jobs: list[Job]) -> tuple[list[Any], set[str]]:
    """The outcome of each job (its value or the type of its exception) and the keys that are there in the end."""
    there: set[str] = set()
    outcomes: list[Any] = []
    for job in jobs:
        new = set(job.keys)
        if len(new) < len(job.keys) or new & there:
            outcomes.append(apsw.ConstraintError)
        elif job.ending == "refuse":
            outcomes.append(Refused)
        else:
            there |= new
            outcomes.append(len(job.keys) if job.ending == "" else "debt")
    if "debt" in outcomes:
        return [o if isinstance(o, type) else apsw.ConstraintError for o in outcomes], set()
    return outcomes, there


async def compare(path: Path, jobs: list[Job]) -> None:
    async with open_database(path) as database:
        outcomes = await one_batch(database, *((job,) for job in jobs))
    with open_inline(path) as again:
        rows = await again.read(lambda db: {key for (key,) in db.execute("SELECT key FROM instance")})
    told = [type(o) if isinstance(o, Exception) else o for o in outcomes]
    assert (told, rows) == expected(jobs)


@settings(max_examples=40)
@given(st.lists(JOBS, max_size=12))
def test_outcomes_are_rows(jobs: list[Job]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        trio.run(compare, Path(directory) / "nerve.db", jobs)
