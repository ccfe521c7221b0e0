"""Moments that hardly ever meet: a stop, a leaver or the end of an idle time within somebody else's wait."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel
from attrs import define, field

from nerve.adapters.protocol import TextAdded
from nerve.runtime.limits import Limits
from nerve.store import turns
from nerve.store.inline import InlineDatabase
from tests.runtime.lagging import HeldDatabase
from tests.runtime.puppets import COMPLETED, puppets
from tests.runtime.tabs import of, tab, text, types
from tests.sessions.session_house import House, open_house, play


@pytest.fixture
def held(database: InlineDatabase) -> HeldDatabase:
    return HeldDatabase(database)


@pytest.fixture
async def house(held: HeldDatabase, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(held, tmp_path / "home") as house:
        yield house


@define(eq=False)
class PunctualDatabase:
    """Whoever puts a message into the queue hears of it at a given time."""

    _inner: InlineDatabase
    at: list[float] = field(factory=list)

    async def read(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        return await self._inner.read(fn, *args)

    read_large = read

    async def write(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        value = await self._inner.write(fn, *args)
        if fn.__name__ == "_accept" and self.at:
            await trio.sleep_until(self.at.pop())
        return value


@pytest.mark.parametrize("attempt", range(8))  # the order of tasks within an instant is a matter of chance
async def test_a_message_in_the_instant_of_the_idle_timeout_runs(
    database: InlineDatabase, tmp_path: Path, attempt: int
) -> None:
    punctual = PunctualDatabase(database)
    async with open_house(punctual, tmp_path / "home", limits=Limits(client_idle_seconds=60.0)) as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: one"))
            await alice.turn()
            punctual.at.append(trio.current_time() + 60.0)
            await alice.say(session_id, play("- say: two"))
            assert text(await alice.turn(70)) == "two"


async def test_a_message_that_was_taken_in_runs_whoever_leaves_meanwhile(house: House, held: HeldDatabase) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob:
        async with tab(house.alice, session_id) as alice:
            held.hold()
            await alice.say(session_id, play("- say: hi"))
            await held.committed.wait()
            house.services.hub.close_account("acc_alice", 1008)
            await alice.socket.expect_close(1008)
            held.release()
        assert text(await bob.turn()) == "hi"


async def test_a_message_that_was_not_taken_in_when_its_sender_left_does_not_run(
    house: House, held: HeldDatabase
) -> None:
    session_id = await house.create()
    held.gated = frozenset({"_accept"})
    async with tab(house.bob, session_id) as bob:
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: hi"), "c1")
            await alice.socket.send_json({"type": "ping"})
            await trio.sleep(1)
            house.services.hub.close_account("acc_alice", 1008)
            await alice.socket.expect_close(1008)
        held.gated = frozenset()
        assert await bob.quiet() == []
        await bob.say(session_id, play("- say: mine"), "c1")
        assert text(await bob.turn()) == "mine"


@pytest.mark.parametrize("moment", ["before the record", "after the record"])
async def test_a_stop_while_the_runtime_is_being_recorded(house: House, held: HeldDatabase, moment: str) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        if moment == "before the record":
            held.gated = frozenset({"attached"})
        else:
            adapter.prepare = lambda puppet: held.hold()
        await alice.say(session_id, "one")
        await alice.until("session_running")
        await trio.sleep(1)
        assert len(adapter.clients) == 1
        await alice.send("stop", session_id=session_id)
        await trio.sleep(1)
        held.gated = frozenset()
        held.release()
        frames = await alice.turn()
        assert types(of(frames, "stopped", "error", "done")) == ["stopped"]
        adapter.prepare = lambda puppet: None
        await alice.say(session_id, "two")
        (await adapter.prompted()).say(TextAdded("hi"), COMPLETED)
        assert text(await alice.turn()) == "hi"
    # The stopped message never reached a runtime, and the one that took the next is on record.
    assert [prompt.text for client in adapter.clients for prompt in client.prompts] == ["two"]
    assert (await house.row(session_id))["sdk_session_id"] == adapter.newest.native_id
    assert adapter.clients[0].closed == (moment == "before the record")


async def test_a_stop_before_the_prompt_leaves_the_runtime_that_is_there(house: House, held: HeldDatabase) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        (await adapter.prompted()).say(COMPLETED)
        await alice.turn()
        held.gated = frozenset({"runtime_facts"})
        await alice.say(session_id, "two")
        await alice.until("session_running")
        before = trio.current_time()
        reply = await house.alice.post(f"/api/sessions/{session_id}/stop", json={})
        assert reply.json["turn"] == "stopped"
        assert trio.current_time() - before < 1
        assert types(await alice.turn()) == ["stopped", "session_running"]
        held.gated = frozenset()
        await alice.say(session_id, "three")
        (await adapter.prompted(2)).say(TextAdded("hi"), COMPLETED)
        assert text(await alice.turn()) == "hi"
    assert [prompt.text for prompt in adapter.newest.prompts] == ["one", "three"]
    assert (len(adapter.clients), adapter.newest.interrupts) == (1, 0)


async def test_a_close_while_a_turn_is_being_recorded_ends_it(house: House, held: HeldDatabase) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob, trio.open_nursery() as nursery:
        await bob.say(session_id, "one")
        while not await house.sql("SELECT 1 FROM queue_entries"):
            await trio.lowlevel.checkpoint()
        held.hold()
        await held.committed.wait()
        nursery.start_soon(house.supervisor.drain)
        await trio.sleep(0.1)
        held.release()
        frames = await bob.turn()
    assert [f["error"] for f in of(frames, "error")] == ["Interrupted by restart"]
    assert adapter.clients == []
    assert await house.sql("SELECT state FROM turns") == [("interrupted",)]


async def test_a_message_that_slips_in_behind_the_drain_is_refused(house: House, held: HeldDatabase) -> None:
    session_id = await house.create()
    statuses: list[int] = []

    async def chat() -> None:
        body = {"message": "Hello", "session_id": session_id}
        statuses.append((await house.alice.post("/api/chat", json=body)).status)

    async with trio.open_nursery() as nursery:
        held.gated = frozenset({"_accept"})
        nursery.start_soon(chat)
        await trio.sleep(1)
        await house.supervisor.drain()
        held.gate.set()
    assert statuses == [503]
    assert await house.sql("SELECT count(*) FROM queue_entries") == [(0,)]


async def test_a_session_whose_task_fails_goes_on_with_what_waits(
    house: House, held: HeldDatabase, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = turns.begin
    failures = [KeyError("no such row"), KeyError("no such row")]

    def begin(*args: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(*args)

    monkeypatch.setattr(turns, "begin", begin)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: hi"))
        assert text(await alice.turn()) == "hi"
    assert caplog.text.count(f"session {session_id} failed") == 2
