"""Agents as the client keeps them: the roster, a transcript in order, what is followed over lines that come and go."""

from collections.abc import Callable

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from nerve.client import ApiError, CaughtUp, LiveEvent, Roster, SocketEnded, Transcript
from nerve.client.plain import PlainClient, PlainLiveSession
from nerve.contract import codec
from nerve.contract.generated.agents import AgentAtRest, AgentStopping
from nerve.contract.generated.entities import (
    AgentEventItem,
    AgentLifecycle,
    AgentLifecycleEvent,
    AgentStatus,
    AgentText,
)
from nerve.contract.generated.errors import ErrorCode
from nerve.contract.generated.frames_client import AgentSubscribeFrame, AgentUnsubscribeFrame
from nerve.contract.generated.frames_server import AgentEventFrame, InteractionFrame
from nerve.contract.generated.sessions import AllStopped
from tests.client.frames import agent, agent_event, agent_item, agents, status
from tests.client.lines import LOST, Line, server

PATIENCE_SECONDS = 60.0


def item(seq: int) -> AgentEventItem:
    found: AgentEventItem = codec.structure(AgentText, agent_item(seq))
    return found


# --- the roster ---------------------------------------------------------------------------------------------------


def test_the_newest_revision_counts_whatever_comes_last() -> None:
    roster = Roster()
    [began] = roster.see(agents(agent("ag_1", 5)))
    assert (began.before, began.began, began.ended) == (None, True, False)
    assert roster.see(agents(agent("ag_1", 4, status="starting"))) == []
    [change] = roster.see(status(1, roster=[agent("ag_1", 6, status="completed"), agent("ag_2", 7)]))[:1]
    assert (change.before, change.ended, change.began) == (began.now, True, False)
    assert [view.id for view in roster.live] == ["ag_2"]
    assert [view.id for view in roster.agents] == ["ag_1", "ag_2"]
    [again] = roster.see(agents(agent("ag_1", 8, runs=2)))
    assert again.began
    assert roster.summary is not None
    assert roster.summary.total == 1


def test_a_snapshot_does_not_undo_what_was_newer() -> None:
    roster = Roster()
    roster.see(agents(agent("ag_1", 9, status="completed")))
    assert roster.see(status(1, roster=[agent("ag_1", 8)])) == []
    assert [view.status for view in roster.agents] == [AgentStatus.COMPLETED]
    roster.see(status(1))
    assert roster.agents == []


def test_an_agent_is_found_by_its_id_or_what_it_is_called() -> None:
    roster = Roster()
    ended = agent("ag_3", label="build", status="failed")
    roster.see(agents(agent("ag_1", label="build"), agent("ag_2", label="build"), ended, agent("ag_4", ambient=True)))
    assert [view.id for view in roster.named("build")] == ["ag_2", "ag_1", "ag_3"]
    assert [view.id for view in roster.named("ag_3")] == ["ag_3"]
    assert roster.named("other") == []
    assert [view.id for view in roster.live] == ["ag_1", "ag_2"]


# --- a transcript -------------------------------------------------------------------------------------------------


def test_pages_and_live_items_come_in_one_order_each_once() -> None:
    transcript = Transcript("ag_1")
    assert transcript.take([item(3)]) == []
    assert transcript.incomplete
    assert [one.seq for one in transcript.take([item(1), item(2)])] == [1, 2, 3]
    assert not transcript.incomplete
    assert transcript.take([item(2), item(3)]) == []
    assert [one.seq for one in transcript.take([item(4)])] == [4]
    assert transcript.seen == 4


# --- following ----------------------------------------------------------------------------------------------------


async def test_what_is_followed_is_followed_again_on_every_connection(mock_clock: MockClock) -> None:
    mock_clock.autojump_threshold = 0
    first, second = Line([status(1)]), Line([status(1)])
    house = server(first, second)
    async with house.follow() as live:
        for number in range(9):
            live.subscribe(f"ag_{number}")
        live.subscribe("ag_8")
        live.unsubscribe("ag_7")
        live.unsubscribe("ag_unknown")
        while not isinstance(await anext(live), CaughtUp):
            pass
        await wait_all_tasks_blocked()
        subscribed = [one.agent_id for one in first.sent if isinstance(one, AgentSubscribeFrame)]
        assert subscribed == [f"ag_{number}" for number in range(9)]
        assert [one.agent_id for one in first.sent if isinstance(one, AgentUnsubscribeFrame)] == ["ag_0", "ag_7"]
        first.say(agent_event("ag_1", 1))
        assert isinstance(await anext(live), AgentEventFrame)
        first.drop(LOST)
        await anext(live)
        while not isinstance(await anext(live), CaughtUp):
            pass
        await wait_all_tasks_blocked()
        again = [one.agent_id for one in second.sent if isinstance(one, AgentSubscribeFrame)]
        assert again == [f"ag_{number}" for number in (1, 2, 3, 4, 5, 6, 8)]
        second.drop(SocketEnded("no more", 4001))
        with pytest.raises(SocketEnded):
            await anext(live)


