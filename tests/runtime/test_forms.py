"""Forms: the agent asks for several things at once, whoever watches answers, the agent reads what they said."""

from typing import Any

import orjson
import pytest
import trio

from tests.runtime.tabs import Frame, Tab, of, tab, text
from tests.sessions.session_house import House, play, system_session

FORM = play(
    "- form:",
    "    title: ' Launch '",
    "    questions:",
    "      - {id: colour, kind: choice, label: Colour, question: 'Which?', options: [{label: Red}, {label: Blue}]}",
    "      - {id: repos, kind: repos, label: Repositories, question: 'Which ones?'}",
    "      - {id: note, kind: text, label: Note, question: 'Anything else?', required: true}",
    "- say: '${form.colour}; ${form.repos}; ${form.note}; ${form.nothing}.'",
)


async def asked(alice: Tab, session_id: str, form: str = FORM) -> tuple[Frame, Frame]:
    """The tool's call and the interaction that it waits with."""
    await alice.say(session_id, form)
    frames = await alice.until("interaction")
    return of(frames, "tool_use")[-1], frames[-1]


async def answer(tab: Tab, interaction: Frame, **answer: Any) -> None:
    named = {key: interaction[key] for key in ("session_id", "interaction_id")}
    await tab.send("answer_interaction", **named, **answer)


@pytest.mark.req("WS-67", "WS-68")
async def test_a_form_is_asked_answered_and_read(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as bob:
        call, interaction = await asked(alice, session_id)
        assert call["tool"] == "mcp__nerve__ask_form"
        assert call["seq"] < interaction["seq"]
        assert (interaction["interaction_type"], interaction["tool_name"]) == ("form", "ask_form")
        assert interaction["agent"] is None
        shown = interaction["tool_input"]
        assert (shown["title"], shown["intro"]) == ("Launch", "")
        assert [question["id"] for question in shown["questions"]] == ["colour", "repos", "note"]
        assert all(len(question) == 10 for question in shown["questions"])
        answers = {"colour": " Blue ", "repos": ["a/b", "no repository", "c/d"], "note": "  "}
        await answer(bob, interaction, result={"answers": answers})
        frames = await alice.turn()
    (result,) = of(frames, "tool_result")
    assert (result["tool_use_id"], result["is_error"]) == (call["tool_use_id"], False)
    head, _, tail = result["result"].partition("\n\n")
    assert head == "The person answered the form.\nColour: Blue\nRepositories: a/b, c/d\nNote: (skipped)"
    assert orjson.loads(tail) == {"answers": {"colour": "Blue", "repos": ["a/b", "c/d"]}, "skipped": ["note"]}
    assert text(frames) == "Blue; a/b, c/d; ; ."


@pytest.mark.parametrize(
    ("given", "said"),
    [({"denied": True, "message": "Not now."}, "Not now."), ({"denied": True}, "Declined by user.")],
)
async def test_a_refusal_is_an_error_result(house: House, given: dict[str, Any], said: str) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        _, interaction = await asked(alice, session_id)
        await answer(alice, interaction, **given)
        frames = await alice.turn()
    (result,) = of(frames, "tool_result")
    assert (result["result"], result["is_error"]) == (said, True)
    assert text(frames) == "; ; ; ."
    assert await house.sql("SELECT tool, success, error FROM mcp_tool_usage") == [("ask_form", 0, said)]


async def test_nobody_answers_within_the_hour(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        _, interaction = await asked(alice, session_id)
        began = trio.current_time()
        frames = await alice.turn(4000)
    (result,) = of(frames, "tool_result")
    assert result["is_error"]
    assert "{" not in result["result"]
    assert 3600 <= trio.current_time() - began < 3700
    assert of(frames, "interaction_resolved")[0]["interaction_id"] == interaction["interaction_id"]


async def test_a_stop_ends_the_wait(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await asked(alice, session_id)
        await alice.send("stop", session_id=session_id)
        frames = await alice.turn()
    assert of(frames, "stopped")
    (result,) = of(frames, "tool_result")
    assert result["is_error"]
    assert [row[0] for row in await house.sql("SELECT success FROM mcp_tool_usage")] == [0]


async def test_a_channel_without_forms_refuses_at_once(house: House) -> None:
    await system_session(house, "job", "cron")
    async with tab(house.alice, "job") as alice:
        await alice.say("job", FORM)
        frames = await alice.turn()
    (result,) = of(frames, "tool_result")
    assert result["is_error"]
    assert of(frames, "interaction") == []


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ("form: {questions: []}", "questions must not be empty."),
        ("form: {questions: [{id: a, kind: text, label: A}]}", "questions[0].question is missing."),
        (
            "form: {questions: [{id: a, kind: choice, label: A, question: q, options: [{label: x}]}]}",
            "questions[0] ('a'): options: choice and multi need 2 to 8.",
        ),
        ("{call: ask_form, input: {questions: 5}}", "questions must be a list."),
        ("{call: ask_form}", "questions is missing."),
    ],
)
async def test_an_invalid_form_is_an_error_result(house: House, step: str, complaint: str) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(f"- {step}", "- say: on"))
        frames = await alice.turn()
    (result,) = of(frames, "tool_result")
    assert (result["result"], result["is_error"]) == (complaint, True)
    assert text(frames) == "on"
