"""What agents ask, shown and answered in the chat, over a scripted server."""

from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cli.stage import on_stage
from tests.cli.test_cli_chat_loop import STOP, running, stopped
from tests.client.frames import asked, frame, resolved, status, token
from tests.client.lines import LOST, Line
from tests.contract.spec_reader import SERVER

PLAN = {"plan": "# Plan\n\n1. Count.\n", "planFilePath": "/plans/main.md"}


async def test_a_question_is_shown_and_answered_by_its_number(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), token(2, "Let me ask."), asked(3))
        assert stage.screen.splitlines()[2:] == [
            "? [colour] Which colour?",
            "    1  Red  Warm",
            "    2  Blue  Cool",
            "  (a number or your own words)",
            "? ›",
        ]
        await stage.enter("3")
        assert "✗ 3 is none of these" in stage.screen
        assert stage.answered == []
        await stage.enter("2")
        assert "✓ Blue" in stage.screen
        assert [(one.interaction_id, one.result, one.denied) for one in stage.answered] == [
            ("i_1", {"answers": {"Which colour?": "Blue"}}, False)
        ]
        assert stage.prompt == "… ›"
        await stage.says(resolved(4), token(5, "Blue it is."))
        assert "elsewhere" not in stage.screen
        await stage.enter("fine")
        assert stage.sent == ["fine"]


async def test_an_answer_from_elsewhere_withdraws_the_prompt(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), asked(2))
        await stage.type("bl")
        await stage.says(resolved(3))
        assert "answered elsewhere, or not asked any more" in stage.screen
        assert stage.prompt == "… › bl"
        await stage.enter("ue")
        assert stage.answered == []
        assert stage.sent == ["blue"]


async def test_interrupt_stops_the_turn_that_asks(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), answers={STOP: stopped("stopped")}) as stage:
        await stage.says(running(), asked(2))
        await stage.signal()
        assert [call for call, _ in stage.rest.asked] == [STOP]
        await stage.says(resolved(3), frame("stopped", 4), running(is_running=False))
        assert "■ stopped" in stage.screen
        assert stage.prompt == "›"


async def test_the_end_of_the_turn_withdraws_what_its_end_was_not_told_of(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), asked(2), asked(3, "i_2", agent="build-api"))
        assert "there is another question behind this one" in stage.screen
        await stage.says(running(is_running=False))
        assert "build-api asks:" in stage.screen  # agents outlive the turn
        await stage.enter("1")
        assert [one.interaction_id for one in stage.answered] == ["i_2"]


async def test_what_was_asked_before_one_came_is_shown_once_all_is_caught_up(mock_clock: MockClock) -> None:
    def as_json(one: Any) -> dict[str, Any]:
        from nerve.contract import codec

        found: dict[str, Any] = codec.unstructure(one)
        return found

    before = [as_json(one) for one in (asked(2, "old"), resolved(3, "old"), asked(4, "i_1"))]
    async with on_stage(mock_clock, Line([status(4, running=True, buffered=before)])) as stage:
        assert stage.screen.count("Which colour?") == 1
        assert "elsewhere" not in stage.screen
        await stage.enter("1")
        assert [one.interaction_id for one in stage.answered] == ["i_1"]


async def test_an_answer_given_without_a_line_goes_out_when_it_is_back(mock_clock: MockClock) -> None:
    back = Line([status(2, running=True)])
    async with on_stage(mock_clock, Line([status(1), running(), asked(2), LOST]), back) as stage:
        assert stage.prompt == "offline ›"
        await stage.enter("blue")
        assert "it goes out once the line is back" in stage.screen
        await stage.waits()
        assert [one.result for one in stage.answered] == [{"answers": {"Which colour?": "Blue"}}]
        await stage.says(frame("error", error="interaction_not_found"))
        assert "that was answered before, or is not asked any more" in stage.screen


async def test_after_a_gap_only_what_still_waits_is_asked(mock_clock: MockClock) -> None:
    gap = frame("gap", from_seq=4, to_seq=90)
    back = Line([status(90, running=True), gap, asked(3, "i_2")])
    async with on_stage(mock_clock, Line([status(1), running(), asked(2), asked(3, "i_2"), LOST]), back) as stage:
        await stage.waits()
        assert stage.prompt == "? ›"
        await stage.enter("1")
        assert [one.interaction_id for one in stage.answered] == ["i_2"]
        assert stage.prompt == "… ›"


