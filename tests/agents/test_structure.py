"""Each agent is a scope below its session's nursery: stops go downwards, deepest first, and reach what appears late."""

from typing import Any

import pytest
import trio

from nerve.adapters.protocol import Capabilities, RuntimeGone
from nerve.adapters.subagents import AgentActed, AgentEnded, AgentOutcome, AgentSpawned, AgentStarted, AgentText
from nerve.contract.generated.entities import AgentKind
from tests.agents.late import opened
from tests.house import House
from tests.runtime.puppets import COMPLETED, INTERRUPTED, Puppet


def spawned(ref: str, parent: str | None = None, *, background: bool = True, kind: str = "agent") -> list[Any]:
    """Told as the start of one that runs."""
    return [
        AgentSpawned(ref=ref, kind=AgentKind(kind), background=background, parent_ref=parent, name=ref),
        AgentStarted(ref=ref, task_id=f"task-{ref}"),
    ]


def ended(*refs: str, outcome: AgentOutcome = AgentOutcome.STOPPED) -> list[AgentEnded]:
    return [AgentEnded(ref=ref, outcome=outcome) for ref in refs]


def slow(puppet: Puppet) -> None:
    """It confirms no stop by itself."""
    puppet.obedient = False


@pytest.mark.req("AGENT-49", "AGENT-50")
async def test_a_stop_goes_downwards_deepest_first(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), *spawned("b", "a"), *spawned("c", "b"), *spawned("d", "a"), *spawned("other"))
        await late.known("a", "b", "c", "d", "other")
        answer = await late.stop_agent("a")
        assert (answer.status, late.names(answer.json["stopping"])) == (202, ["c", "b", "d", "a"])
        assert puppet.stopped == ["c", "b", "d", "a"]
        assert late.statuses() == dict.fromkeys("abcd", "stopping") | {"other": "running"}
        puppet.say(*ended("c", "d", "b", "a"))
        await late.fates(a="stopped user", b="stopped user", c="stopped user", d="stopped user", other="running")


async def test_a_child_that_appears_under_a_stopping_ancestor_is_born_stopping(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), *spawned("b", "a"))
        await late.known("a", "b")
        await late.stop_agent("a")
        puppet.say(*spawned("late", "b"), *ended("b"), *spawned("later", "b"))
        await late.fates(a="stopping", b="stopped user", late="stopping", later="stopping")
        assert puppet.stopped == ["b", "a", "late", "later"]  # the runtime is asked to end them too
        page = await late.transcript("late")
        assert [item["event"] for item in page] == ["stop_requested"]  # it never was anything else
        puppet.say(*ended("late", "later", "a"))
        await late.fates(a="stopped user", b="stopped user", late="stopped user", later="stopped user")


async def test_what_a_spared_child_starts_is_spared_too(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), *spawned("b", "a"))
        await late.known("a", "b")
        await late.stop_agent("a", cascade=False)
        puppet.say(*spawned("below", "b"), *spawned("beside", "a"))
        await late.fates(a="stopping", b="running", below="running", beside="stopping")


@pytest.mark.parametrize("scope", ["turn", "all"])
async def test_an_agent_that_the_stopped_turn_still_starts_is_born_stopping(house: House, scope: str) -> None:
    """The runtime had started it before it heard of the stop, and the session hears of it afterwards."""
    reason = {"turn": "turn_stop", "all": "stop_all"}[scope]
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("front", background=False))
        await late.known("front")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(late.stop, {"scope": scope})
            await trio.sleep(1)
            puppet.say(*spawned("mine", background=False), *spawned("deep", "mine", background=False))
            puppet.say(*spawned("back"), *spawned("job", kind="shell"))
            background = "running" if scope == "turn" else "stopping"
            await late.fates(front="stopping", mine="stopping", deep="stopping", back=background, job=background)
            puppet.say(*ended("deep", "mine", "front", *(["back", "job"] if scope == "all" else [])), INTERRUPTED)
        gone = f"stopped {reason}"
        background = "running" if scope == "turn" else gone
        await late.fates(front=gone, mine=gone, deep=gone, back=background, job=background)
        # The order has ended with the turn.
        puppet = await late.begin()
        puppet.say(*spawned("next"), *spawned("next front", background=False))
        await late.fates(**{"next": "running", "next front": "running"}, partly=True)


