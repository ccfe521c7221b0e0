"""A full disk in the middle of turns: what is shown is recorded, and an end is recorded once there is room."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.adapters.protocol import ToolFinished, ToolStarted
from nerve.store.inline import InlineDatabase
from tests.runtime.puppets import COMPLETED, puppets
from tests.runtime.tabs import ends_turn, numbers, of, tab, text, types
from tests.sessions.session_house import House, open_house, play
from tests.sessions.test_session_full_disk import FullDisk


@pytest.fixture
def disk(database: InlineDatabase) -> FullDisk:
    return FullDisk(database)


@pytest.fixture
async def house(disk: FullDisk, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(disk, tmp_path / "home") as house:
        yield house


def fill(disk: FullDisk) -> None:
    disk.refuses = lambda name: True


def empty(disk: FullDisk) -> None:
    disk.refuses = lambda name: False


async def stored(house: House, session_id: str) -> list[int]:
    return [seq for (seq,) in await house.sql("SELECT seq FROM frames WHERE session_id = ? ORDER BY seq", session_id)]


async def test_a_turn_that_can_not_be_recorded_any_more_fails_once_there_is_room(house: House, disk: FullDisk) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as bob:
        await alice.say(session_id, play("- say: one two three four five six", "  pace: 1"))
        await alice.until("token")
        await trio.sleep(0.5)
        fill(disk)
        shown = [frame for frame in await alice.quiet(10) if "seq" in frame]
        assert types(shown) == ["token"]
        assert house.supervisor.live(session_id).is_running  # its end is still to be recorded
        empty(disk)
        end = await alice.until(ends_turn)
        assert types(end) == ["error"]
        await bob.turn()
        assert numbers(bob.frames) == await stored(house, session_id)
        assert numbers(bob.frames) == list(range(1, len(numbers(bob.frames)) + 1))
        reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
        assert reply.json["messages"][1]["content"] == f"{text(bob.frames)}\n\nAgent error: {end[-1]['error']}"
        await alice.say(session_id, play("- say: better"))
        assert text(await alice.turn()) == "better"


async def test_a_frame_that_is_recorded_first_is_not_shown_without_its_record(house: House, disk: FullDisk) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        await alice.quiet()
        fill(disk)
        puppet.say(ToolStarted("t1", "Bash", {}), ToolFinished("t1", "ok"), COMPLETED)
        assert numbers(await alice.quiet(10)) == []
        empty(disk)
        frames = await alice.turn()
    assert types(frames) == ["error", "session_running"]
    assert puppet.closed
    assert [t for (t,) in await house.sql("SELECT json_extract(frame, '$.type') FROM frames ORDER BY seq")] == [
        "user_message",
        "error",
    ]


async def test_an_end_waits_for_room_and_is_what_it_was(house: House, disk: FullDisk) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: well", "- wait: 2", "- usage: {output_tokens: 3}"))
        await alice.until("token")
        await trio.sleep(1)
        fill(disk)
        assert await alice.quiet(60) == []
        empty(disk)
        frames = await alice.turn()
    assert types(frames) == ["done", "session_running"]
    assert of(frames, "done")[0]["usage"]["output_tokens"] == 3
    assert (await house.row(session_id))["status"] == "active"


async def test_a_full_disk_does_not_keep_the_house_from_closing(disk: FullDisk, tmp_path: Path) -> None:
    async with open_house(disk, tmp_path / "home") as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: well", "- wait: 60"))
            await alice.until("token")
            await alice.say(session_id, play("- say: later"), "c2")
            await alice.until("queue_update")
            fill(disk)
            begun = trio.current_time()
            await house.supervisor.drain()
            assert trio.current_time() - begun <= 8
            # Nobody is told what is not recorded: what waits runs at the next start.
            assert [f for f in await alice.quiet() if f["type"] != "session_running"] == []
        empty(disk)
        assert await house.sql("SELECT state FROM turns") == [("running",)]
        assert await house.sql("SELECT client_msg_id FROM queue_entries") == [("c2",)]


async def test_a_house_that_falls_with_a_full_disk_does_not_hang(disk: FullDisk, tmp_path: Path) -> None:
    begun = trio.current_time()
    async with open_house(disk, tmp_path / "home") as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: well", "- wait: 60"))
            await alice.until("token")
            fill(disk)
    assert trio.current_time() - begun < 10


async def test_a_message_that_can_not_be_stored_is_refused(house: House, disk: FullDisk) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        fill(disk)
        await alice.say(session_id, play("- say: hi"), "c1")
        (error,) = await alice.until("error")
        assert (error["session_id"], error["client_msg_id"]) == (session_id, "c1")
        assert "seq" not in error
        empty(disk)
        assert await alice.quiet() == []
        await alice.say(session_id, play("- say: hi"), "c1")
        assert text(await alice.turn()) == "hi"


@pytest.mark.parametrize("scope", ["turn", "force"])
async def test_a_full_disk_does_not_keep_a_turn_from_being_stopped(house: House, disk: FullDisk, scope: str) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(
            session_id, play("- {write: before.txt, content: x}", "- wait: 60", "- {write: after.txt, content: x}")
        )
        await alice.until("file_changed")
        fill(disk)
        asked = trio.current_time()
        reply = await house.alice.post(f"/api/sessions/{session_id}/stop", json={"scope": scope})
        assert reply.status == 200
        assert reply.json["turn"] == {"turn": "stopped", "force": "killed"}[scope]
        assert trio.current_time() - asked < 9
        await trio.sleep(120)
        assert not (house.services.config.workspace / "after.txt").exists()
        empty(disk)
        assert types(await alice.until(ends_turn)) == ["stopped"]
    unknown = await house.alice.post("/api/sessions/nowhere/stop")
    assert unknown.status == 404


async def test_who_waits_for_a_turn_is_told_when_its_end_can_not_be_recorded(house: House, disk: FullDisk) -> None:
    session_id = await house.create()
    replies: list[Any] = []

    async def chat() -> None:
        body = {"message": play("- wait: 1", "- say: done"), "session_id": session_id}
        replies.append(await house.alice.with_(patience=60).post("/api/chat", json=body))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(chat)
        await trio.sleep(0.5)
        fill(disk)
        await trio.sleep(15)
        assert [(reply.status, reply.json) for reply in replies] == [
            (502, {"detail": "The disk is full; nothing was written."})
        ]
        empty(disk)
    await trio.sleep(1)
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    assert len(reply.json["messages"]) == 2
