"""What one client may say next: frames in, commands out, without a socket."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.contract.generated.frames_server import ErrorFrame, PongFrame
from nerve.domain.answers import PersonsAnswer
from nerve.ws.conversation import (
    MAX_FRAME_BYTES,
    Answer,
    Bind,
    Close,
    Command,
    Conversation,
    Follow,
    Fork,
    Resume,
    Send,
    Stop,
    Submit,
    Unfollow,
)


def said(*frames: Any, bound: str = "main") -> list[Command]:
    """What follows from frames, one after the other; a Bind is carried out."""
    conversation = Conversation(bound)
    commands: list[Command] = []
    for frame in frames:
        for command in conversation.receive(frame if isinstance(frame, str | bytes) else json.dumps(frame)):
            commands.append(command)
            if isinstance(command, Bind):
                conversation.now_bound(command.session_id)
    return commands


def error(text: str, session_id: str = "main") -> Send:
    return Send(ErrorFrame(session_id=session_id, error=text))


@pytest.mark.req("WS-28")
def test_ping() -> None:
    assert said({"type": "ping"}) == [Send(PongFrame())]


@pytest.mark.req("WS-08", "WS-10")
def test_a_message_to_the_bound_session() -> None:
    assert said({"type": "message", "session_id": "main", "content": "Hi"}) == [Submit("main", "Hi", None, None)]
    whole = {
        "type": "message",
        "session_id": "main",
        "content": "Hi",
        "file_ids": [],
        "model": "m",
        "client_msg_id": "c1",
    }
    assert said(whole) == [Submit("main", "Hi", "c1", "m")]
    assert said({**whole, "model": None, "client_msg_id": None}) == [Submit("main", "Hi", None, None)]


@pytest.mark.req("WS-08")
def test_a_message_to_another_session_binds_first_and_once() -> None:
    message = {"type": "message", "session_id": "other", "content": "Hi"}
    assert said(message, message) == [
        Bind("other"),
        Submit("other", "Hi", None, None),
        Submit("other", "Hi", None, None),
    ]


@pytest.mark.req("WS-08")
def test_a_bind_that_a_message_asks_for_knows_the_message() -> None:
    message = {"type": "message", "session_id": "other", "content": "Hi", "client_msg_id": "c1"}
    assert said(message) == [Bind("other", client_msg_id="c1"), Submit("other", "Hi", "c1", None)]


@pytest.mark.req("WS-10")
def test_a_message_with_files() -> None:
    frame = {"type": "message", "session_id": "main", "content": "Hi", "file_ids": ["f1", "f2"]}
    assert said(frame)[-1] == Submit("main", "Hi", None, None, ("f1", "f2"))
    frame["file_ids"] = ["f"] * 21
    (refused,) = said(frame)
    assert isinstance(refused, Send)
    assert isinstance(refused.frame, ErrorFrame)


@pytest.mark.req("WS-12")
def test_a_switch() -> None:
    assert said({"type": "switch_session", "session_id": "s"}) == [Bind("s", None)]
    assert said({"type": "switch_session", "session_id": "s", "after_seq": None}) == [Bind("s", None)]
    assert said({"type": "switch_session", "session_id": "s", "after_seq": 0}) == [Bind("s", 0)]
    assert said({"type": "switch_session", "session_id": "s", "after_seq": 12}) == [Bind("s", 12)]


@pytest.mark.req("WS-11")
def test_a_stop_leaves_the_binding() -> None:
    assert said({"type": "stop", "session_id": "other"}) == [Stop("other")]


@pytest.mark.req("WS-21", "WS-22")
@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({}, PersonsAnswer(None, False, None)),
        ({"result": None}, PersonsAnswer(None, False, None)),
        ({"result": {"plan": "p"}}, PersonsAnswer({"plan": "p"}, False, None)),
        ({"denied": True, "message": " No. "}, PersonsAnswer(None, True, " No. ")),
    ],
)
def test_an_answer_is_passed_on_as_it_is(fields: dict[str, Any], answer: PersonsAnswer) -> None:
    frame = {"type": "answer_interaction", "session_id": "other", "interaction_id": "i", **fields}
    assert said(frame) == [Answer("other", "i", answer)]


def test_only_agents_of_the_bound_session_are_followed() -> None:
    subscribe = {"type": "agent_subscribe", "session_id": "s", "agent_id": "ag_1"}
    assert said(subscribe) == [error("agent_not_found", "s")]
    assert said(subscribe, bound="s") == [Follow("s", "ag_1")]
    assert said({**subscribe, "type": "agent_unsubscribe"}) == [Unfollow("s", "ag_1")]


@pytest.mark.req("WS-19")
def test_a_fork_is_made_whole_or_at_a_message_named_either_way() -> None:
    fork = {"type": "fork", "session_id": "s"}
    assert said(fork) == [Fork("s", None, None)]
    assert said({**fork, "at_message_id": None, "title": None}) == [Fork("s", None, None)]
    assert said({**fork, "at_message_id": "42", "title": "Mine"}) == [Fork("s", "42", "Mine")]
    assert said({**fork, "at_message_id": "msg-42"}) == [Fork("s", "42", None)]
    assert said({**fork, "at_message_id": 42}) == [error("bad_frame")]
    assert said({**fork, "title": "x" * 501}) == [error("bad_frame")]


@pytest.mark.req("WS-20")
def test_a_resume_leaves_the_binding() -> None:
    assert said({"type": "resume", "session_id": "s"}) == [Resume("s")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '"ping"',
        "5",
        "{}",
        '{"type": 5}',
        '{"type": null}',
        '{"type": "message"}',
        '{"type": "message", "session_id": "main"}',
        '{"type": "message", "session_id": "main", "content": ""}',
        '{"type": "message", "session_id": 5, "content": "x"}',
        '{"type": "message", "session_id": "main", "content": ["x"]}',
        '{"type": "message", "session_id": "main", "content": "x", "client_msg_id": 5}',
        '{"type": "message", "session_id": "main", "content": "x", "file_ids": "f"}',
        '{"type": "switch_session"}',
        '{"type": "switch_session", "session_id": "s", "after_seq": -1}',
        '{"type": "switch_session", "session_id": "s", "after_seq": "5"}',
        '{"type": "switch_session", "session_id": "s", "after_seq": 1.5}',
        '{"type": "switch_session", "session_id": "s", "after_seq": true}',
        '{"type": "stop"}',
        '{"type": "answer_interaction", "session_id": "s"}',
        '{"type": "answer_interaction", "session_id": "s", "interaction_id": "i", "result": []}',
        '{"type": "answer_interaction", "session_id": "s", "interaction_id": "i", "result": "Red"}',
        '{"type": "answer_interaction", "session_id": "s", "interaction_id": "i", "denied": "yes"}',
        '{"type": "answer_interaction", "session_id": "s", "interaction_id": "i", "denied": true, "message": 5}',
        '{"type": "message", "session_id": "main", "content": "\\ud800"}',
        "[" * 100 + "]" * 100,
    ],
)
def test_what_does_not_fit_is_a_bad_frame_about_the_bound_session(text: str) -> None:
    assert said(text, bound="here") == [error("bad_frame", "here")]


def test_a_bad_frame_names_the_session_that_is_bound_by_then() -> None:
    assert said({"type": "switch_session", "session_id": "there"}, "{") == [Bind("there"), error("bad_frame", "there")]


def test_unknown_types_and_unknown_keys_are_ignored() -> None:
    assert said({"type": "from_the_future", "session_id": 5}) == []
    assert said({"type": "ping", "nonce": {"a": [1]}}) == [Send(PongFrame())]


def test_bytes_and_what_is_too_big_close_the_socket() -> None:
    assert said(b'{"type": "ping"}') == [Close(1003, "text frames only")]
    assert said(b"") == [Close(1003, "text frames only")]
    for text in ("x" * (MAX_FRAME_BYTES + 1), "\N{GRINNING FACE}" * (MAX_FRAME_BYTES // 4 + 1)):
        assert said(text) == [Close(1009, "frame too big")]


@pytest.mark.parametrize("character", ["x", "\N{GRINNING FACE}"])
def test_one_mebibyte_is_not_too_big(character: str) -> None:
    head, tail = '{"type": "message", "session_id": "main", "content": "', '"}'
    room = MAX_FRAME_BYTES - len(head) - len(tail)
    content = character * (room // len(character.encode()))
    content += "x" * (room - len(content.encode()))
    text = head + content + tail
    assert len(text.encode()) == MAX_FRAME_BYTES
    assert said(text) == [Submit("main", content, None, None)]
    assert said(text.replace("main", "mainx")) == [Close(1009, "frame too big")]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_TYPES = st.sampled_from(
    ["message", "stop", "switch_session", "agent_subscribe", "fork", "resume", "answer_interaction", "ping", "?"]
)
_KEYS = st.sampled_from(
    ["session_id", "content", "client_msg_id", "after_seq", "file_ids", "model", "agent_id", "interaction_id"]
)


@pytest.mark.slow
@given(_TYPES, st.dictionaries(_KEYS, _JSON | st.just("main"), max_size=6))
def test_nothing_that_a_client_says_breaks_the_conversation(kind: str, fields: dict[str, Any]) -> None:
    commands = said(json.dumps({"type": kind, **fields}))
    assert len(commands) <= 2
    # Only a message does two things, and what runs is what was said.
    assert len(commands) < 2 or (isinstance(commands[0], Bind) and isinstance(commands[1], Submit))
    for command in commands:
        match command:
            case Submit(session_id=session_id, content=content):
                assert (session_id, content) == (fields["session_id"], fields["content"])
            case Bind() | Stop() | Fork() | Resume():
                session_id = command.session_id
                assert session_id == fields["session_id"]
            case Close():
                raise AssertionError("nothing small closes a socket")
