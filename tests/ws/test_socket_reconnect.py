"""A client whose line drops again and again in mid-turn, and returns with its last number."""

import random

import pytest
import trio

from nerve.store.inline import InlineDatabase
from tests.runtime.tabs import Frame, Tab, numbers, tab
from tests.sessions.session_house import House, play

DROPS = 100


class Reader:
    """Follows one session; checks that each number comes once, or in a gap."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.cursor = 0
        self.frames: dict[int, Frame] = {}
        self.gaps: list[tuple[int, int]] = []
        self.ended = 0

    def take(self, frame: Frame) -> None:
        if frame.get("session_id") != self.session_id:
            return
        if frame["type"] == "gap":
            assert "reset" not in frame
            assert frame["from_seq"] == self.cursor + 1
            self.gaps.append((frame["from_seq"], frame["to_seq"]))
            self.cursor = frame["to_seq"]
        elif "seq" in frame:
            assert frame["seq"] == self.cursor + 1, "a number was left out or came twice"
            self.cursor = frame["seq"]
            self.frames[frame["seq"]] = frame
            self.ended += frame["type"] in ("done", "error", "stopped")

    async def read(self, tab: Tab, seconds: float) -> None:
        with trio.move_on_after(seconds):
            while True:
                self.take(await tab.socket.receive_json(3600))


def long_play(rounds: int) -> str:
    steps = []
    for n in range(rounds):
        steps += [f"- say: 'round {n} of many words '", "  pace: 0.01", "- tool: Bash", "  output: [a, b]"]
        steps += ["  seconds: 0.04", f"- think: so {n}"]
    return play(*steps)


@pytest.mark.slow
@pytest.mark.req("WS-44", "WS-45")
@pytest.mark.parametrize("seed", range(3))
async def test_a_hundred_drops_lose_nothing(house: House, seed: int) -> None:
    rng = random.Random(seed)
    session_id = await house.create()
    reader = Reader(session_id)
    async with tab(house.bob, session_id) as witness, tab(house.alice, session_id) as sender:
        for n in range(3):
            await sender.say(session_id, long_play(40), f"c{n}")
        drops = 0
        while drops < DROPS:
            by_switch = rng.random() < 0.5
            async with tab(house.alice, *(() if by_switch else (session_id, reader.cursor))) as alice:
                if by_switch:
                    await alice.send("switch_session", session_id=session_id, after_seq=reader.cursor)
                await reader.read(alice, rng.choice([0.0, 0.001, 0.02, 0.1, 0.3]))
                for frame in alice.socket.received():
                    if rng.random() < 0.5:
                        break  # it was on its way when the line dropped
                    reader.take(frame)
                alice.socket.disconnect()
            drops += 1
        async with tab(house.alice, session_id, reader.cursor) as alice:
            await reader.read(alice, 120)
        shown = [frame for frame in await witness.quiet() if "seq" in frame]
    assert reader.ended == 3
    assert reader.gaps == []
    assert reader.frames == {frame["seq"]: frame for frame in shown}
    assert numbers(shown) == list(range(1, len(shown) + 1))


@pytest.mark.req("WS-45")
async def test_what_was_trimmed_meanwhile_is_a_gap(house: House, database: InlineDatabase) -> None:
    session_id = await house.create()
    reader = Reader(session_id)
    async with tab(house.alice, session_id, 0) as alice:
        await house.run(session_id, play("- say: one"))
        await reader.read(alice, 1)
    await house.run(session_id, play("- say: two"))
    await house.sql("DELETE FROM frames WHERE seq BETWEEN 3 AND 4")
    async with tab(house.alice, session_id, reader.cursor) as alice:
        await reader.read(alice, 1)
    assert reader.gaps == [(4, 4)]
    assert sorted(reader.frames) == [1, 2, 3, 5, 6]
