"""What a person sees of a question, and does about it, in tests."""

from typing import Any

from nerve.adapters.protocol import InteractionRequest, InteractionType, ToolStarted
from tests.runtime.puppets import puppets
from tests.runtime.tabs import Frame, Tab
from tests.sessions.session_house import House, play

ASK = (
    "- say: 'First. '",
    "- ask: [{question: 'Which colour?', header: colour, options: [{label: Red}, {label: Blue}]}]",
    "- say: 'So ${answer.colour}; ${result}.'",
)
PLAN = ("- plan: '# Plan'", "  revise: [{plan: '# Shorter'}]", "- say: '${result}'")
REQUEST = InteractionRequest(InteractionType.QUESTION, "AskUserQuestion", {"questions": [{"question": "Why?"}]})
BY_AGENT = InteractionRequest(InteractionType.QUESTION, "AskUserQuestion", {"questions": []}, agent_ref="a1b2")
BLUE = {"answers": {"colour": "Blue"}}


async def asked(watching: Tab) -> Frame:
    """The next question."""
    return (await watching.until("interaction"))[-1]


async def ask(watching: Tab, session_id: str, *steps: str) -> Frame:
    """Have the session ask; the question."""
    await watching.say(session_id, play(*(steps or ASK)))
    return await asked(watching)


async def answer(watching: Tab, question: Frame, result: Any = ..., **fields: Any) -> None:
    if result is not ...:
        fields["result"] = result
    await watching.send(
        "answer_interaction", session_id=question["session_id"], interaction_id=question["interaction_id"], **fields
    )


async def awaiting(house: House, session_id: str) -> list[bool]:
    """As the session's status and its row in the list say."""
    status = (await house.alice.get(f"/api/sessions/{session_id}/status")).json
    rows = (await house.alice.get("/api/sessions")).json["sessions"]
    return [status["awaiting_input"], *(row["awaiting_input"] for row in rows if row["id"] == session_id)]


async def pending(house: House) -> list[tuple[Any, ...]]:
    return await house.sql("SELECT id FROM pending_interactions")


async def begun(house: House, one: Tab, session_id: str) -> Any:
    """A turn of a runtime that the test moves."""
    adapter = puppets(house)
    await one.say(session_id, "Hello")
    puppet = await adapter.prompted()
    puppet.say(ToolStarted("toolu_1", "AskUserQuestion", {}))
    await one.until("tool_use")
    return puppet
