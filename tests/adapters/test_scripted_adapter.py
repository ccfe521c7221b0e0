from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from adapter_suite import AdapterSuite, Prompts
from attrs import evolve

from nerve.adapters.protocol import (
    AgentAdapter,
    Capabilities,
    CapabilitiesChanged,
    ModelObserved,
    RuntimeGone,
    TextAdded,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnPrompt,
    TurnSource,
    TurnStatus,
)
from nerve.adapters.scripted import ScriptedAdapter
from nerve.effects import Effects

PLAY = "#!nerve-scenario\n"


class TestScriptedAdapter(AdapterSuite):
    @pytest.fixture
    def adapter(self, scripted: ScriptedAdapter) -> AgentAdapter:
        return scripted

    @pytest.fixture
    def prompts(self) -> Prompts:
        return Prompts(
            reply="how are you?",
            recall=PLAY + "- say: ${history}",
            endless=PLAY + "- say: here I go\n- wait: 3600",
            tool=PLAY + "- {tool: Bash, output: [a, b], result: ab, seconds: 2}\n- say: done",
            write=PLAY + "- {write: made.txt, content: x}",
            fail=PLAY + "- say: well\n- fail: no luck today",
        )


async def prompt(talk: Any, steps: str) -> None:
    await talk.client.prompt(TurnPrompt("turn", PLAY + steps, TurnSource.WEB))


async def test_a_crash_ends_the_runtime_after_what_it_had_said(talk: Any) -> None:
    await prompt(talk, "- say: one two\n- crash: true\n- say: three")
    events = talk.client.events
    assert [await anext(events), await anext(events)] == [TextAdded("one "), TextAdded("two")]
    with pytest.raises(RuntimeGone) as gone:
        await anext(events)
    assert not gone.value.retryable
    with pytest.raises(RuntimeGone):
        await prompt(talk, "- say: again")
    await talk.client.interrupt()


async def test_a_crashed_conversation_remembers_the_crash_when_resumed(open_talk: Any) -> None:
    async with open_talk() as talk:
        await prompt(talk, "- crash: true")
        with pytest.raises(RuntimeGone):
            await anext(talk.client.events)
    async with open_talk(native_id=talk.client.native_id) as again:
        assert (await again.play("- say: ${history}")).text.splitlines()[0] == "#!nerve-scenario - crash: true"


async def test_a_silent_crash_is_found_out_by_the_next_prompt(talk: Any) -> None:
    heard = await talk.play("- say: one\n- crash: silent\n- say: two")
    assert heard.text == "one"
    assert heard.end.status is TurnStatus.COMPLETED
    assert heard.end.native_turn_id is not None
    with trio.move_on_after(60) as nothing_noticed:
        await anext(talk.client.events)
    assert nothing_noticed.cancelled_caught
    with pytest.raises(RuntimeGone) as gone:
        await prompt(talk, "- say: three")
    assert not gone.value.retryable


async def test_a_message_to_a_dead_runtime_never_reached_it(open_talk: Any) -> None:
    async with open_talk() as talk:
        await talk.play("- crash: silent")
        with pytest.raises(RuntimeGone):
            await talk.ask("lost")
    async with open_talk(native_id=talk.client.native_id) as again:
        assert "lost" not in (await again.play("- say: ${history}")).text


async def test_two_turns_at_once_are_our_own_mistake(talk: Any) -> None:
    await prompt(talk, "- wait: 60")
    with pytest.raises(RuntimeError):
        await prompt(talk, "- wait: 60")


async def test_an_interrupt_leaves_the_open_tool_open(talk: Any) -> None:
    heard = await talk.play("- {tool: Bash, seconds: 60, result: never}\n- say: never", interrupt_after=2)
    assert heard.end.status is TurnStatus.INTERRUPTED
    assert heard.times[-1] == pytest.approx(2)
    assert len(heard.of(ToolStarted)) == 1
    assert heard.of(ToolFinished) == []
    assert heard.end.native_turn_id is not None


