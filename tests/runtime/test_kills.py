"""A process that is killed at any write, several times over: what was acknowledged is kept, and nothing runs twice."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from nerve.errors import NerveError
from nerve.runtime.reception import NewMessage
from nerve.store.inline import open_inline
from tests.runtime.mortal_home import Home, Killed, Life
from tests.runtime.tabs import Frame
from tests.sessions.session_house import ALICE, play

LATEST_SAVE = 0.25
PLAYS = {
    "talk": ("- say: 'a b c d e f '", "  pace: 0.1"),
    "tool": ("- say: 'well '", "- tool: Bash", "  output: [x, y]", "  seconds: 0.3", "- say: so"),
    "think": ("- think: hm", "- say: 'yes '", "- wait: 0.2", "- say: no"),
    "fail": ("- say: 'oh '", "- fail: no"),
    "crash": ("- say: 'ah '", "- crash: true"),
    "empty": ("- wait: 0.1",),
}
Step = tuple[Any, ...]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1), st.sampled_from(sorted(PLAYS))),
        st.tuples(st.just("again"), st.integers(0, 20)),
        st.tuples(st.just("pause"), st.sampled_from([0.0, 0.01, 0.1, 0.4, 1.0])),
    ),
    min_size=1,
    max_size=12,
)
# How many writes each process lives for; the last one lives until everything is settled.
DEATHS = st.lists(st.integers(1, 45), max_size=3)


@define(eq=False)
class Story:
    """What clients have seen, over all lives."""

    sent: list[tuple[str, str, str]] = field(factory=list)  # client_msg_id, session, content
    acknowledged: set[str] = field(factory=set)
    shown: dict[str, list[tuple[float, Frame]]] = field(factory=dict)
    died_at: list[float] = field(factory=list)

    def hear(self, frame: Frame) -> None:
        if "seq" in frame:
            self.shown.setdefault(frame["session_id"], []).append((trio.current_time(), frame))
        if frame["type"] == "queue_update":
            named = [*frame["queue"], *frame.get("removed", [])]
            self.acknowledged |= {entry["client_msg_id"] for entry in named}


async def tell(home: Home, story: Story, steps: list[Step], deaths: list[int]) -> None:
    async with home.life() as life:
        sessions = [await life.house.create() for _ in range(2)]
    for fatal in deaths:
        await _short_life(home, story, sessions, steps, fatal)
    async with home.life(survived=True) as life:
        _listen(life, story, sessions)
        await _follow(life, story, sessions, steps)
        await trio.sleep(60)


async def _short_life(home: Home, story: Story, sessions: list[str], steps: list[Step], fatal: int) -> None:
    async with home.life(survived=True) as life:
        life.mortal.fatal = life.mortal.writes + fatal
        _listen(life, story, sessions)
        await _follow(life, story, sessions, steps)
        await trio.sleep(5)
        life.kill()
    assert life.mortal.died_at is not None
    story.died_at.append(life.mortal.died_at)


def _listen(life: Life, story: Story, sessions: list[str]) -> None:
    life.witness(*sessions).told = story.hear


async def _follow(life: Life, story: Story, sessions: list[str], steps: list[Step]) -> None:
    """Take the next steps, until they are all done or the process has died."""
    while steps and not life.mortal.dead:
        match steps.pop(0):
            case ("send", which, name):
                client_msg_id = f"c{len(story.sent)}"
                content = play(f"- think: {client_msg_id}", *PLAYS[name])
                story.sent.append((client_msg_id, sessions[which], content))
                await _submit(life, story, *story.sent[-1])
            case ("again", number) if story.sent:
                await _submit(life, story, *story.sent[number % len(story.sent)])
            case ("pause", seconds):
                await trio.sleep(seconds)


async def _submit(life: Life, story: Story, client_msg_id: str, session_id: str, content: str) -> None:
    message = NewMessage(content, "web", ALICE, cause_id=ALICE, client_msg_id=client_msg_id)
    try:
        await life.house.supervisor.reception.submit(session_id, message)
    except (Killed, NerveError):
        return
    if not life.mortal.dead:
        story.acknowledged.add(client_msg_id)


async def check(home: Home, story: Story) -> None:
    assert await home.sql("SELECT count(*) FROM queue_entries") == [(0,)]
    assert await home.sql("SELECT count(*) FROM turns WHERE state = 'running'") == [(0,)]
    users = [content for (content,) in await home.sql("SELECT content FROM messages WHERE role = 'user' ORDER BY id")]
    for client_msg_id, _, content in story.sent:
        # What was not acknowledged may have come through all the same.
        least = 1 if client_msg_id in story.acknowledged else 0
        assert least <= users.count(content) <= 1, f"{client_msg_id} ran {users.count(content)} times"
    answers = await home.sql("SELECT count(*) FROM messages WHERE role = 'assistant' AND content IS NOT NULL")
    assert await home.sql("SELECT count(*) FROM turns") == answers == [(len(users),)]
    pairs = "SELECT count(DISTINCT user_message_id), count(DISTINCT assistant_message_id) FROM turns"
    assert await home.sql(pairs) == [(len(users), len(users))]
    for session_id, shown in story.shown.items():
        await _check_log(home, story, session_id, shown)


async def _check_log(home: Home, story: Story, session_id: str, shown: list[tuple[float, Frame]]) -> None:
    """Numbers rise over all lives; what is on disk is what was shown; only the newest pieces may be lost."""
    numbers = [frame["seq"] for _, frame in shown]
    assert all(before < after for before, after in pairwise(numbers))
    found = await home.sql("SELECT seq, frame FROM frames WHERE session_id = ?", session_id)
    stored = {seq: orjson.loads(frame) for seq, frame in found}
    for when, frame in shown:
        piece = frame["type"] in ("token", "thinking", "tool_output")
        in_time = all(at < when or at - when > LATEST_SAVE for at in story.died_at)
        assert frame["seq"] in stored or (piece and not in_time)
        assert stored.get(frame["seq"], frame) == frame
    ends = [frame for frame in stored.values() if frame["type"] in ("done", "stopped", "error")]
    begun = [frame for frame in stored.values() if frame["type"] == "user_message"]
    assert len(ends) == len(begun)


@pytest.mark.slow
@settings(max_examples=120)
@given(STEPS, DEATHS)
def test_no_acknowledged_message_is_lost_or_runs_twice(steps: list[Step], deaths: list[int]) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as directory, open_inline() as database:
            home, story = Home(database, Path(directory) / "home"), Story()
            await tell(home, story, list(steps), deaths)
            await check(home, story)

    trio.run(main, clock=MockClock(autojump_threshold=0))
