"""What the steps do, told by the events they make and when."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.adapters.protocol import (
    TextAdded,
    ThinkingAdded,
    ToolFinished,
    ToolOutputAdded,
    ToolStarted,
    TurnSource,
    TurnStatus,
    Usage,
)
from nerve.adapters.scripted.acts.runtime import added
from nerve.adapters.scripted.acts.speech import MAX_SAID_CHARACTERS, words


@given(st.text())
def test_the_words_are_the_text_again(text: str) -> None:
    split = list(words(text))
    assert "".join(split) == text
    assert all(split)


@given(st.text(alphabet="ab \n\t\u00a0\u2003", max_size=30))
def test_each_delta_is_one_word_with_the_space_after_it(text: str) -> None:
    split = list(words(text))
    assert len(split) == max(len(text.split()), 1 if text else 0)
    for later in split[1:]:
        assert re.fullmatch(r"\S+\s*", later)


def test_a_long_run_of_white_space_is_split_in_no_time() -> None:
    assert list(words(" " * 200_000)) == [" " * 200_000]
    assert len(list(words("a" + " " * 200_000 + "b"))) == 2


async def test_say_streams_words_at_its_pace(talk: Any) -> None:
    heard = await talk.play('- {say: "one  two\\nthree ", pace: 0.5}')
    assert heard.timed(TextAdded) == [(0, TextAdded("one  ")), (0.5, TextAdded("two\n")), (1, TextAdded("three "))]
    assert heard.end.status is TurnStatus.COMPLETED
    assert heard.times[-1] == pytest.approx(1)


async def test_say_and_think_go_their_own_ways(talk: Any) -> None:
    heard = await talk.play("- {think: let me see, pace: 1}\n- say: a\n- say: b")
    assert [event.text for event in heard.of(ThinkingAdded)] == ["let ", "me ", "see"]
    assert heard.text == "ab"


async def test_a_tool_spreads_its_output_over_its_seconds(talk: Any) -> None:
    heard = await talk.play("- {tool: Bash, input: {command: ls}, output: [a, b, c], result: abc, seconds: 8}")
    start = heard.of(ToolStarted)[0]
    assert (start.tool, start.input) == ("Bash", {"command": "ls"})
    assert [(when, event.text) for when, event in heard.timed(ToolOutputAdded)] == [(2, "a"), (4, "b"), (6, "c")]
    assert heard.timed(ToolFinished) == [(8, ToolFinished(start.tool_use_id, "abc", False))]


async def test_a_tool_may_fail_and_the_play_goes_on(talk: Any) -> None:
    heard = await talk.play("- {tool: Bash, result: oops, is_error: true}\n- say: ${result}!")
    assert heard.of(ToolFinished)[0].is_error
    assert heard.text == "oops!"


async def test_the_result_is_that_of_the_last_tool(talk: Any) -> None:
    play = "- say: '[${result}]'\n- {tool: a, result: one}\n- {tool: b, result: '${history}'}\n- say: '[${result}]'"
    assert (await talk.play(play)).text == "[][${history}]"


async def test_unknown_variables_are_empty_and_only_say_has_any(talk: Any) -> None:
    play = (
        "- say: 'a${nothing}b${answer.x}c${}d$e${f'\n- think: ${result}\n- {tool: t, result: '${x}', output: ['${y}']}"
    )
    heard = await talk.play(play)
    assert heard.text == "abcd$e${f"
    assert heard.of(ThinkingAdded)[0].text == "${result}"
    assert heard.of(ToolOutputAdded)[0].text == "${y}"
    assert heard.of(ToolFinished)[0].result == "${x}"


async def test_history_says_each_message_on_its_line(talk: Any) -> None:
    await talk.ask("one\ntwo\r\nthree")
    await talk.play("- fail: no")
    await talk.play("- wait: 60", interrupt_after=1)
    await talk.ask("from afar", source=TurnSource.TELEGRAM)
    assert (await talk.play("- say: ${history}")).text.split("\n") == [
        "one two three",
        "#!nerve-scenario - fail: no",
        "#!nerve-scenario - wait: 60",
        "from afar",
        "#!nerve-scenario - say: ${history}",
    ]


async def test_variables_cannot_make_a_say_endless(talk: Any) -> None:
    await talk.ask("x" * 100_000)
    many = "${history}" * 42
    heard = await talk.play(f"- say: before\n- say: {many}\n- say: after")
    assert heard.end.status is TurnStatus.FAILED
    assert heard.end.error == "/1: 'say' makes the play say more than 4 MiB"
    assert heard.text == "before"
    await talk.ask("y" * MAX_SAID_CHARACTERS)
    assert (await talk.play("- say: ${history}")).end.error == "/0: 'say' makes the play say more than 4 MiB"


async def test_wait_waits(talk: Any) -> None:
    assert (await talk.play("- wait: 90\n- say: x")).timed(TextAdded) == [(90, TextAdded("x"))]


async def test_fail_ends_the_turn_with_its_message(talk: Any) -> None:
    heard = await talk.play("- say: a\n- usage: {output_tokens: 3}\n- fail: out of luck\n- say: b")
    assert (heard.end.status, heard.end.error, heard.text) == (TurnStatus.FAILED, "out of luck", "a")
    assert heard.end.usage == Usage(output_tokens=3)
    assert heard.end.native_turn_id is not None


async def test_usage_adds_up_within_the_turn_only(talk: Any) -> None:
    heard = await talk.play(
        "- usage: {input_tokens: 900, cost_usd: 0.25, max_context_tokens: 1000, num_turns: 1}\n"
        "- usage: {input_tokens: 1, output_tokens: 40, cost_usd: 0.5, max_context_tokens: 500, num_turns: 2}"
    )
    assert heard.end.usage == Usage(901, 40, 0, 0, 0.75, 500, 3)
    assert (await talk.play("- usage: {num_turns: 1}")).end.usage == Usage(num_turns=1)
    assert (await talk.play("- say: x")).end.usage is None


def test_usage_keeps_what_only_one_step_gave() -> None:
    assert added(Usage(cost_usd=1.0), Usage(num_turns=2)) == Usage(cost_usd=1.0, num_turns=2)
    assert added(Usage(max_context_tokens=7), Usage()).max_context_tokens == 7


async def test_a_play_that_does_not_fit_plays_nothing(talk: Any) -> None:
    heard = await talk.play("- say: hi\n- dance: 1", model="other")
    assert len(heard.events) == 1
    assert heard.end.status is TurnStatus.FAILED
    assert heard.end.error == "/1: unknown step 'dance'"


async def test_a_turn_that_variables_stretch_beyond_an_hour_is_ended(talk: Any) -> None:
    await talk.ask("word " * 10_000)
    heard = await talk.play("- {say: '${history}', pace: 1}")
    assert heard.end.status is TurnStatus.FAILED
    assert heard.end.error == "a play lasts at most one hour in all"
    assert heard.times[-1] == pytest.approx(3601)


async def test_the_first_line_must_be_the_mark_and_nothing_else(talk: Any) -> None:
    assert (await talk.ask("#!nerve-scenario \r\n- say: x")).text == "x"
    assert "I received" in (await talk.ask("#!nerve-scenarios\n- say: x")).text
    assert "I received" in (await talk.ask("\n#!nerve-scenario\n- say: x")).text
    assert (await talk.ask("#!nerve-scenario")).end.error == "the play is empty"


@pytest.mark.parametrize("source", list(TurnSource))
async def test_only_people_at_a_client_may_send_plays(talk: Any, source: TurnSource) -> None:
    heard = await talk.play("- say: played", source=source)
    assert (heard.text == "played") == (source in (TurnSource.WEB, TurnSource.API))
    assert heard.end.status is TurnStatus.COMPLETED
