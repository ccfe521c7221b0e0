"""Each frame of the server that this part promises is provoked; each frame of a client is taken or answered."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance import scenarios_agents, scenarios_frames
from tests.conformance.conftest import Opening, marked
from tests.conformance.scenarios_frames import REMOVALS, talking
from tests.conformance.subject import Local, Start, Subject, new_session
from tests.contract.spec_reader import CLIENT, ERRORS, SERVER
from tests.spec_frames import FUTURE

# What only a later part can provoke: it takes a model to sum up a plan.
SCENARIOS = {**scenarios_frames.SCENARIOS, **scenarios_agents.FRAMES}
NOT_YET = {("plan_summary", "ok")}
PROMISED: Mapping[tuple[str, str], dict[str, Any]] = {
    (kind, example["name"]): example["payload"]
    for kind, frame in SERVER.items()
    if kind not in FUTURE
    for example in frame["examples"]
    if (kind, example["name"]) not in NOT_YET
}
REASONS = SERVER["queue_update"]["payload"]["properties"]["removed"]["items"]["properties"]["reason"]["enum"]


def _why(promised: tuple[str, str]) -> Local | None:
    """Why it can't be seen by address, if it can't; one that is missing fails the test below."""
    scenario = SCENARIOS.get(promised)
    if scenario is None or not scenario.settings:
        return scenario and scenario.local
    return Local.SETTINGS


def test_every_promised_frame_has_a_scenario() -> None:
    assert SCENARIOS.keys() == PROMISED.keys()


def test_frames_of_later_parts_are_told_apart() -> None:
    assert "later" in {SERVER[kind]["x-nerve"]["part"] for kind in FUTURE}
    assert {kind for kind, _ in PROMISED} == SERVER.keys() - FUTURE


@pytest.mark.req("WS-29", "WS-30", "WS-31", "WS-32", "WS-33", "WS-34", "WS-35", "WS-36", "WS-40", "WS-43", "WS-45")
@pytest.mark.req(
    "WS-39",
    "WS-46",
    "WS-55",
    "WS-56",
    "WS-47",
    "WS-51",
    "WS-54",
    "WS-58",
    "WS-66",
    "WS-76",
    "AGENT-02",
    "AGENT-15",
    "AGENT-17",
)
@pytest.mark.req("WS-57", "WS-67", "WS-69", "WS-70", "WS-71")
@pytest.mark.parametrize("promised", [marked(p, _why(p)) for p in sorted(PROMISED)], ids="-".join)
async def test_promised_frame_is_sent(promised: tuple[str, str], opening: Opening) -> None:
    """It looks like its example: the same keys, so that each way a frame may look is seen."""
    scenario, example = SCENARIOS[promised], PROMISED[promised]
    async with opening(Start.CLAIMED, scenario.settings) as subject:
        frame = await scenario.play(subject)
        assert frame["type"] == example["type"]
        assert frame.keys() == example.keys()


@pytest.mark.req("WS-51")
@pytest.mark.parametrize("reason", [marked(reason, REMOVALS[reason].local) for reason in REASONS])
async def test_each_way_out_of_the_queue_is_told(reason: str, opening: Opening) -> None:
    async with opening() as subject:
        update = await REMOVALS[reason].play(subject)
        assert [entry["reason"] for entry in update["removed"]] == [reason]


# --- what a client sends ------------------------------------------------------------------------------------------

# What comes of each example of a client's frame: the type of the answer, and of an error its text.
ANSWERS: Mapping[tuple[str, str], tuple[str, str | None]] = {
    ("message", "plain"): ("session_running", None),
    ("message", "with everything"): ("error", "file_not_found"),  # which nobody has uploaded
    ("stop", "stop"): ("error", "No running task to stop"),
    ("switch_session", "switch"): ("session_switched", None),
    ("switch_session", "return"): ("session_switched", None),
    ("agent_subscribe", "follow"): ("error", "agent_not_found"),
    ("agent_unsubscribe", "leave"): ("pong", None),  # nothing of its own: the ping after it is answered first
    ("fork", "at a message"): ("error", ERRORS["message_not_found"]["message"]),
    ("resume", "resume"): ("error", ERRORS["not_resumable"]["message"]),
    ("answer_interaction", "an answer"): ("error", "interaction_not_found"),
    ("answer_interaction", "a refusal"): ("error", "interaction_not_found"),
    ("ping", "ping"): ("pong", None),
}
EXAMPLES = {(kind, e["name"]): e["payload"] for kind, frame in CLIENT.items() for e in frame["examples"]}
MOVING = {"session_switched", "session_status", "queue_update", "session_updated"}


def test_every_frame_of_a_client_has_its_answer() -> None:
    assert ANSWERS.keys() == EXAMPLES.keys()


async def answered(subject: Subject, payload: dict[str, Any]) -> dict[str, Any]:
    """The first frame that comes of it, but for those that any change of a session brings."""
    async with talking(subject) as talk:
        other = await new_session(subject.owner)
        named = {"session_id": other} if "session_id" in payload else {}
        await talk.socket.send_json({**payload, **named})
        if payload["type"] == "agent_unsubscribe":
            await talk.socket.send_json({"type": "ping"})
        passed = MOVING - ({"session_switched"} if payload["type"] == "switch_session" else set())
        while (frame := await talk.socket.receive_json())["type"] in passed:
            pass
        assert frame.get("session_id", other) == other
        return dict(frame)


@pytest.mark.req("WS-08", "WS-10", "WS-12", "WS-16", "WS-28")
@pytest.mark.parametrize("example", sorted(EXAMPLES), ids="-".join)
async def test_frame_of_a_client_is_answered(example: tuple[str, str], subject: Subject) -> None:
    kind, error = ANSWERS[example]
    frame = await answered(subject, EXAMPLES[example])
    assert (frame["type"], frame.get("error")) == (kind, error)
    assert "seq" not in frame


@pytest.mark.req("WS-10")
@pytest.mark.parametrize("example", sorted(EXAMPLES), ids="-".join)
async def test_unknown_keys_of_a_frame_are_ignored(example: tuple[str, str], subject: Subject) -> None:
    kind, error = ANSWERS[example]
    frame = await answered(subject, {**EXAMPLES[example], "of_a_newer_client": {"deep": [1, None]}})
    assert (frame["type"], frame.get("error")) == (kind, error)


# --- junk ---------------------------------------------------------------------------------------------------------

JUNK = {
    "nothing": "",
    "no JSON": "{",
    "a number": "1",
    "null": "null",
    "a list": '[{"type": "ping"}]',
    "no type": "{}",
    "a type that is no text": '{"type": 1}',
    "no number": '{"type": "ping", "x": NaN}',
    "a lone surrogate": '{"type": "\\ud800"}',
    "trailing words": '{"type": "ping"} {"type": "ping"}',
    "deep": '{"type": "ping", "x": ' + "[" * 200 + "]" * 200 + "}",
    "very deep": "[" * 100_000,
    "a wrong field": '{"type": "switch_session", "session_id": 7}',
    "a missing field": '{"type": "message", "session_id": "main"}',
    "an empty message": '{"type": "message", "session_id": "main", "content": ""}',
}


@pytest.mark.req("GEN-09")
@pytest.mark.parametrize("text", JUNK.values(), ids=JUNK.keys())
async def test_junk_is_a_bad_frame_to_its_sender_only(text: str, subject: Subject) -> None:
    async with talking(subject) as talk, talking(subject, session_id=talk.session_id) as other:
        await talk.socket.send_text(text)
        error = await talk.until("error")
        assert (error["error"], error["session_id"]) == ("bad_frame", talk.session_id)
        for each in (talk, other):
            await each.socket.send_json({"type": "ping"})
            assert (await each.socket.receive_json())["type"] == "pong"


@pytest.mark.req("GEN-09")
async def test_unknown_types_are_ignored(subject: Subject) -> None:
    async with talking(subject) as talk:
        for kind in ("subscribe", "PING", "ping ", "x" * 10_000, "token", "__class__"):
            await talk.socket.send_json({"type": kind, "session_id": talk.session_id})
        await talk.socket.send_json({"type": "ping"})
        assert (await talk.socket.receive_json())["type"] == "pong"


@pytest.mark.req("GEN-09")
async def test_what_is_no_text_or_too_long_ends_its_socket_only(subject: Subject) -> None:
    async with talking(subject) as witness:
        async with talking(subject) as talk:
            await talk.socket.send_bytes(b'{"type": "ping"}')
            await talk.socket.expect_close(1003)
        async with talking(subject) as talk:
            await talk.say("ü" * (512 * 1024))
            await talk.socket.expect_close(1009)
        await witness.socket.send_json({"type": "ping"})
        assert (await witness.socket.receive_json())["type"] == "pong"
