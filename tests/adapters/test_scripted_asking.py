"""What the steps do that wait for a person."""

from pathlib import Path
from typing import Any

import pytest

from nerve.adapters.protocol import (
    Allowed,
    Denied,
    FileChanged,
    InteractionRequest,
    InteractionType,
    PlanUpdated,
    ToolFinished,
    ToolStarted,
    TurnStatus,
)

QUESTIONS = (
    "- ask: [{question: Which colour?, header: colour, options: [{label: Red}]}, {question: And why?, multi: true}]"
)
ASKED = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "colour",
            "options": [{"label": "Red", "description": ""}],
            "multiSelect": False,
        },
        {"question": "And why?", "header": "", "options": [], "multiSelect": True},
    ]
}


def finished(heard: Any) -> list[tuple[str, bool]]:
    return [(event.result, event.is_error) for event in heard.of(ToolFinished)]


async def test_a_question_is_a_tool_call_and_its_answers_are_variables(talk: Any, host: Any) -> None:
    host.replies.append(Allowed({"answers": {"Which colour?": "Red", "And why?": ["a", "b"]}}))
    heard = await talk.play(f"{QUESTIONS}\n- say: '${{answer.colour}}/${{answer.And why?}}/${{answer.x}}'")
    assert host.asked == [InteractionRequest(InteractionType.QUESTION, "AskUserQuestion", ASKED)]
    (start,) = heard.of(ToolStarted)
    assert (start.tool, start.input) == ("AskUserQuestion", ASKED)
    assert finished(heard) == [("The person answered.\ncolour: Red\nAnd why?: a, b", False)]
    assert heard.text == "Red/a, b/"


async def test_what_was_not_answered_was_skipped(talk: Any, host: Any) -> None:
    host.replies.append(Allowed({"answers": {}}))
    heard = await talk.play(f"{QUESTIONS}\n- say: '<${{answer.colour}}>'")
    assert finished(heard) == [("The person answered.\ncolour: (skipped)\nAnd why?: (skipped)", False)]
    assert heard.text == "<>"


@pytest.mark.parametrize("step", [QUESTIONS, "- approve: command", "- plan: p"])
async def test_a_refusal_is_an_error_result_and_the_play_goes_on(talk: Any, host: Any, step: str) -> None:
    host.replies.append(Denied("Not now."))
    heard = await talk.play(f"{step}\n- say: '${{result}}'")
    assert finished(heard) == [("Not now.", True)]
    assert heard.text == "Not now."
    assert heard.end.status is TurnStatus.COMPLETED


@pytest.mark.parametrize(
    ("kind", "asked", "tool"),
    [
        ("command", InteractionType.COMMAND_APPROVAL, "Bash"),
        ("file", InteractionType.FILE_APPROVAL, "Edit"),
        ("permission", InteractionType.PERMISSION_APPROVAL, "Permission"),
    ],
)
async def test_an_approval(talk: Any, host: Any, kind: str, asked: InteractionType, tool: str) -> None:
    host.replies.append(Allowed())
    heard = await talk.play(f"- approve: {kind}\n  input: {{command: ls}}")
    assert host.asked == [InteractionRequest(asked, tool, {"command": "ls"})]
    assert finished(heard) == [("Approved.", False)]


async def test_a_plan_is_refused_revised_and_approved_with_edits(talk: Any, host: Any, tmp_path: Path) -> None:
    host.replies += [Denied("Shorter."), Allowed({"plan": "# Three"})]
    heard = await talk.play(
        "- plan: '# One'\n  revise:\n    - say: 'Yes: ${result} '\n    - plan: '# Two'\n- say: after"
    )
    path = tmp_path / "home" / "plans" / "5e551011.md"
    assert [request.tool_input for request in host.asked] == [
        {"plan": "# One", "planFilePath": str(path)},
        {"plan": "# Two", "planFilePath": str(path)},
    ]
    assert [event.content for event in heard.of(PlanUpdated)] == ["# One", "# Two", "# Three"]
    assert finished(heard) == [
        ("Shorter.", True),
        ("The person edited the plan and approved it:\n\n# Three", False),
    ]
    assert path.read_text() == "# Three"
    assert heard.text == "Yes: Shorter. after"


async def test_an_approved_plan_is_not_revised(talk: Any, host: Any) -> None:
    host.replies.append(Allowed())
    heard = await talk.play("- plan: p\n  revise: [{say: never}]")
    assert finished(heard) == [("The person approved the plan.", False)]
    assert heard.text == ""


async def test_the_plan_file_may_be_written_and_edited_as_a_file(talk: Any, host: Any, tmp_path: Path) -> None:
    path = tmp_path / "home" / "plans" / "5e551011.md"
    heard = await talk.play(
        f"- {{write: {path}, content: one}}\n- {{edit: {path}, old: one, new: two}}\n- {{delete: {path}}}"
    )
    assert [error for _, error in finished(heard)] == [False] * 3
    assert [event.path for event in heard.of(FileChanged)] == [str(path)] * 3
    assert [event.content for event in heard.of(PlanUpdated)] == ["one", "two"]


async def test_nobody_elses_plan(talk: Any, host: Any, tmp_path: Path) -> None:
    heard = await talk.play(f"- {{write: {tmp_path / 'home' / 'plans' / 'other.md'}, content: x}}")
    assert [error for _, error in finished(heard)] == [True]
    assert heard.of(PlanUpdated) == []


async def test_a_plan_that_cannot_be_written_is_not_asked_about(talk: Any, host: Any, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "plans").write_text("in the way")
    heard = await talk.play("- plan: p\n- say: after")
    assert host.asked == []
    assert [error for _, error in finished(heard)] == [True]
    assert heard.text == "after"


async def test_an_interrupt_lets_go_of_the_question(talk: Any, host: Any) -> None:
    heard = await talk.play(f"{QUESTIONS}\n- say: never", interrupt_after=5)
    assert host.cancelled == 1
    assert heard.end.status is TurnStatus.INTERRUPTED
    assert heard.text == ""


async def test_what_was_said_before_is_read_before_the_question_is_asked(talk: Any, host: Any) -> None:
    """The session records what it reads, and the question after it."""
    read: list[int] = []

    async def look() -> None:
        read.append(talk.client._sent - talk.client._taken_in)

    host.meanwhile = look
    host.replies.append(Allowed({"answers": {}}))
    await talk.play("- say: a b c d e\n- ask: [{question: q}]")
    assert read == [0]