async def test_usage_of_an_interrupted_turn_is_reported(talk: Any) -> None:
    heard = await talk.play("- usage: {input_tokens: 5}\n- wait: 60", interrupt_after=1)
    assert heard.end.usage is not None
    assert heard.end.usage.input_tokens == 5


async def test_a_stuck_turn_ends_only_when_it_is_no_longer_stuck(talk: Any) -> None:
    heard = await talk.play("- stuck: 20\n- say: never", interrupt_after=2)
    assert heard.end.status is TurnStatus.INTERRUPTED
    assert heard.times[-1] == pytest.approx(20)
    assert heard.text == ""


async def test_a_stuck_turn_that_nobody_interrupts_goes_on(talk: Any) -> None:
    heard = await talk.play("- stuck: 20\n- say: on")
    assert heard.end.status is TurnStatus.COMPLETED
    assert heard.text == "on"


async def test_leaving_ends_a_stuck_turn_at_once(open_talk: Any) -> None:
    with trio.fail_after(1):
        async with open_talk() as talk:
            await prompt(talk, "- stuck: 3600")
            await talk.client.interrupt()


async def test_capabilities_change_from_here_on(open_talk: Any) -> None:
    async with open_talk() as talk:
        assert talk.client.capabilities == Capabilities()
        heard = await talk.play("- capabilities: {stop_task: false}\n- capabilities: {stop_task: false, output: false}")
        assert [event.capabilities for event in heard.of(CapabilitiesChanged)] == [
            Capabilities(stop_task=False),
            Capabilities(stop_task=False, output=False),
        ]
        assert talk.client.capabilities == Capabilities(stop_task=False, output=False)
    async with open_talk(native_id=talk.client.native_id) as again:
        assert again.client.capabilities == Capabilities(stop_task=False, output=False)
    async with open_talk(native_id=talk.client.native_id, fork=True) as fork:
        assert fork.client.capabilities == Capabilities()


async def test_the_serving_model_is_told_when_it_changes(open_talk: Any) -> None:
    async with open_talk(model="large") as talk:
        heard = await talk.play("- model: large\n- {model: small, downgrade: true}\n- model: small", model="large")
        assert heard.of(ModelObserved) == [ModelObserved("small", True)]
        assert (await talk.play("- say: x")).of(ModelObserved) == []
        assert (await talk.play("- say: x", model="large")).of(ModelObserved) == [ModelObserved("large", False)]


async def test_a_fresh_runtime_serves_the_model_scripted(talk: Any, scripted: ScriptedAdapter) -> None:
    assert scripted.default_model == "scripted"
    assert (await talk.play("- model: scripted\n- model: other")).of(ModelObserved) == [ModelObserved("other")]


async def test_an_unmapped_turn_records_no_native_id(talk: Any) -> None:
    assert (await talk.play("- unmapped: true\n- say: x")).end.native_turn_id is None
    assert (await talk.play("- say: x")).end.native_turn_id is not None


async def test_the_record_is_private(talk: Any, tmp_path: Path) -> None:
    await talk.ask("hello")
    directory = tmp_path / "home" / "scripted"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in directory.iterdir()] == [0o600]


async def test_a_record_that_is_lost_fails_the_turn(talk: Any, tmp_path: Path) -> None:
    for path in (tmp_path / "home" / "scripted").iterdir():
        path.unlink()
    heard = await talk.ask("hello")
    assert heard.end.status is TurnStatus.FAILED
    assert "record" in (heard.end.error or "")