async def test_a_form_is_filled_in_question_by_question(mock_clock: MockClock) -> None:
    shown = next(one["payload"] for one in SERVER["interaction"]["examples"] if one["name"] == "a form")
    first = shown["tool_input"]["questions"][0]
    second = {**first, "id": "name", "kind": "text", "label": "Name", "question": "And who are you?", "options": []}
    given = {**shown["tool_input"], "questions": [first, {**second, "allow_other": False}]}
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), asked(2, kind="form", tool_input=given))
        assert "About you\n\n? [Tools, 1 of 2] Which tools do you use?" in stage.screen
        await stage.enter("1, hammer")
        assert "? [Name, 2 of 2] And who are you?" in stage.screen
        await stage.enter("/back")
        await stage.enter("2")
        await stage.enter("")
        assert "✓ left out" in stage.screen
        assert [one.result for one in stage.answered] == [{"answers": {"tools": ["ruff"]}}]


async def test_a_plan_is_sent_back_and_the_revised_one_approved_as_edited(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), edits=lambda text: text + "2. Count again.\n") as stage:
        await stage.says(running(), asked(2, "p_1", "plan_exit", PLAN))
        assert "# Plan\n\n1. Count.\n\n? Is this plan good?" in stage.screen
        await stage.enter("Count twice.")
        await stage.says(resolved(3, "p_1"), asked(4, "p_2", "plan_exit", PLAN))
        await stage.enter("2")
        assert stage.output.lendings == 1
        assert "✓ approved, as you have edited it" in stage.screen
        assert [(one.interaction_id, one.denied, one.message, one.result) for one in stage.answered] == [
            ("p_1", True, "Count twice.", None),
            ("p_2", False, None, {"plan": PLAN["plan"] + "2. Count again.\n"}),
        ]


async def test_the_session_waits_while_the_editor_has_the_terminal(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), edits=lambda text: "# Better\n") as stage:
        await stage.says(running(), asked(2, "p_1", "plan_exit", PLAN))
        stage.edited = trio.Event()
        await stage.enter("/edit")
        before = stage.screen
        await stage.says(token(3, "meanwhile"))
        await stage.signal()  # the editor's ^C stops no turn
        assert stage.screen == before
        assert stage.rest.asked == []
        stage.edited.set()
        await wait_all_tasks_blocked()
        assert "meanwhile" in stage.screen
        assert [one.result for one in stage.answered] == [{"plan": "# Better\n"}]


async def test_without_an_editor_the_plan_still_waits(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), asked(2, "p_1", "plan_exit", PLAN))
        await stage.enter("/edit")
        assert "no editor is there" in stage.screen
        await stage.enter("y")
        assert [(one.result, one.denied) for one in stage.answered] == [(None, False)]


async def test_an_approval_is_denied_with_words(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), asked(2, "a_1", "command_approval", {"command": "rm -r build"}))
        assert "command: rm -r build\n\n? May the agent run this command?" in stage.screen
        await stage.enter("Not yet.")
        await stage.says(resolved(3, "a_1"), asked(4, "a_2", "command_approval", {"command": "ls"}))
        await stage.enter("1")
        assert [(one.denied, one.message, one.result) for one in stage.answered] == [
            (True, "Not yet.", None),
            (False, None, {}),
        ]


async def test_one_may_talk_first_and_answer_later_or_refuse(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), asked(2))
        await stage.enter("/later")
        await stage.enter("What do you need it for?")
        assert stage.sent == ["What do you need it for?"]
        await stage.enter("/answer")
        assert stage.screen.count("Which colour?") == 2
        await stage.enter("/edit")
        await stage.enter("/skip")
        await stage.enter("/back")
        assert stage.answered == []
        await stage.enter("/refuse I see no colours.")
        assert [(one.denied, one.message) for one in stage.answered] == [(True, "I see no colours.")]


async def test_what_can_not_be_shown_can_be_refused(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), asked(2, tool_input={}))
        await stage.enter("blue")
        assert "this can't be answered here" in stage.screen
        await stage.enter("/refuse")
        assert [(one.denied, one.message) for one in stage.answered] == [(True, None)]
