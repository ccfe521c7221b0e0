"""Who belongs to whom, over plain values."""

import os

import pytest

from nerve.processes.census import Census, Seen
from nerve.processes.marker import Marker
from nerve.processes.orphans import PATIENCE_SECONDS, Orphans

OURS = Marker("home", "s1", "ag_1")
HERE = os.getpid()


def seen(pid: int, parent: int = 1, *, marker: Marker | None = None, zombie: bool = False, session: int = 0) -> Seen:
    return Seen(pid, parent, session or pid, float(pid), zombie, marker)


def pids(found: list[Seen]) -> list[int]:
    return [each.pid for each in found]


def test_a_family_is_the_marked_and_all_that_came_of_them() -> None:
    census = Census((seen(9, 8), seen(8, 7), seen(7, marker=OURS), seen(6), seen(5, 6)))
    assert pids(census.family(lambda each: each.marker == OURS)) == [9, 8, 7]


def test_the_dead_are_no_members_but_their_children_are() -> None:
    census = Census((seen(7, marker=OURS), seen(8, 7, zombie=True), seen(9, 8)))
    assert pids(census.family(lambda each: each.marker == OURS)) == [7, 9]


def test_a_mark_is_read_from_an_environment() -> None:
    assert Marker.found_in({"PATH": "/bin", **OURS.environment()}) == OURS
    assert Marker.found_in({"PATH": "/bin"}) is None
    assert Marker.found_in({"NERVE_HOME_ID": "home"}) == Marker("home", "", "")


@pytest.fixture
def reaped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(os, "waitpid", lambda pid, _: (found.append(pid), (pid, 0))[1])
    return found


def test_what_was_somebody_elses_child_is_reaped_at_once(reaped: list[int]) -> None:
    orphans = Orphans()
    orphans.reap(Census((seen(7, HERE), seen(8, 7))), {7}, 0.0)
    assert orphans.expected
    orphans.reap(Census((seen(8, HERE, zombie=True),)), set(), 1.0)
    assert reaped == [8]


def test_what_somebody_waits_for_is_never_reaped(reaped: list[int]) -> None:
    orphans = Orphans()
    for at in (0.0, PATIENCE_SECONDS * 3):
        orphans.reap(Census((seen(7, HERE, zombie=True),)), {7}, at)
    assert reaped == []


def test_a_dead_child_of_unknown_origin_is_reaped_after_a_while(reaped: list[int]) -> None:
    orphans = Orphans()
    orphans.reap(Census((seen(7, HERE, zombie=True),)), set(), 0.0)
    orphans.reap(Census((seen(7, HERE, zombie=True),)), set(), PATIENCE_SECONDS - 1)
    assert reaped == []
    orphans.reap(Census((seen(7, HERE, zombie=True),)), set(), PATIENCE_SECONDS)
    assert reaped == [7]
