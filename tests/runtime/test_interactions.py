"""A person is asked: told to everybody, answered once by anybody, settled whatever happens."""

import pytest
import trio

from tests.runtime.tabs import Frame, Tab, of, tab, types
from tests.sessions.session_house import House, play

ASK = (
    "- say: 'First. '",
    "- ask: [{question: 'Which colour?', header: colour, options: [{label: Red}, {label: Blue}]}]",
    "- say: 'So ${answer.colour}; ${result}.'",
)


async def asked(watching: Tab) -> Frame:
    return (await watching.until("interaction"))[-1]


async def answer(watching: Tab, asking: Frame, **fields: object) -> None:
    await watching.send(
        "answer_interaction", session_id=asking["session_id"], interaction_id=asking["interaction_id"], **fields
    )


async def awaiting(house: House, session_id: str) -> list[bool]:
    """As the session's status and its row in the list say."""
    status = (await house.alice.get(f"/api/sessions/{session_id}/status")).json
    rows = (await house.alice.get("/api/sessions")).json["sessions"]
    return [status["awaiting_input"], *(row["awaiting_input"] for row in rows if row["id"] == session_id)]


@pytest.mark.req("WS-21", "WS-67", "WS-70", "WS-71")
async def test_a_question_is_answered_from_another_tab(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, tab(house.bob, session_id) as other, tab(house.bob) as far:
        await one.say(session_id, play(*ASK))
        question = await asked(one)
        tool = of(one.frames, "tool_use")[-1]
        assert question["interaction_type"] == "question"
        assert question["tool_name"] == tool["tool"] == "AskUserQuestion"
        assert question["tool_input"] == tool["input"]
        assert question["agent"] is None
        assert await asked(other) == question
        assert (await far.until("session_awaiting_input"))[-1]["awaiting"] is True
        assert await awaiting(house, session_id) == [True, True]
        await answer(other, question, result={"answers": {"colour": " Blue "}})
        rest = await one.turn()
        assert types(of(rest, "interaction_resolved", "tool_result", "token", "done")) == [
            "interaction_resolved",
            "tool_result",
            "token",
            "done",
        ]
        result = of(rest, "tool_result")[0]
        assert (result["tool_use_id"], result["is_error"]) == (tool["tool_use_id"], False)
        assert result["result"] == "The person answered.\ncolour: Blue"
        assert (await far.until("session_awaiting_input"))[-1]["awaiting"] is False
        assert await awaiting(house, session_id) == [False, False]
    assert await house.sql("SELECT count(*) FROM pending_interactions") == [(0,)]


async def test_an_hour_is_enough(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        await one.say(session_id, play(*ASK))
        await asked(one)
        began = trio.current_time()
        rest = await one.turn(4000)
        assert 3600 <= trio.current_time() - began < 3601
        assert of(rest, "tool_result")[0]["is_error"]
        assert of(rest, "done")
