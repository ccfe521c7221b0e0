"""The turn queue: order, acknowledgement, the global limit, the bound, cancelling, and ids that come twice."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.runtime.limits import Limits
from nerve.store.inline import InlineDatabase
from tests.asgi_client import Reply
from tests.runtime.tabs import Frame, Tab, of, tab, text
from tests.sessions.session_house import ALICE, BOB, House, open_house, play

SLOW = play("- say: slow", "- wait: 60")


def quick(word: str) -> str:
    return play(f"- say: '{word}'")


async def waiting(house: House, session_id: str) -> list[dict[str, Any]]:
    return list((await house.alice.get(f"/api/sessions/{session_id}/queue")).json["items"])


async def users(house: House, session_id: str) -> list[str]:
    """The words of what was run, in order."""
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages", query={"limit": 1000})
    return [row["content"].rpartition(": ")[2].strip("'") for row in reply.json["messages"] if row["role"] == "user"]


def removals(frames: list[Frame]) -> list[tuple[str | None, str]]:
    return [
        (left["client_msg_id"], left["reason"])
        for frame in of(frames, "queue_update")
        for left in frame.get("removed", [])
    ]


def queued(frame: Frame) -> list[str]:
    return [entry["client_msg_id"] for entry in frame["queue"]]


@pytest.mark.req("WS-51", "WS-08")
async def test_an_immediate_start_is_acknowledged_by_its_removal(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, quick("hi"), "c1")
        frames = await alice.turn()
    first = frames[0]
    assert (first["type"], first["queue"]) == ("queue_update", [])
    (left,) = first["removed"]
    assert (left["client_msg_id"], left["reason"]) == ("c1", "started")
    assert left["queue_id"].startswith("q_")
    assert len(of(frames, "queue_update")) == 1


@pytest.mark.req("WS-51", "AGENT-17", "CHAT-03")
async def test_first_come_first_served_over_sockets_and_rest(house: House) -> None:
    session_id = await house.create()
    replies: list[Reply] = []

    async def chat() -> None:
        body = {"message": quick("rest"), "session_id": session_id, "client_msg_id": "r"}
        replies.append(await house.bob.post("/api/chat", json=body))

    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as bob, trio.open_nursery() as nursery:
        await alice.say(session_id, play("- say: slow", "- wait: 5"), "c1")
        await alice.until("token")
        await alice.say(session_id, quick("two"), "c2")
        (update,) = await alice.until("queue_update")
        assert queued(update) == ["c2"]
        await bob.say(session_id, quick("three"), "c3")
        await alice.until(lambda frame: frame["type"] == "queue_update" and queued(frame) == ["c2", "c3"])
        nursery.start_soon(chat)
        await alice.until(lambda frame: frame["type"] == "queue_update" and queued(frame) == ["c2", "c3", "r"])
        await alice.say(session_id, quick("five"), "c5")
        shown = (await alice.until(lambda f: f["type"] == "queue_update" and len(f["queue"]) == 4))[-1]["queue"]
        assert [entry["client_msg_id"] for entry in shown] == ["c2", "c3", "r", "c5"]
        assert [entry["source"] for entry in shown] == ["web", "web", "api", "web"]
        assert [entry["actor_id"] for entry in shown] == [ALICE, BOB, BOB, ALICE]
        assert not any(entry["internal"] for entry in shown)
        assert shown == await waiting(house, session_id)
        for _ in range(5):
            await alice.turn()
        assert await waiting(house, session_id) == []
    assert await users(house, session_id) == ["5", "two", "three", "rest", "five"]
    assert removals(alice.frames) == [(id, "started") for id in ("c1", "c2", "c3", "r", "c5")]
    assert replies[0].json["response"] == "rest"
    # What each removal leaves is what then waits.
    left = [queued(frame) for frame in of(alice.frames, "queue_update") if "removed" in frame]
    assert left == [[], ["c3", "r", "c5"], ["r", "c5"], ["c5"], []]


async def test_turns_follow_each_other_one_at_a_time(house: House) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob, trio.open_nursery() as nursery:
        for n in range(10):
            nursery.start_soon(house.run, session_id, play("- say: a", "- wait: 0.5", f"- say: '{n}'"))
        for _ in range(10):
            await bob.turn()
    running = [frame["is_running"] for frame in of(bob.frames, "session_running")]
    assert running == [True, False] * 10
    states = await house.sql("SELECT started_at, ended_at FROM turns ORDER BY started_at")
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(states))


async def test_a_place_among_all_sessions_is_waited_for_in_the_queue(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(max_concurrent=1)) as house:
        first, second = await house.create(), await house.create()
        async with tab(house.alice, first) as one, tab(house.alice, second) as two:
            await one.say(first, SLOW, "c1")
            await one.until("token")
            await two.say(second, quick("next"), "c2")
            await two.say(second, quick("cancelled"), "c3")
            await two.until(lambda frame: frame["type"] == "queue_update" and queued(frame) == ["c2", "c3"])
            assert not house.supervisor.live(second).is_running
            assert [entry["client_msg_id"] for entry in await waiting(house, second)] == ["c2", "c3"]
            entry = (await waiting(house, second))[1]
            reply = await house.alice.delete(f"/api/sessions/{second}/queue/{entry['queue_id']}")
            assert reply.json == {"cancelled": True, "content": quick("cancelled")}
            assert await users(house, second) == []
            await one.send("stop", session_id=first)
            await one.turn()
            frames = await two.turn()
        assert text(frames) == "next"
        assert removals(two.frames) == [("c3", "cancelled"), ("c2", "started")]


async def test_a_head_that_is_cancelled_while_it_waits_for_a_place(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(max_concurrent=1)) as house:
        first, second = await house.create(), await house.create()
        async with tab(house.alice, first) as one, tab(house.alice, second) as two:
            await one.say(first, SLOW)
            await one.until("token")
            await two.say(second, quick("never"), "c2")
            await two.until(lambda frame: frame["type"] == "queue_update" and queued(frame) == ["c2"])
            (entry,) = await waiting(house, second)
            await house.alice.delete(f"/api/sessions/{second}/queue/{entry['queue_id']}")
            await one.send("stop", session_id=first)
            await one.turn()
            await two.say(second, quick("ever"), "c3")
            assert text(await two.turn()) == "ever"
        assert await users(house, second) == ["ever"]


@pytest.mark.req("WS-36", "WS-51")
async def test_a_full_queue_refuses_its_sender_alone(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(queue_max=2)) as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as bob:
            await alice.say(session_id, play("- say: slow", "- wait: 5"))
            await alice.until("token")
            for n in (2, 3):
                await alice.say(session_id, quick(str(n)), f"c{n}")
            await alice.until(lambda frame: frame["type"] == "queue_update" and len(frame["queue"]) == 2)
            await bob.beat()
            await alice.say(session_id, quick("4"), "c4")
            update, error = await alice.until("error")
            assert queued(update) == ["c2", "c3"]
            assert update["removed"] == [{"queue_id": None, "client_msg_id": "c4", "reason": "refused"}]
            assert (error["client_msg_id"], "seq" in error) == ("c4", False)
            assert await bob.beat() == []
            full = await house.bob.post("/api/chat", json={"message": quick("5"), "session_id": session_id})
            assert full.status == 429
            assert int(full.headers["retry-after"]) > 0
            for _ in range(3):
                await alice.turn()
            # The id was never accepted, so it may come again.
            await alice.say(session_id, quick("again"), "c4")
            await alice.turn()
        assert await users(house, session_id) == ["5", "2", "3", "again"]


@pytest.mark.req("AGENT-74", "AGENT-68")
async def test_a_cancelled_message_is_gone_for_good(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as bob:
        await alice.say(session_id, SLOW)
        await alice.until("token")
        await alice.say(session_id, quick("never"), "c2")
        await alice.until("queue_update")
        (entry,) = await waiting(house, session_id)
        assert (await house.bob.delete(f"/api/sessions/{session_id}/queue/{entry['queue_id']}")).status == 403
        assert (await house.alice.delete(f"/api/sessions/{session_id}/queue/{entry['queue_id']}")).status == 200
        gone = {"queue_id": entry["queue_id"], "client_msg_id": "c2", "reason": "cancelled"}
        for one in (alice, bob):
            update = (await one.until(lambda frame: frame["type"] == "queue_update" and frame["queue"] == []))[-1]
            if "removed" in update and update["removed"][0]["reason"] == "started":
                update = (await one.until(lambda f: f["type"] == "queue_update" and f.get("removed") == [gone]))[-1]
            assert update["removed"] == [gone]
        assert (await house.alice.delete(f"/api/sessions/{session_id}/queue/{entry['queue_id']}")).status == 404
        # Its id is forgotten: the same message may be sent again.
        await alice.say(session_id, quick("again"), "c2")
        await alice.send("stop", session_id=session_id)
        await alice.turn()
        assert text(await alice.turn()) == "again"
    assert await users(house, session_id) == ["60", "again"]


@pytest.mark.req("WS-09", "WS-51", "CHAT-02", "GEN-11")
async def test_one_id_from_everywhere_at_once_runs_once(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    async with (
        tab(house.alice, session_id) as one,
        tab(house.alice, session_id) as two,
        tab(house.bob, session_id) as three,
        tab(house.alice, other) as elsewhere,
        trio.open_nursery() as nursery,
    ):
        replies: list[Reply] = []

        async def chat() -> None:
            body = {"message": quick("once"), "session_id": session_id, "client_msg_id": "c1"}
            replies.append(await house.alice.post("/api/chat", json=body))

        for _ in range(3):
            nursery.start_soon(chat)
            for each in (one, two, three):
                nursery.start_soon(each.say, session_id, quick("once"), "c1")
        await one.turn()
        await one.quiet()
        # A sender that is bound elsewhere by now is told as well.
        await elsewhere.say(session_id, quick("once"), "c1")
        await elsewhere.switch(other)
        told = await elsewhere.beat() + elsewhere.frames
    assert await users(house, session_id) == ["once"]
    assert await house.sql("SELECT count(*) FROM turns") == [(1,)]
    assert sorted(reply.json["response"] for reply in replies) in (["", "", ""], ["", "", "once"])
    assert ("c1", "duplicate") in removals(told)
    by_reason = [reason for _, reason in removals(one.frames)]
    assert by_reason.count("started") == 1
    assert by_reason.count("duplicate") == 11
    duplicate = next(f for f in of(one.frames, "queue_update") if f["removed"][0]["reason"] == "duplicate")
    assert duplicate["removed"] == [{"queue_id": None, "client_msg_id": "c1", "reason": "duplicate"}]


@pytest.mark.req("WS-09")
async def test_an_id_is_remembered_for_ten_minutes_and_per_session(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, quick("first"), "c1")
        await alice.turn()
        await trio.sleep(595)
        await alice.say(session_id, quick("duplicate"), "c1")
        assert removals(await alice.until("queue_update")) == [("c1", "duplicate")]
        await alice.say(other, quick("elsewhere"), "c1")
        await alice.turn()
        await trio.sleep(5)
        await alice.say(session_id, quick("late"), "c1")
        await alice.turn()
    assert await users(house, session_id) == ["first", "late"]
    assert await users(house, other) == ["elsewhere"]


@pytest.mark.req("WS-09")
async def test_an_id_whose_message_still_waits_or_runs_is_a_duplicate_however_old(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: slow", "- wait: 800"), "c1")
        await alice.until("token")
        await alice.say(session_id, quick("waits"), "c2")
        await alice.until("queue_update")
        await trio.sleep(700)
        for client_msg_id in ("c1", "c2"):
            await alice.say(session_id, quick("again"), client_msg_id)
            update = (await alice.until("queue_update"))[-1]
            assert removals([update]) == [(client_msg_id, "duplicate")]
            assert queued(update) == ["c2"]
        await alice.turn(200)
        await alice.turn()
    assert await users(house, session_id) == ["800", "waits"]


async def test_what_a_socket_sent_runs_after_the_socket_has_gone(house: House) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob:
        async with tab(house.alice, session_id) as alice:
            for n in range(3):
                await alice.say(session_id, play("- wait: 1", f"- say: '{n}'"), f"c{n}")
            await alice.until(lambda frame: frame["type"] == "queue_update" and len(frame["queue"]) == 2)
            alice.socket.disconnect()
        for n in range(3):
            assert text(await bob.turn()) == str(n)


@pytest.mark.req("WS-51")
async def test_a_queue_is_in_the_status_of_a_bind(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, SLOW)
        await alice.until("token")
        await alice.say(session_id, quick("waits"), "c2")
        await alice.until("queue_update")
        async with tab(house.bob, session_id) as bob:
            status = bob.greeting[-1]
            assert [entry["client_msg_id"] for entry in status["agents"]["queue"]] == ["c2"]
            assert status["agents"]["queue"] == await waiting(house, session_id)


@pytest.mark.req("SESS-45")
async def test_a_message_to_an_archived_session_brings_it_back(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, quick("before"))
    await house.archive(session_id)
    async with tab(house.bob, session_id) as bob:
        await bob.say(session_id, quick("after"))
        assert text(await bob.turn()) == "after"
    events = await house.events(session_id)
    unarchived = next(event for event in events if event["event_type"] == "unarchived")
    assert (unarchived["actor_id"], unarchived["caused_by_actor_id"]) == (BOB, BOB)
    assert (await house.row(session_id))["status"] == "active"


async def flood(tab: Tab, session_id: str, count: int) -> None:
    for n in range(count):
        await tab.say(session_id, quick(str(n)), f"c{n}")


@pytest.mark.slow
async def test_many_senders_at_once_lose_nothing_and_double_nothing(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, tab(house.bob, session_id) as two, trio.open_nursery() as nursery:
        nursery.start_soon(flood, one, session_id, 20)
        nursery.start_soon(flood, two, session_id, 20)
        for _ in range(20):
            await one.turn()
        await one.quiet()
    assert sorted(await users(house, session_id)) == sorted(str(n) for n in range(20))
