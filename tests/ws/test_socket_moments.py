"""Binding in the moment between the commit of a frame and its publication, which a writing thread makes possible."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from nerve.adapters.protocol import ToolStarted
from nerve.store.inline import InlineDatabase
from tests.asgi_client import Closed
from tests.runtime.lagging import HeldDatabase
from tests.runtime.puppets import COMPLETED, puppets
from tests.runtime.tabs import Frame, numbers, tab, types
from tests.sessions.session_house import House, open_house


@pytest.fixture
def held(database: InlineDatabase) -> HeldDatabase:
    return HeldDatabase(database)


@pytest.fixture
async def house(held: HeldDatabase, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(held, tmp_path / "home") as house:
        yield house


def told(frames: list[Frame]) -> list[int]:
    events = [event for frame in frames for event in frame.get("buffered_events", [])]
    return numbers(events + frames)


@pytest.mark.req("WS-45")
@pytest.mark.parametrize("after_seq", [None, 0, 1])
async def test_a_frame_on_disk_that_is_not_shown_yet_comes_once(
    house: House, held: HeldDatabase, after_seq: int | None
) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.bob, session_id) as witness:
        await witness.say(session_id, "one")
        puppet = await adapter.prompted()
        await witness.beat()
        held.hold()
        puppet.say(ToolStarted("t1", "Bash", {}))
        await held.committed.wait()
        async with tab(house.alice, session_id, after_seq) as alice:
            first = await alice.beat()
            assert numbers(await witness.beat()) == []  # nobody has been shown it
            held.release()
            puppet.say(COMPLETED)
            rest = await alice.turn()
            seen = told([*alice.greeting, *first, *rest])
        assert seen == list(range((after_seq or 0) + 1, 5))
        assert numbers(await witness.turn()) == [2, 3, 4]


@pytest.mark.req("WS-45")
@pytest.mark.parametrize("after_seq", [None, 0])
async def test_a_turn_that_has_begun_on_disk_alone(house: House, held: HeldDatabase, after_seq: int | None) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob, trio.open_nursery() as nursery:
        nursery.start_soon(_chat, house, session_id)
        await trio.lowlevel.checkpoint()
        while not await house.sql("SELECT 1 FROM queue_entries"):
            await trio.lowlevel.checkpoint()
        held.hold()
        await held.committed.wait()
        assert await held.read(lambda db: db.execute("SELECT state FROM turns").fetchall()) == [("running",)]
        async with tab(house.alice, session_id, after_seq) as alice:
            assert not alice.greeting[-1]["is_running"]
            assert "buffered_events" not in alice.greeting[-1]
            first = await alice.beat()
            held.release()
            (await adapter.prompted()).say(COMPLETED)
            rest = await alice.turn()
            assert told([*alice.greeting, *first, *rest]) == [1, 2]
        assert numbers(await bob.turn()) == [1, 2]


async def _chat(house: House, session_id: str) -> None:
    await house.run(session_id, "one")


@pytest.mark.req("WS-45", "WS-47")
@pytest.mark.parametrize("after_seq", [None, 0])
async def test_a_turn_that_has_ended_on_disk_alone(house: House, held: HeldDatabase, after_seq: int | None) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob:
        await bob.say(session_id, "one")
        puppet = await adapter.prompted()
        await bob.beat()
        held.hold()
        puppet.say(COMPLETED)
        await held.committed.wait()
        async with tab(house.alice, session_id, after_seq) as alice:
            assert alice.greeting[-1]["is_running"]
            first = await alice.beat()
            held.release()
            rest = await alice.until("session_running")
            assert not rest[-1]["is_running"]
            assert told([*alice.greeting, *first, *rest]) == [1, 2]
        assert types(await bob.turn()) == ["done", "session_running"]


@pytest.mark.req("WS-12")
@pytest.mark.parametrize("after_seq", [None, 0])
async def test_a_socket_that_can_not_be_bound_whole_is_closed(
    house: House, held: HeldDatabase, after_seq: int | None
) -> None:
    session_id = await house.create()
    async with tab(house.alice) as alice:
        held.busy = frozenset({"read" if after_seq is None else "bounds"})
        await alice.send("switch_session", session_id=session_id, after_seq=after_seq)
        assert await alice.socket.expect_close() == Closed(1013, "try again")


@pytest.mark.req("WS-41")
async def test_a_message_sent_while_a_replay_comes_is_not_told_to_its_sender(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob:
        await bob.say(session_id, "one")
        puppet = await adapter.prompted()
        for n in range(12):
            puppet.say(ToolStarted(f"t{n}", "Bash", {"text": "x" * 64 * 1024}))
        puppet.say(COMPLETED)
        await bob.turn()
        async with tab(house.alice, session_id, after_seq=0, window=3) as alice:
            await alice.say(session_id, "two", "c2")  # while most of the log is still to come
            (await adapter.prompted(2)).say(COMPLETED)
            await bob.turn()
            frames = await alice.until("done") + await alice.until("done")
    own = next(frame for frame in bob.frames if frame.get("client_msg_id") == "c2")
    assert own["type"] == "user_message"
    assert numbers(frames) == [seq for seq in range(1, own["seq"] + 2) if seq != own["seq"]]