# --- against a server ---------------------------------------------------------------------------------------------

PLAY = """#!nerve-scenario
- agent: builder
  background: true
  description: Build it
  prompt: Build it well.
  steps: [{say: one}, {ask: [{question: Go on?}]}, {say: two}]
- say: It works.
"""
SHELLS = """#!nerve-scenario
- {shell: tests, command: pytest -q, output: [passed], seconds: 600}
- {shell: server, command: make serve, seconds: 600}
"""


def until(live: PlainLiveSession, wanted: Callable[[LiveEvent], bool]) -> list[LiveEvent]:
    """The next events, up to the one that is wanted."""
    events: list[LiveEvent] = []
    while not events or not wanted(events[-1]):
        event = live.next_within(PATIENCE_SECONDS)
        assert event is not None
        events.append(event)
    return events


@pytest.mark.slow
def test_agents_are_listed_and_read_and_one_is_followed_to_its_end(client: PlainClient) -> None:
    session_id = client.create_session().id
    with client.follow(session_id) as live:
        live.send(PLAY)
        asks = until(live, lambda event: isinstance(event, InteractionFrame))[-1]
        assert isinstance(asks, InteractionFrame)
        snapshot = client.agents(session_id)
        builder = next(view for view in snapshot.agents if view.label == "builder")
        assert client.agent(session_id, builder.id).prompt == "Build it well."
        newest = client.agent_transcript(session_id, builder.id, 1)
        assert (newest.first_seq, newest.has_more_before) == (newest.last_seq, True)
        whole = client.agent_transcript(session_id, builder.id, after_seq=0)
        before = client.agent_transcript(session_id, builder.id, before_seq=newest.first_seq)
        assert before.items == whole.items[:-1]

        # Both go over the same line, one after the other: nothing of what the answer brings about is missed.
        live.subscribe(builder.id)
        live.answer(asks.interaction_id, {"answers": {"Go on?": "yes"}})
        events = until(live, lambda event: isinstance(event, AgentEventFrame) and _ends(event.item))
        transcript = Transcript(builder.id, whole.last_seq or 0)
        items = [one for event in events if isinstance(event, AgentEventFrame) for one in transcript.take([event.item])]
        assert not transcript.incomplete
        assert [one.text for one in items if isinstance(one, AgentText)] == ["two"]
        assert client.agent_transcript(session_id, builder.id, after_seq=whole.last_seq).items == items
        assert isinstance(client.stop_agent(session_id, builder.id), AgentAtRest)
    with pytest.raises(ApiError) as refused:
        client.agent_output(session_id, builder.id)
    assert refused.value.code is ErrorCode.NOT_A_SHELL


@pytest.mark.slow
def test_a_task_in_the_background_is_stopped_alone_or_with_all(client: PlainClient) -> None:
    session_id = client.create_session().id
    roster = Roster()
    with client.follow(session_id) as live:
        live.send(SHELLS)
        until(live, lambda event: bool(roster.see(event)) and len(roster.live) == 2)
        first, second = roster.live
        assert client.agent_output(session_id, first.id).agent_id == first.id
        stopping = client.stop_agent(session_id, first.id)
        assert isinstance(stopping, AgentStopping)
        assert stopping.stopping == [first.id]
        until(live, lambda event: any(change.ended for change in roster.see(event)))
        assert [view.id for view in roster.live] == [second.id]
        spared = client.stop(session_id, "all", include_shells=False)
        assert isinstance(spared, AllStopped)
        assert spared.stopping == []
        all_of_them = client.stop(session_id, "all")
        assert isinstance(all_of_them, AllStopped)
        assert all_of_them.stopping == [second.id]
    with pytest.raises(ApiError) as unknown:
        client.stop_agent(session_id, "ag_nobody", cascade=False)
    assert unknown.value.code is ErrorCode.AGENT_NOT_FOUND


def _ends(item: AgentEventItem) -> bool:
    return isinstance(item, AgentLifecycle) and item.event is AgentLifecycleEvent.COMPLETED
