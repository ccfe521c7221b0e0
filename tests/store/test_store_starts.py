from datetime import UTC, datetime, timedelta

import apsw
import pytest

from nerve.store import starts
from nerve.store.database import Database
from nerve.store.rows import scalar

START = datetime(2026, 1, 1, tzinfo=UTC)


def history(db: apsw.Connection, *lives: str) -> None:
    """One start an hour, named by their number: each ``clean``, ``late`` (killed after a minute) or ``quick``."""
    for n, life in enumerate(lives):
        starts.begin(db, str(n), START + timedelta(hours=n))
        match life:
            case "clean":
                starts.end(db, str(n), START + timedelta(hours=n, seconds=5))
            case "late":
                starts.survived(db, str(n))
            case "clean late":
                starts.survived(db, str(n))
                starts.end(db, str(n), START + timedelta(hours=n, minutes=5))
            case _:
                assert life == "quick"


@pytest.mark.parametrize(
    ("lives", "quick"),
    [
        ([], []),
        (["quick"], ["0"]),
        (["quick", "quick", "quick"], ["2", "1", "0"]),
        (["quick", "clean", "quick"], ["2"]),
        (["quick", "quick", "late"], []),
        (["late", "quick", "quick"], ["2", "1"]),
        (["quick", "clean late", "quick", "late", "quick"], ["4"]),
        (["quick", "clean"], []),
    ],
)
async def test_quick_deaths_in_a_row(database: Database, lives: list[str], quick: list[str]) -> None:
    await database.write(history, *lives)
    before = await database.read(starts.quick_deaths, "now")
    assert [death.generation for death in before] == quick
    await database.write(starts.begin, "now", START + timedelta(days=9))
    assert [death.generation for death in await database.read(starts.quick_deaths, "now")] == quick


async def test_a_quick_death_lies_between_two_starts(database: Database) -> None:
    await database.write(history, "quick", "quick")
    await database.write(starts.begin, "now", START + timedelta(hours=2))
    newest, older = await database.read(starts.quick_deaths, "now")
    assert older == starts.UncleanStart("0", START, START + timedelta(hours=1))
    assert newest == starts.UncleanStart("1", START + timedelta(hours=1), START + timedelta(hours=2))


@pytest.mark.parametrize(
    ("lives", "unclean"),
    [([], False), (["clean"], False), (["quick"], True), (["late"], True), (["quick", "clean"], False)],
)
async def test_the_last_start_was_clean_or_not(database: Database, lives: list[str], unclean: bool) -> None:
    await database.write(history, *lives)
    assert await database.read(starts.last_was_unclean) is unclean


async def test_the_record_of_starts_has_a_bound(database: Database) -> None:
    await database.write(history, *["clean"] * 1005)
    assert await database.read(scalar, "SELECT count(*) FROM daemon_starts") == 1000