async def test_a_directory_that_cannot_be_made_refuses_to_open(open_talk: Any, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    with pytest.raises(RuntimeGone) as gone:
        async with open_talk():
            pass
    assert not gone.value.retryable


@pytest.mark.parametrize("reason", ["no credential", None])
async def test_the_built_in_reply_says_what_came_and_what_to_do(
    open_talk: Any, tmp_path: Path, workspace: Path, effects: Any, reason: str | None
) -> None:
    adapter = ScriptedAdapter(tmp_path / "scripted", workspace, effects, reason)
    async with open_talk(adapter) as talk:
        heard = await talk.ask("hello ${history}\nyou")
    assert heard.end.status is TurnStatus.COMPLETED
    assert "“hello ${history} you”" in heard.text
    assert "No model is configured" in heard.text
    assert "agent.backend" in heard.text
    assert reason is None or reason in heard.text
    assert len(heard.of(TextAdded)) > 20


async def test_the_built_in_reply_shows_the_beginning_of_a_long_message(talk: Any) -> None:
    text = (await talk.ask("word " * 5000)).text
    assert "word word" in text
    assert "…" in text
    assert len(text) < 1000
    assert "empty message" in (await talk.ask("  \n")).text


@pytest.mark.trio(run=trio.run)
async def test_it_works_with_real_threads(open_talk: Any, tmp_path: Path, workspace: Path, cwd: Path) -> None:
    (workspace / "scenarios" / "a.yaml").write_bytes(b"match: go\nsteps: [{write: a, content: x}, {say: '${history}'}]")
    adapter = ScriptedAdapter(tmp_path / "real", workspace, Effects())
    with trio.fail_after(30):
        async with open_talk(adapter) as talk:
            assert (await talk.ask("go")).text == "go"
            assert (await talk.play("- say: ${history}")).text == "go\n#!nerve-scenario - say: ${history}"
    assert (cwd / "a").read_bytes() == b"x"


async def test_a_prompt_that_is_cancelled_before_it_is_remembered_began_nothing(
    open_talk: Any, tmp_path: Path, workspace: Path, effects: Effects
) -> None:
    slow = [0]

    async def blocking(fn: Any, /, *args: Any, limiter: trio.CapacityLimiter | None = None) -> Any:
        await trio.sleep(slow[0])
        return fn(*args)

    async with open_talk(ScriptedAdapter(tmp_path / "s", workspace, evolve(effects, blocking=blocking))) as talk:
        slow[0] = 10
        with trio.move_on_after(5) as scope:
            await prompt(talk, "- say: lost")
        assert scope.cancelled_caught
        slow[0] = 0
        assert (await talk.play("- say: ${history}")).text == "#!nerve-scenario - say: ${history}"


async def test_an_interrupt_while_the_message_is_being_remembered_is_not_lost(
    open_talk: Any, tmp_path: Path, workspace: Path, effects: Effects
) -> None:
    async def blocking(fn: Any, /, *args: Any, limiter: trio.CapacityLimiter | None = None) -> Any:
        await trio.sleep(2)
        return fn(*args)

    async with open_talk(ScriptedAdapter(tmp_path / "s", workspace, evolve(effects, blocking=blocking))) as talk:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(prompt, talk, "- say: never")
            await trio.sleep(1)
            await talk.client.interrupt()
        event = await anext(talk.client.events)
        assert isinstance(event, TurnEnded)
        assert event.status is TurnStatus.INTERRUPTED


async def test_a_record_that_cannot_be_used_in_mid_play_fails_the_turn(talk: Any, tmp_path: Path) -> None:
    await prompt(talk, "- wait: 5\n- say: ${history}")
    for path in (tmp_path / "home" / "scripted").iterdir():
        path.unlink()
    event = await anext(talk.client.events)
    assert isinstance(event, TurnEnded)
    assert (event.error or "").startswith("/1: the runtime's own record can't be used")


async def test_a_prompt_that_the_closing_overtakes_finds_no_runtime(
    open_talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = trio.Event()

    async def slowly(*_: Any) -> None:
        await written.wait()

    async def hopeless(talk: Any) -> None:
        with pytest.raises(RuntimeGone, match="closed"):
            await prompt(talk, "- say: well")

    async with trio.open_nursery() as nursery:
        async with open_talk() as talk:
            monkeypatch.setattr(type(talk.client), "_remember", slowly)
            nursery.start_soon(hopeless, talk)
            await trio.testing.wait_all_tasks_blocked()
        written.set()
