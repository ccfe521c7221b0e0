"""200 tasks that each wait for durable writes: the group-commit writer against the same transactions inline."""

import statistics
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import apsw
import trio
from attrs import frozen

from benchmarks.figures import Figure, percentile, ratio
from nerve.store.database import Database
from nerve.store.inline import open_inline
from nerve.store.rows import insert
from nerve.store.threads import open_database

ROUNDS = 7
WRITERS = 200
INLINE_WRITES, GROUPED_WRITES = 400, 20_000  # of all writers together; each run takes about as long
PROBE_SECONDS = 0.001
QUIET_SECONDS = 0.5
ACTOR, SESSION = "act_bench", "bench"
_AT = datetime(2026, 1, 1, tzinfo=UTC)


@frozen
class Run:
    """Writes per second, and how late an unrelated task was each time it wanted to go on, in seconds."""

    rate: float
    lateness: list[float]


def measure() -> list[Figure]:
    inline: list[Run] = []
    grouped: list[Run] = []
    quiet: list[list[float]] = []
    with tempfile.TemporaryDirectory(prefix="nerve-bench-") as directory:
        for number in range(ROUNDS):
            quiet.append(trio.run(_quiet))
            inline.append(trio.run(_inline, Path(directory) / f"inline-{number}.db"))
            grouped.append(trio.run(_grouped, Path(directory) / f"grouped-{number}.db"))
    rates, yardstick = [run.rate for run in grouped], [run.rate for run in inline]
    stall = statistics.median(percentile(run.lateness, 0.99) for run in grouped) * 1000
    inline_stall = statistics.median(percentile(run.lateness, 0.99) for run in inline) * 1000
    noise = statistics.median(percentile(lateness, 0.99) for lateness in quiet) * 1000
    return [
        Figure(
            f"{WRITERS} concurrent durable writes, against inline",
            f"{ratio(rates, yardstick):.1f}x",
            ">= 5x",
            f"{statistics.median(rates):,.0f}/s against {statistics.median(yardstick):,.0f}/s, synchronous=FULL",
        ),
        Figure(
            "  stall of an unrelated task, p99",
            f"{stall:.1f} ms",
            "<= 5 ms",
            f"inline {inline_stall:.1f} ms; without any writes {noise:.1f} ms",
        ),
    ]


async def _quiet() -> list[float]:
    """What this machine does to a task beside which nothing happens."""
    lateness: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_probe, lateness)
        await trio.sleep(QUIET_SECONDS)
        nursery.cancel_scope.cancel()
    return lateness


async def _inline(path: Path) -> Run:
    with open_inline(path) as database:
        return await _write(database, INLINE_WRITES)


async def _grouped(path: Path) -> Run:
    async with open_database(path) as database:
        return await _write(database, GROUPED_WRITES)


async def _write(database: Database, writes: int) -> Run:
    await database.write(_prepare)
    lateness: list[float] = []
    async with trio.open_nursery() as whole:
        whole.start_soon(_probe, lateness)
        begun = time.perf_counter()
        async with trio.open_nursery() as writers:
            for number in range(WRITERS):
                writers.start_soon(partial(_writer, database, number, writes // WRITERS))
        elapsed = time.perf_counter() - begun
        whole.cancel_scope.cancel()
    assert await database.read(_count) == writes
    return Run(writes / elapsed, lateness)


async def _writer(database: Database, number: int, writes: int) -> None:
    for n in range(writes):
        await database.write(_add, f"message {n} of writer {number}")


async def _probe(lateness: list[float]) -> None:
    while True:
        wanted = trio.current_time() + PROBE_SECONDS
        await trio.sleep_until(wanted)
        lateness.append(max(0.0, trio.current_time() - wanted))


def _prepare(db: apsw.Connection) -> None:
    insert(db, "actors", id=ACTOR, kind="human", created_at=_AT)
    insert(
        db, "sessions", id=SESSION, title=SESSION, source="web", status="idle", backend="scripted", cwd="/",
        created_by_actor_id=ACTOR, caused_by_actor_id=ACTOR, created_at=_AT, updated_at=_AT,
    )  # fmt: skip


def _add(db: apsw.Connection, content: str) -> None:
    insert(db, "messages", session_id=SESSION, role="user", content=content, created_at=_AT, actor_id=ACTOR)


def _count(db: apsw.Connection) -> int:
    count: int = next(db.execute("SELECT count(*) FROM messages"))[0]
    return count