async def test_a_stop_of_all_that_spares_shells_spares_late_ones(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(late.stop, {"scope": "all", "include_shells": False})
            await trio.sleep(1)
            puppet.say(*spawned("back"), *spawned("job", kind="shell"))
            await late.fates(back="stopping", job="running")
            puppet.say(*ended("back"), INTERRUPTED)
        await late.fates(back="stopped stop_all", job="running")


async def test_a_stop_of_all_ends_the_turn_that_ran_and_not_the_next_one(house: House) -> None:
    """The agent that the turn waited for ends, and the turn with it, before the runtime has answered."""
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("front", background=False))
        await late.known("front")
        await late.say("next")

        async def answering(ref: str) -> None:
            puppet.say(*ended("front"), COMPLETED)
            await trio.sleep(2)

        puppet.stopping = answering
        assert (await late.stop({"scope": "all"}))["turn"] == "not_running"
        await late.prompted(2)
        assert puppet.interrupts == 0
        assert await late.is_running()


@pytest.mark.req("AGENT-08")
async def test_a_stop_that_is_not_confirmed_in_time_is_told_and_force_ends_it(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), *spawned("b", "a"), COMPLETED)
        await late.known("a", "b")
        await late.stop_agent("a")
        await trio.sleep(9.9)
        assert late.attentions() == {"a": None, "b": None}
        await trio.sleep(0.2)
        assert late.attentions() == {"a": "stop_unconfirmed", "b": "stop_unconfirmed"}
        answer = await late.stop({"scope": "force"})
        assert (answer["turn"], late.names(answer["ended"])) == ("not_running", ["b", "a"])
        await late.fates(a="interrupted force_stop", b="interrupted force_stop")
        assert puppet.closed


async def test_agents_of_a_runtime_that_force_cannot_end_in_time_end_as_forced_when_it_does(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), COMPLETED)
        await late.known("a")
        release = trio.Event()
        late.adapter.closing = release.wait
        assert (await late.stop({"scope": "force"}))["ended"] == []
        await late.fates(a="running")
        release.set()
        await late.fates(a="interrupted force_stop")


async def test_what_a_stop_asks_of_a_runtime_that_is_gone(house: House) -> None:
    """A late child is asked to stop, and only then the runtime turns out to be gone."""
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), COMPLETED)
        await late.known("a")
        await late.stop_agent("a")
        puppet.deaf = RuntimeGone("gone")
        puppet.say(*spawned("late", "a"))
        await late.fates(a="interrupted process_ended", late="interrupted process_ended")
        assert puppet.closed


async def test_a_stop_lands_while_the_message_is_being_started(house: House) -> None:
    """Taken off the queue, and its record is not on disk yet: that turn is stopped, and its prompt never sent."""
    async with opened(house, slow) as late:
        await late.begin()
        late.adapter.newest.say(COMPLETED)
        await late.at_rest()
        async with late.slow_disk() as disk:
            await late.say("taken")
            await disk.reached.wait()
            async with trio.open_nursery() as nursery:
                answers: list[Any] = []
                nursery.start_soon(late.stop, {"scope": "all"}, answers)
                await trio.sleep(1)
                assert answers == []
                disk.let_go()
        assert answers[0]["turn"] == "stopped"
        assert await late.contents() == ["hello", "", "taken", "[Stopped by user]"]
        assert len(late.adapter.newest.prompts) == 1


async def test_nothing_waits_for_a_socket(house: House) -> None:
    """A socket that takes nothing holds up neither agents nor their stop."""
    async with (
        opened(house, slow) as late,
        house.owner.wire.websocket("/ws", query=late.at, window=1) as dead,  # type: ignore[call-arg]
    ):
        puppet = await late.begin()
        puppet.say(*spawned("a"))
        await late.known("a")
        await dead.send_json({"type": "agent_subscribe", "session_id": late.session_id, "agent_id": late.id_of("a")})
        before = trio.current_time()
        for n in range(300):
            puppet.say(*spawned(f"n{n}", "a"), *ended(f"n{n}", outcome=AgentOutcome.COMPLETED))
        puppet.obedient = True
        assert (await late.stop_agent("a")).status == 202
        await late.fates(a="stopped user", partly=True)
        assert trio.current_time() - before < 2


