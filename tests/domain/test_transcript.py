"""The assistant's message as it grows, live and from logged frames."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.domain.transcript import Transcript, replay
from nerve.domain.turns import OPEN_TOOL_RESULT


def test_nothing_said_is_an_empty_row() -> None:
    transcript = Transcript()
    assert transcript.empty
    stored = transcript.stored(None)
    assert (stored.content, stored.thinking, stored.blocks) == ("", None, None)


def test_pieces_of_one_kind_are_one_block() -> None:
    transcript = Transcript()
    for piece in ("Hel", "lo "):
        transcript.text(piece)
    transcript.thinking("hm")
    transcript.text("world")
    stored = transcript.stored(None)
    assert stored.content == "Hello world"
    assert stored.thinking == "hm"
    assert stored.blocks == [
        {"type": "text", "content": "Hello "},
        {"type": "thinking", "content": "hm"},
        {"type": "text", "content": "world"},
    ]


def test_a_tool_call_has_its_result_in_its_block() -> None:
    transcript = Transcript()
    transcript.tool_started("t1", "Bash", {"command": "ls"})
    transcript.tool_started("t2", "Read", {})
    assert transcript.open_tools == ("t1", "t2")
    transcript.tool_finished("t2", "gone", True)
    assert transcript.open_tools == ("t1",)
    transcript.close_tools()
    assert transcript.open_tools == ()
    assert transcript.stored(None).blocks == [
        {
            "type": "tool_call",
            "tool": "Bash",
            "input": {"command": "ls"},
            "tool_use_id": "t1",
            "result": OPEN_TOOL_RESULT,
            "is_error": True,
        },
        {"type": "tool_call", "tool": "Read", "input": {}, "tool_use_id": "t2", "result": "gone", "is_error": True},
    ]


def test_a_result_of_an_unknown_or_finished_call_changes_nothing() -> None:
    transcript = Transcript()
    transcript.tool_started("t1", "Bash", {})
    transcript.tool_finished("t1", "first", False)
    before = transcript.stored(None)
    transcript.tool_finished("t1", "second", True)
    transcript.tool_finished("t9", "nobody's", True)
    assert transcript.stored(None) == before


def test_a_change_of_the_model_is_a_block() -> None:
    transcript = Transcript()
    transcript.model_changed("big", "small", True)
    assert not transcript.empty
    assert transcript.stored(None).blocks == [{"type": "model_change", "from": "big", "to": "small", "downgrade": True}]


@pytest.mark.parametrize(("said", "content"), [("", "[Stopped by user]"), ("Well", "Well\n\n[Stopped by user]")])
def test_the_mark_stands_after_a_blank_line(said: str, content: str) -> None:
    transcript = Transcript()
    if said:
        transcript.text(said)
    stored = transcript.stored("[Stopped by user]")
    assert stored.content == content
    assert stored.blocks is not None
    assert stored.blocks[-1] == {"type": "text", "content": "[Stopped by user]"}


def test_storing_does_not_end_the_transcript() -> None:
    transcript = Transcript()
    transcript.text("a")
    assert transcript.stored("mark").content == "a\n\nmark"
    transcript.text("b")
    assert transcript.stored(None).content == "ab"


def test_frames_that_tell_of_anything_else_are_passed_over() -> None:
    frames: list[dict[str, Any]] = [
        {"type": "user_message", "content": "Hello"},
        {"type": "tool_output", "tool_use_id": "t1", "content": "..."},
        {"type": "file_changed", "path": "/x"},
        {"type": "done"},
    ]
    assert replay(frames).empty


_EVENTS = st.one_of(
    st.tuples(st.just("token"), st.text(min_size=1, max_size=5)),
    st.tuples(st.just("thinking"), st.text(min_size=1, max_size=5)),
    st.tuples(st.just("tool_use"), st.sampled_from("abc")),
    st.tuples(st.just("tool_result"), st.sampled_from("abc")),
    st.tuples(st.just("model_changed"), st.sampled_from(["big", "small"])),
)


@given(st.lists(_EVENTS, max_size=40), st.none() | st.just("mark"))
def test_the_log_adds_up_to_what_was_said(events: list[tuple[str, str]], mark: str | None) -> None:
    live, frames = Transcript(), []
    for kind, value in events:
        frames.append(_apply(live, kind, value))
    assert replay(frames).stored(mark) == live.stored(mark)
    assert replay(frames).open_tools == live.open_tools


def _apply(live: Transcript, kind: str, value: str) -> dict[str, Any]:
    match kind:
        case "token":
            live.text(value)
            return {"type": kind, "content": value}
        case "thinking":
            live.thinking(value)
            return {"type": kind, "content": value}
        case "tool_use":
            live.tool_started(value, "Bash", {"of": value})
            return {"type": kind, "tool_use_id": value, "tool": "Bash", "input": {"of": value}}
        case "tool_result":
            live.tool_finished(value, "ok", False)
            return {"type": kind, "tool_use_id": value, "result": "ok", "is_error": False}
        case _:
            live.model_changed("before", value, False)
            return {"type": kind, "from_model": "before", "to_model": value, "downgrade": False}
