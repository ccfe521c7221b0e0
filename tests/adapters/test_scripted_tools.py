"""The steps that call the house's own tools: frames as for any tool, with the true result."""

from typing import Any

import pytest

from nerve.adapters.protocol import ToolFinished, ToolResult, ToolStarted
from nerve.adapters.scripted.play import parse_play


async def test_call_tells_the_true_result(talk: Any, host: Any) -> None:
    host.answers = [ToolResult("It is done."), ToolResult("It is not.", is_error=True)]
    steps = ("- call: memorize\n  input: {content: x}", "- say: ${result}", "- call: memorize", "- say: ' ${result}'")
    heard = await talk.play("\n".join(steps))
    assert host.called == [("memorize", {"content": "x"}, None), ("memorize", {}, None)]
    first, second = heard.of(ToolStarted)
    assert (first.tool, first.input) == ("mcp__nerve__memorize", {"content": "x"})
    assert heard.of(ToolFinished) == [
        ToolFinished(first.tool_use_id, "It is done."),
        ToolFinished(second.tool_use_id, "It is not.", is_error=True),
    ]
    assert heard.text == "It is done. It is not."


@pytest.mark.parametrize(
    ("step", "tool", "given"),
    [
        (
            "{wakeup: 90, prompt: go on, reason: why}",
            "schedule_wakeup",
            {"delaySeconds": 90, "prompt": "go on", "reason": "why"},
        ),
        ("{wakeup: 5}", "schedule_wakeup", {"delaySeconds": 5, "prompt": "<<autonomous-loop>>", "reason": ""}),
        ("{form: {questions: [], extra: 1}}", None, None),
        ("{form: {title: t, questions: [{id: a}]}}", "ask_form", {"title": "t", "questions": [{"id": "a"}]}),
    ],
)
async def test_steps_that_are_tools(talk: Any, host: Any, step: str, tool: str | None, given: Any) -> None:
    host.answers = [ToolResult('ok\n\n{"answers": {"a": ["b", "c"]}, "skipped": []}')]
    heard = await talk.play(f"- {step}\n- say: '${{form.a}}'")
    if tool is None:
        assert "has no field 'extra'" in heard.end.error
        return
    assert host.called == [(tool, given, None)]
    assert [event.tool for event in heard.of(ToolStarted)] == [f"mcp__nerve__{tool}"]
    assert heard.text == ("b, c" if tool == "ask_form" else "")


def test_a_tool_may_have_any_name() -> None:
    (step,) = parse_play("- call: no-such-tool").steps
    assert step.tool == "no-such-tool"  # type: ignore[union-attr]
