"""Who leaves by the clean-up, and in which order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.domain.cleanup import Leaving, Policy, Resident, leaving
from nerve.domain.sessions import ArchiveReason

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OFF = timedelta(0)
STALE = Policy(OFF, 30 * DAY, 1000)
CLEANUP, OVERFLOW = ArchiveReason.CLEANUP, ArchiveReason.OVERFLOW


def resident(session_id: str, age: timedelta = OFF, **facts: Any) -> Resident:
    at = NOW - age
    known = {"parent_id": None, "source": "web", "active_at": at, "over": True, "exempt": False}
    return Resident(id=session_id, updated_at=at, **{**known, **facts})


def leave(residents: list[Resident], policy: Policy, *busy: str) -> list[tuple[str, ArchiveReason]]:
    return [(chosen.id, chosen.reason) for chosen in leaving(residents, policy, NOW, lambda i: i in busy)]


def test_what_is_older_than_the_days_leaves_oldest_first() -> None:
    found = leave([resident("a", 31 * DAY), resident("b", 30 * DAY), resident("c", 40 * DAY)], STALE)
    assert found == [("c", CLEANUP), ("a", CLEANUP)]


@pytest.mark.parametrize("facts", [{"over": False}, {"exempt": True}])
def test_what_is_exempt_or_has_not_run_is_never_stale(facts: dict[str, Any]) -> None:
    assert leave([resident("a", 90 * DAY, **facts)], STALE) == []


def test_what_is_busy_stays() -> None:
    assert leave([resident("a", 90 * DAY)], STALE, "a") == []


def test_zero_switches_a_cutoff_off() -> None:
    assert leave([resident("a", 900 * DAY)], Policy(OFF, OFF, 1)) == []


def test_a_person_s_conversations_leave_by_the_hours_and_by_any_sign_of_life() -> None:
    policy = Policy(2 * HOUR, 30 * DAY, 1000)
    found = leave(
        [
            resident("web", 3 * HOUR),
            resident("slack", 4 * HOUR, source="slack"),
            resident("fresh", 1 * HOUR),
            resident("worked", 3 * HOUR, active_at=NOW - HOUR),
            resident("cron", 5 * HOUR, source="cron"),
            resident("stale", 31 * DAY, source="cron"),
        ],
        policy,
    )
    assert found == [("slack", CLEANUP), ("web", CLEANUP), ("stale", CLEANUP)]


def test_it_is_looked_every_six_hours_or_every_hour() -> None:
    assert (STALE.interval, Policy(HOUR, OFF, 1).interval) == (6 * HOUR, HOUR)


def test_above_the_most_the_oldest_leave_whether_they_have_run_or_not() -> None:
    many = [resident("new", HOUR), resident("old", 3 * DAY, over=False), resident("starred", 9 * DAY, exempt=True)]
    assert leave(many, Policy(OFF, OFF, 2)) == [("old", OVERFLOW)]
    assert leave(many, Policy(OFF, OFF, 1)) == [("old", OVERFLOW), ("new", OVERFLOW)]
    assert leave(many, Policy(OFF, OFF, 1), "old") == [("new", OVERFLOW)]


def test_what_leaves_as_stale_does_not_count_above_the_most() -> None:
    assert leave([resident("a", 40 * DAY), resident("b", DAY)], Policy(OFF, 30 * DAY, 1)) == [("a", CLEANUP)]


def test_a_subtree_goes_deepest_first_and_what_stays_keeps_what_is_above_it() -> None:
    tree = [
        resident("root", 90 * DAY),
        resident("a", 80 * DAY, parent_id="root"),
        resident("a1", 70 * DAY, parent_id="a"),
        resident("b", 60 * DAY, parent_id="root"),
    ]
    assert [i for i, _ in leave(tree, STALE)] == ["a1", "a", "b", "root"]
    assert [i for i, _ in leave(tree, STALE, "a1")] == ["b"]
    fresh = [*tree[:2], resident("a1", DAY, parent_id="a"), tree[3]]
    assert [i for i, _ in leave(fresh, STALE)] == ["b"]


RESIDENTS = st.lists(
    st.tuples(st.integers(-1, 11), st.integers(0, 60), st.booleans(), st.booleans(), st.sampled_from(["web", "cron"])),
    max_size=12,
)


@given(rows=RESIDENTS, most=st.integers(1, 12), hours=st.sampled_from([0, 1, 500]), days=st.sampled_from([0, 1, 30]))
def test_whatever_the_tree(rows: list[Any], most: int, hours: int, days: int) -> None:
    made = [
        # A parent is one that was there before.
        resident(str(n), age * DAY, parent_id=str(p) if 0 <= p < n else None, over=over, exempt=exempt, source=source)
        for n, (p, age, over, exempt, source) in enumerate(rows)
    ]
    by_id = {r.id: r for r in made}
    chosen: list[Leaving] = leaving(made, Policy(hours * HOUR, days * DAY, most), NOW, lambda i: False)
    order = [c.id for c in chosen]
    assert len(set(order)) == len(order)
    assert not any(by_id[i].exempt for i in order)
    for child in made:
        if child.parent_id in order:
            assert child.id in order[: order.index(child.parent_id)]
    left = len(made) - len(order)
    free = [
        r
        for r in made
        if not r.exempt and r.id not in order and not any(c.parent_id == r.id for c in made if c.id not in order)
    ]
    assert left <= most or free == []
    assert sum(c.reason is OVERFLOW for c in chosen) <= max(0, len(made) - most)
