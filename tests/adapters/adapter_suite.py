"""What every agent runtime must do behind the adapter protocol.  Each adapter's tests subclass ``AdapterSuite``."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from attrs import frozen

from nerve.adapters.protocol import (
    AgentAdapter,
    AgentClient,
    AgentEvent,
    FileChanged,
    RuntimeGone,
    SessionSpec,
    TextAdded,
    ToolFinished,
    ToolOutputAdded,
    ToolStarted,
    TurnEnded,
    TurnPrompt,
    TurnSource,
    TurnStatus,
)

QUIET_SECONDS = 30
INTERRUPT_SECONDS = 5


@frozen
class Prompts:
    """Prompts to which the runtime under test (or the fake behind it) answers in a known way."""

    reply: str
    """Some text, then the end."""
    recall: str
    """Says what the conversation remembers; what was asked before occurs in it verbatim, on one line."""
    endless: str
    """Says something, then works on for at least ten minutes."""
    tool: str
    """Calls at least one tool and goes on after its result."""
    write: str
    """Writes the file ``made.txt`` in the working directory."""
    fail: str
    """A turn that the runtime ends in an error."""


async def events_until_end(client: AgentClient) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    async for event in client.events:
        events.append(event)
        if isinstance(event, TurnEnded):
            return events
    raise AssertionError("the events ended before the turn did")


class AdapterSuite:
    """Subclasses give the fixtures ``adapter`` and ``prompts``; the clock is the tests' own."""

    @pytest.fixture
    def adapter(self) -> AgentAdapter:
        raise NotImplementedError

    @pytest.fixture
    def prompts(self) -> Prompts:
        raise NotImplementedError

    @pytest.fixture
    def spec(self, cwd: Path, host: Any) -> Callable[..., SessionSpec]:
        return lambda **more: SessionSpec("5e551011", cwd, host, **more)

    @pytest.fixture
    def ask(self, new_id: Callable[[str], str]) -> Callable[[AgentClient, str], Any]:
        async def asked(client: AgentClient, text: str) -> list[AgentEvent]:
            with trio.fail_after(60):
                await client.prompt(TurnPrompt(new_id("turn"), text, TurnSource.WEB))
                return await events_until_end(client)

        return asked

    async def test_is_available_or_says_why(self, adapter: AgentAdapter) -> None:
        with trio.fail_after(5):
            found = await adapter.availability()
        assert found.available or found.reason

    async def test_says_nothing_before_a_prompt(self, adapter: AgentAdapter, spec: Any) -> None:
        async with adapter.open(spec()) as client:
            with trio.move_on_after(QUIET_SECONDS) as scope:
                async for event in client.events:
                    raise AssertionError(event)
        assert scope.cancelled_caught

    async def test_each_turn_ends_once(self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts) -> None:
        async with adapter.open(spec()) as client:
            for prompt in (prompts.reply, prompts.tool, prompts.reply):
                events = await ask(client, prompt)
                assert events[-1].status is TurnStatus.COMPLETED
                assert events[-1].error is None
                assert sum(isinstance(event, TurnEnded) for event in events) == 1
                assert len(events) > 1
            with trio.move_on_after(QUIET_SECONDS) as scope:
                async for event in client.events:
                    raise AssertionError(event)
        assert scope.cancelled_caught

    async def test_turns_have_different_native_ids(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts
    ) -> None:
        async with adapter.open(spec()) as client:
            ends = [(await ask(client, prompts.reply))[-1] for _ in range(3)]
        ids = {end.native_turn_id for end in ends}
        assert len(ids) == 3
        assert None not in ids

    async def test_tools_start_before_they_finish(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts
    ) -> None:
        async with adapter.open(spec()) as client:
            events = await ask(client, prompts.tool)
        opened: set[str] = set()
        seen: set[str] = set()
        for event in events:
            match event:
                case ToolStarted(tool_use_id=tool_use_id):
                    assert tool_use_id not in seen
                    seen.add(tool_use_id)
                    opened.add(tool_use_id)
                case ToolOutputAdded(tool_use_id=tool_use_id):
                    assert tool_use_id in opened
                case ToolFinished(tool_use_id=tool_use_id):
                    opened.remove(tool_use_id)
        assert seen
        assert not opened

    async def test_a_file_is_kept_before_it_changes(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts, cwd: Path, host: Any
    ) -> None:
        async with adapter.open(spec()) as client:
            events = await ask(client, prompts.write)
        made = cwd / "made.txt"
        assert made.is_file()
        assert host.kept == [(made, None)]
        changed = [event for event in events if isinstance(event, FileChanged)]
        assert [event.path for event in changed] == [str(made)]
        finished = [event.tool_use_id for event in events if isinstance(event, ToolFinished)]
        assert changed[0].tool_use_id in finished

    async def test_an_interrupt_ends_the_turn(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts, new_id: Callable[[str], str]
    ) -> None:
        async with adapter.open(spec()) as client:
            await client.prompt(TurnPrompt(new_id("turn"), prompts.endless, TurnSource.WEB))
            await trio.sleep(1)
            await client.interrupt()
            with trio.fail_after(INTERRUPT_SECONDS):
                events = await events_until_end(client)
            assert events[-1].status is TurnStatus.INTERRUPTED
            again = await ask(client, prompts.reply)
            assert again[-1].status is TurnStatus.COMPLETED

    async def test_an_interrupt_right_after_the_prompt_is_not_lost(
        self, adapter: AgentAdapter, spec: Any, prompts: Prompts, new_id: Callable[[str], str]
    ) -> None:
        async with adapter.open(spec()) as client:
            await client.prompt(TurnPrompt(new_id("turn"), prompts.endless, TurnSource.WEB))
            await client.interrupt()
            with trio.fail_after(INTERRUPT_SECONDS):
                assert (await events_until_end(client))[-1].status is TurnStatus.INTERRUPTED

    async def test_an_interrupt_between_turns_does_nothing(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts
    ) -> None:
        async with adapter.open(spec()) as client:
            await client.interrupt()
            assert (await ask(client, prompts.reply))[-1].status is TurnStatus.COMPLETED
            await client.interrupt()
            assert (await ask(client, prompts.reply))[-1].status is TurnStatus.COMPLETED

    async def test_a_failed_turn_says_why_and_the_next_one_works(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts
    ) -> None:
        async with adapter.open(spec()) as client:
            failed = (await ask(client, prompts.fail))[-1]
            assert failed.status is TurnStatus.FAILED
            assert failed.error
            assert (await ask(client, prompts.reply))[-1].status is TurnStatus.COMPLETED

    async def test_leaving_in_mid_turn_ends_everything(
        self, adapter: AgentAdapter, spec: Any, prompts: Prompts, new_id: Callable[[str], str]
    ) -> None:
        heard: list[AgentEvent] = []
        finished = trio.Event()

        async def read(events: AsyncIterator[AgentEvent]) -> None:
            async for event in events:
                heard.append(event)
            finished.set()

        async with trio.open_nursery() as nursery:
            with trio.fail_after(INTERRUPT_SECONDS):
                async with adapter.open(spec()) as client:
                    nursery.start_soon(read, client.events)
                    await client.prompt(TurnPrompt(new_id("turn"), prompts.endless, TurnSource.WEB))
                    await trio.testing.wait_all_tasks_blocked()
            with trio.fail_after(INTERRUPT_SECONDS):
                await finished.wait()
        assert heard
        assert not any(isinstance(event, TurnEnded) for event in heard)

    async def test_an_error_inside_comes_out_as_it_is(self, adapter: AgentAdapter, spec: Any) -> None:
        opened: AbstractAsyncContextManager[AgentClient] = adapter.open(spec())
        with pytest.raises(ZeroDivisionError):
            async with opened:
                raise ZeroDivisionError

    async def test_resume_remembers(self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts) -> None:
        async with adapter.open(spec()) as client:
            native_id = client.native_id
            await ask(client, prompts.reply)
        async with adapter.open(spec(native_id=native_id)) as client:
            assert client.native_id == native_id
            assert prompts.reply in text_of(await ask(client, prompts.recall))

    async def test_a_stopped_message_is_remembered(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts, new_id: Callable[[str], str]
    ) -> None:
        async with adapter.open(spec()) as client:
            native_id = client.native_id
            await client.prompt(TurnPrompt(new_id("turn"), prompts.endless, TurnSource.WEB))
            await trio.sleep(1)
        async with adapter.open(spec(native_id=native_id)) as client:
            assert " ".join(prompts.endless.splitlines()) in text_of(await ask(client, prompts.recall))

    async def test_a_fork_remembers_up_to_its_turn(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts
    ) -> None:
        async with adapter.open(spec()) as client:
            native_id = client.native_id
            anchor = (await ask(client, prompts.reply))[-1].native_turn_id
            await ask(client, prompts.fail)
        async with adapter.open(spec(native_id=native_id, fork=True, fork_turn=anchor)) as client:
            assert client.native_id != native_id
            said = text_of(await ask(client, prompts.recall))
        later = " ".join(prompts.fail.splitlines())
        assert prompts.reply in said
        assert later not in said
        async with adapter.open(spec(native_id=native_id, fork=True)) as client:
            assert later in text_of(await ask(client, prompts.recall))

    async def test_a_fork_leaves_the_original_alone(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts
    ) -> None:
        async with adapter.open(spec()) as client:
            native_id = client.native_id
            await ask(client, prompts.reply)
        async with adapter.open(spec(native_id=native_id, fork=True)) as client:
            await ask(client, prompts.fail)
        async with adapter.open(spec(native_id=native_id)) as client:
            assert " ".join(prompts.fail.splitlines()) not in text_of(await ask(client, prompts.recall))

    async def test_a_fork_at_an_unknown_turn_is_refused(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts
    ) -> None:
        async with adapter.open(spec()) as client:
            native_id = client.native_id
            await ask(client, prompts.reply)
        with pytest.raises(RuntimeGone):
            async with adapter.open(spec(native_id=native_id, fork=True, fork_turn="nothing")):
                pass

    @pytest.mark.parametrize("unknown", ["0" * 32, "../../etc/passwd", "", "x" * 500])
    async def test_an_unknown_conversation_begins_afresh(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts, unknown: str
    ) -> None:
        async with adapter.open(spec(native_id=unknown)) as client:
            assert client.native_id != unknown
            assert (await ask(client, prompts.reply))[-1].status is TurnStatus.COMPLETED

    async def test_forgetting_removes_the_record(
        self, adapter: AgentAdapter, spec: Any, ask: Any, prompts: Prompts
    ) -> None:
        async with adapter.open(spec()) as client:
            native_id = client.native_id
            await ask(client, prompts.reply)
        await adapter.forget(native_id)
        await adapter.forget(native_id)
        await adapter.forget("../nothing")
        async with adapter.open(spec(native_id=native_id)) as client:
            assert client.native_id != native_id
            assert prompts.reply not in text_of(await ask(client, prompts.recall))


def text_of(events: list[AgentEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextAdded))
