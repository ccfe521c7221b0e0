"""What a session asks of people, over real sockets: from another client, refused, edited, forked; and a wakeup."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from attrs import frozen

from nerve.client import ClientSocket, NerveClient, open_client, open_socket
from nerve.contract.generated.frames_client import AnswerInteractionFrame, ForkFrame, MessageFrame
from nerve.contract.generated.frames_server import (
    DoneFrame,
    InteractionFrame,
    InteractionResolvedFrame,
    ServerFrame,
    SessionAwaitingInputFrame,
    SessionForkedFrame,
    SessionStatusFrame,
    TokenFrame,
    ToolResultFrame,
)
from tests.live.instance import Instance

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0
HEAD = "#!nerve-scenario\n"
F = TypeVar("F", bound=ServerFrame)


@frozen
class Owner:
    address: str
    token: str

    @asynccontextmanager
    async def rest(self) -> AsyncIterator[NerveClient]:
        async with open_client(self.address, token=self.token) as client:
            yield client

    @asynccontextmanager
    async def socket(self, session_id: str) -> AsyncIterator[ClientSocket]:
        async with open_socket(self.address, self.token, session_id=session_id) as live:
            yield live

    async def new_session(self) -> str:
        async with self.rest() as client:
            return (await client.create_session()).id


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    """Of one server for all of these tests, each in sessions of its own."""
    instance = Instance(tmp_path_factory.mktemp("asked"))
    try:
        instance.foreground()
        yield Owner(instance.address, instance.claim())
    finally:
        instance.close()


async def until(live: ClientSocket, kind: type[F], fits: Callable[[F], bool] = lambda frame: True) -> list[ServerFrame]:
    """The frames up to and with the first one of this kind that fits."""
    found: list[ServerFrame] = []
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            found.append(await live.receive())
            if isinstance(found[-1], kind) and fits(found[-1]):
                return found


async def asked(live: ClientSocket) -> InteractionFrame:
    last = (await until(live, InteractionFrame))[-1]
    assert isinstance(last, InteractionFrame)
    return last


def text(frames: list[ServerFrame]) -> str:
    return "".join(frame.content for frame in frames if isinstance(frame, TokenFrame))


async def say(live: ClientSocket, session_id: str, *steps: str) -> None:
    await live.send(MessageFrame(session_id=session_id, content=HEAD + "\n".join(steps)))


async def test_a_question_is_answered_from_another_client(owner: Owner) -> None:
    session_id = await owner.new_session()
    async with owner.socket(session_id) as one, owner.socket(session_id) as other:
        question = "- ask: [{question: Which colour?, header: colour, options: [{label: Red}, {label: Blue}]}]"
        await say(one, session_id, question, "- say: 'It is ${answer.colour}.'")
        first, second = await asked(one), await asked(other)
        assert first == second
        answers = {"answers": {"Which colour?": "  Blue "}}
        frame = AnswerInteractionFrame(session_id=session_id, interaction_id=second.interaction_id, result=answers)
        await other.send(frame)
        for live in (one, other):
            frames = await until(live, DoneFrame)
            assert [f.interaction_id for f in frames if isinstance(f, InteractionResolvedFrame)] == [
                first.interaction_id
            ]
            told = [f.awaiting for f in frames if isinstance(f, SessionAwaitingInputFrame)]
            assert told[-1:] == [False]
            assert text(frames) == "It is Blue."


async def test_who_comes_in_later_sees_the_question_and_answers_it(owner: Owner) -> None:
    session_id = await owner.new_session()
    async with owner.socket(session_id) as one:
        await say(one, session_id, "- ask: [{question: 'Go on?', header: go}]", "- say: '${answer.go}!'")
        question = await asked(one)
    async with owner.rest() as client:
        assert (await client.session_status(session_id)).awaiting_input
    async with owner.socket(session_id) as late:
        status = (await until(late, SessionStatusFrame))[-1]
        assert isinstance(status, SessionStatusFrame)
        assert isinstance(status.buffered_events, list)
        shown = [event for event in status.buffered_events if event["type"] == "interaction"]
        assert [event["interaction_id"] for event in shown] == [question.interaction_id]
        frame = AnswerInteractionFrame(
            session_id=session_id, interaction_id=question.interaction_id, result={"answers": {"go": "Yes"}}
        )
        await late.send(frame)
        assert text(await until(late, DoneFrame)) == "Yes!"


async def test_a_plan_is_refused_revised_and_approved_with_edits(owner: Owner) -> None:
    session_id = await owner.new_session()
    async with owner.socket(session_id) as one, owner.socket(session_id) as other:
        await say(one, session_id, "- plan: '# Long'", "  revise: [{plan: '# Short'}]", "- say: Done.")
        first = await asked(other)
        assert first.tool_input["plan"] == "# Long"
        refusal = AnswerInteractionFrame(
            session_id=session_id, interaction_id=first.interaction_id, denied=True, message="  Shorter, please.\n"
        )
        await other.send(refusal)
        revised = await until(one, InteractionFrame, lambda frame: frame.interaction_id != first.interaction_id)
        told = [frame.result for frame in revised if isinstance(frame, ToolResultFrame)]
        assert told == ["  Shorter, please.\n"]
        second = revised[-1]
        assert isinstance(second, InteractionFrame)
        assert second.tool_input["plan"] == "# Short"
        edited = AnswerInteractionFrame(
            session_id=session_id, interaction_id=second.interaction_id, result={"plan": "# Mine"}
        )
        await one.send(edited)
        rest = await until(one, DoneFrame)
        results = [frame for frame in rest if isinstance(frame, ToolResultFrame)]
        assert [frame.is_error for frame in results] == [False]
        assert results[0].result.endswith("# Mine")
        assert text(rest) == "Done."


async def test_a_fork_remembers_its_part_and_no_more(owner: Owner) -> None:
    session_id = await owner.new_session()
    async with owner.socket(session_id) as live:
        for word in ("apple", "banana"):
            await say(live, session_id, f"- say: '{word}'")
            await until(live, DoneFrame)
        async with owner.rest() as client:
            rows = (await client.messages(session_id)).messages
        anchor = next(row.id for row in rows if row.content == "apple")
        await live.send(ForkFrame(session_id=session_id, at_message_id=str(anchor), title="Without bananas"))
        forked = (await until(live, SessionForkedFrame))[-1]
        assert isinstance(forked, SessionForkedFrame)
        await say(live, session_id, "- say: cherry")
        await until(live, DoneFrame)
    async with owner.socket(forked.fork_id) as live:
        await say(live, forked.fork_id, "- say: '${history}'")
        remembered = text(await until(live, DoneFrame))
    assert "apple" in remembered
    assert "banana" not in remembered
    assert "cherry" not in remembered
    async with owner.rest() as client:
        source, fork = (await client.messages(session_id)).messages, (await client.messages(forked.fork_id)).messages
    assert [row.content for row in fork[:2]] == [row.content for row in source[:2]]
    assert (len(source), len(fork)) == (6, 4)


def put_back(database: Path, session_id: str) -> None:
    """As if the hour had come while nobody served; the shortest delay is too long for a test."""
    with closing(sqlite3.connect(database)) as db, db:
        changed = db.execute(
            "UPDATE session_wakeups SET fire_at = created_at WHERE session_id = ? AND status = 'pending'", (session_id,)
        )
        assert changed.rowcount == 1


@pytest.mark.req("SESS-30", "WS-39")
async def test_a_wakeup_fires_after_a_restart(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("agent: {backend: scripted}\n")
    scenarios = instance.workspace / "scenarios"
    scenarios.mkdir(parents=True)
    (scenarios / "tick.yaml").write_text(
        "match: ^tick$\nsteps: [{ask: [{question: 'Again?', header: h}]}, {say: tock}]\n"
    )
    child = instance.foreground()
    owner = Owner(instance.address, instance.claim())
    session_id = await owner.new_session()
    async with owner.socket(session_id) as live:
        await say(live, session_id, "- wakeup: 60", "  prompt: tick", "- say: Later.")
        await until(live, DoneFrame)
    child.kill()
    child.wait(60)
    put_back(instance.home / "nerve.db", session_id)
    instance.foreground()
    owner = Owner(instance.address, owner.token)
    async with owner.socket(session_id) as live:
        # It waits for a person before it ends, so that nothing hangs on who is quicker.
        status = (await until(live, SessionStatusFrame))[-1]
        assert isinstance(status, SessionStatusFrame)
        buffered = status.buffered_events if isinstance(status.buffered_events, list) else []
        shown = [event["interaction_id"] for event in buffered if event["type"] == "interaction"]
        interaction_id = shown[0] if shown else (await asked(live)).interaction_id
        await live.send(AnswerInteractionFrame(session_id=session_id, interaction_id=interaction_id, denied=True))
        assert text(await until(live, DoneFrame)) == "tock"
    async with owner.rest() as client:
        rows = (await client.messages(session_id)).messages
        assert (await client.session(session_id)).pending_wakeup_at is None
    assert [(row.role.value, row.content) for row in rows[1:]] == [("assistant", "Later."), ("assistant", "tock")]
    assert rows[-1].blocks is not None
    assert rows[-1].blocks[0]["type"] == "wakeup"