async def test_agents_end_with_a_runtime_that_made_room_even_if_no_other_opens(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("housekeeper", kind="other"))
        await late.known("housekeeper")
        await late.house.database.write(
            lambda db: db.execute("UPDATE sessions SET model = 'other' WHERE id = ?", (late.session_id,))
        )
        puppet.say(COMPLETED)
        await late.at_rest()

        async def failing() -> None:
            raise RuntimeGone("no room", retryable=False)

        late.adapter.opening = failing
        await late.say("again")
        await late.fates(housekeeper="interrupted model_switch")


async def test_what_an_agent_says_is_not_held_against_it_while_nobody_listens(house: House) -> None:
    """The end of a turn waits for a full disk; an agent that ends meanwhile has not vanished."""
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"))
        await late.known("a")
        puppet.known = frozenset({"a"})
        house.faults.refuse_writes("store_full")
        puppet.say(COMPLETED, *ended("a", outcome=AgentOutcome.COMPLETED))
        puppet.known = frozenset()
        await trio.sleep(8)
        house.faults.accept_writes()
        await late.fates(a="completed completed")


async def test_one_without_a_word_vanishes_after_two_looks(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), *spawned("b", "a"), COMPLETED)
        await late.known("a", "b")
        puppet.known = frozenset()
        await trio.sleep(4.5)
        await late.fates(a="lost vanished", b="lost vanished")


@pytest.mark.req("AGENT-62", "AGENT-63")
async def test_a_runtime_that_spares_nobody_is_asked_twice_and_stops_late_ones_too(house: House) -> None:
    def sparing_nobody(puppet: Puppet) -> None:
        slow(puppet)
        puppet.capabilities = Capabilities(interrupt_spares_background=False)

    async with opened(house, sparing_nobody) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"))
        await late.known("a")
        answer = await late.stop({"scope": "turn"})
        assert (answer["turn"], [brief["label"] for brief in answer["would_end"]]) == ("needs_confirmation", ["a"])
        assert puppet.interrupts == 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(late.stop, {"scope": "turn", "confirm_kill_background": True})
            await trio.sleep(1)
            puppet.say(*spawned("late"))
            await late.fates(a="stopping", late="stopping")
            puppet.say(*ended("late", "a"), INTERRUPTED)
        await late.fates(a="stopped turn_stop", late="stopped turn_stop")


async def test_nothing_is_told_before_it_is_on_disk(house: House) -> None:
    """An agent ends while its session's records are being written: what is told then is what was written."""
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"))
        await late.known("a")
        writes, going_on = 0, trio.Event()

        async def before_write(call: tuple[Any, ...]) -> None:
            nonlocal writes
            if getattr(call[0], "__qualname__", "") == "RosterDuties._write":
                writes += 1
                if writes == 1:
                    puppet.say(*ended("a"))
                    await trio.sleep(0.5)
                else:
                    await going_on.wait()

        house.faults.before_write = before_write
        puppet.say(*spawned("b"))
        await late.known("b")
        await trio.sleep(2)
        assert late.statuses() == {"a": "running", "b": "running"}
        going_on.set()
        await late.fates(a="stopped unknown_stop", b="running")


async def test_what_a_session_that_failed_leaves_is_interrupted_when_it_goes_on(house: House) -> None:
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), *spawned("b", "a"), COMPLETED)
        await late.known("a", "b")
        await late.at_rest()

        async def before_write(call: tuple[Any, ...]) -> None:
            if getattr(call[0], "__qualname__", "") == "RosterDuties._write":
                house.faults.before_write = None
                raise RuntimeError("what nobody expects")

        house.faults.before_write = before_write
        puppet.say(*spawned("lost"))
        await trio.sleep(6)
        await late.fates(a="interrupted process_ended", b="interrupted process_ended")
        page = await late.transcript("a")
        assert [(item["seq"], item["event"]) for item in page] == [(1, "started"), (2, "interrupted")]
        assert puppet.closed


async def test_a_disk_that_stays_full_ends_the_runtime_and_every_agent_in_it(house: House) -> None:
    """More than eight megabytes of what agents said wait for it."""
    async with opened(house, slow) as late:
        puppet = await late.begin()
        puppet.say(*spawned("a"), COMPLETED)
        await late.known("a")
        await late.at_rest()
        house.faults.refuse_writes("store_full")
        for _ in range(10):
            puppet.say(AgentActed("a", AgentText("x" * 1024 * 1024)))
        await trio.sleep(2)
        assert puppet.closed
        house.faults.accept_writes()
        await late.fates(a="interrupted process_ended")
        assert (await late.transcript("a"))[-1]["event"] == "interrupted"
