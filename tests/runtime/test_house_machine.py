"""Several clients do anything with several sessions, over kills and restarts; the promises of sessions hold."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from nerve.store.inline import InlineDatabase, open_inline
from tests.runtime.house_checks import check
from tests.runtime.house_game import PLAYS, TABS, Action, Game
from tests.runtime.lagging import LaggingDatabase
from tests.runtime.mortal_home import Home
from tests.soak.scale import amount

_client, _session, _pick = st.integers(0, TABS - 1), st.integers(0, 3), st.integers(0, 30)
_writes = st.integers(0, 12)  # after which a process is killed
_say = st.tuples(st.just("say"), _client, _session, st.sampled_from(sorted(PLAYS)))
_pause = st.tuples(st.just("pause"), st.sampled_from([0.0, 0.001, 0.02, 0.3, 2.0]))
_answer = st.tuples(st.just("answer"), _client, _pick, st.sampled_from(["good", "good", "deny", "bad"]))
_fork = st.tuples(st.just("fork"), _session, _pick)
_end = st.one_of(
    st.tuples(st.just("stop"), _session, st.sampled_from(["turn", "all", "force"])),
    st.tuples(st.just("archive"), _session, st.booleans()),
    st.tuples(st.just("unarchive"), _session, st.none()),
    st.tuples(st.just("delete"), _session, st.none()),
)
_go = st.one_of(
    st.tuples(st.just("create")),
    st.tuples(st.just("resume"), _session, st.none()),
    st.tuples(st.just("bind"), _client, _session, st.booleans()),
    st.tuples(st.just("drop"), _client),
    st.tuples(st.just("restart"), _writes | st.just("shutdown")),
)
# A pause of nothing is what an action shrinks to.
_one = st.sampled_from([_pause, _say, _say, _say, _answer, _answer, _fork, _end, _go]).flatmap(lambda kind: kind)
ACTIONS = st.lists(_one, min_size=15, max_size=40)


def lives(actions: list[Action]) -> Iterator[tuple[list[Action], int | str]]:
    """The actions of each life but the last one, and how it ended; then those of the last."""
    begun: list[Action] = []
    for action in actions:
        if action[0] == "restart":
            yield begun, action[1]
            begun = []
        else:
            begun.append(action)
    yield begun, "settle"


async def play_all(database: InlineDatabase, directory: Path, actions: list[Action]) -> None:
    game = Game(Home(LaggingDatabase(database), directory / "home"), check)
    for begun, end in lives(actions):
        await game.live(begun, end)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.req("SESS-29", "WS-74", "WS-75")
@settings(max_examples=amount(20, 1500))
@given(ACTIONS)
def test_whatever_clients_do_over_the_lives_of_a_home(actions: list[Action]) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as directory, open_inline() as database:
            await play_all(database, Path(directory), actions)

    trio.run(main, clock=MockClock(autojump_threshold=0))
