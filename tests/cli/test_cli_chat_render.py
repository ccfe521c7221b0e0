"""What a session looks like as text: the transcripts of spec/, and each kind of frame."""

from typing import Any

import pytest

from nerve.cli.chat_render import OUTPUT_LINES, Renderer
from nerve.cli.chat_text import ASCII, Piece, Tone, paint
from nerve.client import CaughtUp, Disconnected, Unconfirmed
from nerve.client.following import Follower
from nerve.client.socket import read_frame
from nerve.contract.generated.entities import Message
from nerve.contract.generated.frames_server import SERVER_FRAMES, ServerFrame
from tests.client.frames import NOW, connections, entry, frame, message, removed, status, token
from tests.contract.spec_reader import SERVER


def shown(*events: Any, renderer: Renderer | None = None, own: dict[str, str] | None = None) -> str:
    drawn = renderer or Renderer(own=own or {}, names=lambda actor_id: {"act_2": "Ada"}.get(actor_id or "", "somebody"))
    return paint([piece for event in events for piece in drawn.render(event)], colour=False)


def tones(*events: Any) -> dict[str, Tone]:
    renderer = Renderer()
    pieces = [piece for event in events for piece in renderer.render(event)]
    return {piece.text.strip(): piece.tone for piece in pieces if piece.text.strip()}


def transcript(name: str, own: dict[str, str], session_id: str = "main") -> str:
    """As `nerve chat` shows it: followed, then drawn."""
    renderer, follower, pieces = Renderer(own=own), Follower(session_id), list[Piece]()
    for steps in connections(name):
        for step in steps:
            if (said := step.get("client", {})).get("type") == "message":
                pieces += renderer.message(said["content"])
            if "server" in step:
                found = read_frame(step["server"])
                assert found is not None
                for event in follower.receive(found, 0):
                    pieces += renderer.render(event)
            if "closed" in step:
                follower.disconnected()
                pieces += renderer.render(Disconnected(reason="the line is lost", retry_seconds=1))
    return "\n".join(line.rstrip() for line in paint(pieces, colour=False).split("\n"))


# --- transcripts --------------------------------------------------------------------------------------------------

FIRST_TURN = """\
› Do the tests pass?

· title: Do the tests pass?

∴ Better to run them.

I run them.

● Bash  pytest -q
  │ 212 passed
  ✓ 212 passed

They do.

· 900 tokens in, 40 out
"""

STOP = """\
› Count to a million.

1 2 3

› And then?

· waits: And then? (q_9c1d2e3f)

4 5 6

■ stopped

› And then?

Then I rest.
"""

QUEUE = """\
› Run the tests.

Running.

› also run the e2e suite

· waits: also run the e2e suite (q_00000001)

› also run the e2e suite

› and lint

· waits: and lint (q_00000002)
· taken back: and lint

› also run the e2e suite

All green.

› thanks

✗ refused: thanks
✗ The server is shutting down.
✗ the turn has ended with an error: Interrupted by restart
· the line is lost; connecting again …
"""

RECONNECT = """\
somebody› Tell a story.

Once upon

· the line is lost; connecting again …
· connected again

a time.

· the line is lost; connecting again …
· connected again
· what came meanwhile can't be had any more (numbers 47 to 477); /history shows what was said
"""


def test_a_first_turn() -> None:
    assert transcript("first_turn", {"4b6f-1": "Do the tests pass?"}, "a1b2c3d4") == FIRST_TURN


def test_a_turn_that_is_stopped_and_what_waits_behind_it() -> None:
    assert transcript("stop", {"4b6f-2": "Count to a million.", "4b6f-3": "And then?"}) == STOP


def test_a_queue_with_a_duplicate_a_cancelled_and_a_refused_message() -> None:
    own = {"4b6f-4": "Run the tests.", "4b6f-5": "also run the e2e suite", "4b6f-6": "and lint", "4b6f-7": "thanks"}
    assert transcript("queue", own) == QUEUE


def test_a_line_that_is_lost_and_found() -> None:
    drawn = transcript("reconnect", {})
    assert drawn.startswith(RECONNECT)
    assert "the server has gone back to an earlier state" in drawn
    assert drawn.count("Tell a story.") == 1


# --- every frame --------------------------------------------------------------------------------------------------

SILENT = {
    "session_switched",
    "session_status",
    "session_running",
    "session_agents",
    "session_awaiting_input",
    "agent_update",
    "agent_event",
    "background_tasks_update",
    "workflow_run_update",
    "review_loop_update",
    "task_updated",
    "notification_answered",
    "notification_expired",
    "pong",
}


def examples(kind: str) -> list[ServerFrame]:
    found = [read_frame(example["payload"]) for example in SERVER[kind].get("examples", [])]
    return [one for one in found if one is not None]


@pytest.mark.parametrize("kind", sorted(SERVER_FRAMES))
def test_every_frame_of_the_contract_is_shown_or_passed_over_on_purpose(kind: str) -> None:
    assert examples(kind), f"spec/ has no example of {kind}"
    for example in examples(kind):
        known = frame(
            "tool_use", 1, tool="Bash", input={"command": "ls"}, tool_use_id=getattr(example, "tool_use_id", "")
        )
        renderer = Renderer()
        renderer.render(known)
        text = paint(renderer.render(example), colour=False)
        assert "Frame(" not in text
        if kind in SILENT:
            assert text == "" or kind == "session_status"
        elif kind not in ("done", "queue_update", "plan_summary"):
            assert text.strip()


# --- turns --------------------------------------------------------------------------------------------------------


def test_thoughts_words_and_tools_are_set_apart() -> None:
    drawn = shown(
        frame("thinking", 1, content="Hm."),
        frame("thinking", 2, content=" Yes."),
        token(3, "\n\nOne "),
        token(4, "two.\n"),
        frame("tool_use", 5, tool="Read", input={"file_path": "a.py"}, tool_use_id="t1"),
        frame("tool_result", 6, tool_use_id="t1", result="", is_error=False),
        frame("tool_use", 7, tool="Grep", input={"pattern": "x"}, tool_use_id="t2"),
        frame("tool_result", 8, tool_use_id="t2", result="no match\n", is_error=True),
        frame("done", 9),
    )
    assert drawn == ("∴ Hm. Yes.\n\nOne two.\n\n● Read  a.py\n  ✓ done\n● Grep  x\n  ✗ no match\n")


def test_output_streams_in_whatever_pieces_it_comes() -> None:
    use = frame("tool_use", 1, tool="Bash", input={"command": "make"}, tool_use_id="t")
    pieces = [frame("tool_output", 2 + n, tool_use_id="t", content=text) for n, text in enumerate(["a", "b\nc\n", "d"])]
    drawn = shown(use, *pieces, frame("tool_result", 9, tool_use_id="t", result="", is_error=False))
    assert drawn == "● Bash  make\n  │ ab\n  │ c\n  │ d\n  ✓ done\n"


def test_long_output_is_counted_instead() -> None:
    use = frame("tool_use", 1, tool="Bash", input={"command": "seq"}, tool_use_id="t")
    out = frame("tool_output", 2, tool_use_id="t", content="".join(f"{n}\n" for n in range(OUTPUT_LINES + 7)))
    lines = shown(use, out, frame("tool_result", 3, tool_use_id="t", result="", is_error=False)).splitlines()
    assert lines[OUTPUT_LINES] == f"  │ {OUTPUT_LINES - 1}"
    assert lines[OUTPUT_LINES + 1] == "  │ … 7 more lines"


def test_a_result_of_many_lines_stands_for_output_that_did_not_come() -> None:
    use = frame("tool_use", 1, tool="Bash", input={"command": "seq"}, tool_use_id="t")
    result = frame("tool_result", 2, tool_use_id="t", result="\n".join(map(str, range(30))), is_error=False)
    lines = shown(use, result).splitlines()
    assert lines[1:3] == ["  │ 0", "  │ 1"]
    assert lines[-2:] == ["  │ … 18 more lines", "  ✓ done"]


def test_tools_side_by_side_say_which_one_speaks() -> None:
    drawn = shown(
        frame("tool_use", 1, tool="Bash", input={"command": "one"}, tool_use_id="t1"),
        frame("tool_use", 2, tool="Bash", input={"command": "two"}, tool_use_id="t2"),
        frame("tool_output", 3, tool_use_id="t1", content="1\n"),
        frame("tool_output", 4, tool_use_id="t2", content="2\n"),
        frame("tool_result", 5, tool_use_id="t1", result="", is_error=False),
        frame("tool_result", 6, tool_use_id="t2", result="", is_error=False),
    )
    assert drawn == (
        "● Bash  one\n● Bash  two\n● Bash one\n  │ 1\n● Bash two\n  │ 2\n● Bash one\n  ✓ done\n● Bash two\n  ✓ done\n"
    )


def test_a_changed_file_is_told_unless_the_tool_call_has_said_it() -> None:
    write = frame("tool_use", 1, tool="Write", input={"file_path": "/a", "content": "x"}, tool_use_id="t")
    result = frame("tool_result", 2, tool_use_id="t", result="", is_error=False)
    same, other = (frame("file_changed", 3, path=path, operation="write", tool_use_id="t") for path in ("/a", "/b"))
    assert shown(write, result, same) == "● Write  /a\n  ✓ done\n"
    assert shown(write, result, other) == "● Write  /a\n  ✓ done\n  ✎ write /b\n"
    assert shown(write, result, token(3, "So. "), same) == "● Write  /a\n  ✓ done\n\nSo. \n\n  ✎ write /a\n"


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ({"command": "ls\n-l", "description": "list"}, "ls -l"),
        ({"file_path": "/a/b"}, "/a/b"),
        ({"count": 3, "deep": {"a": None}}, 'count: 3, deep: {"a": null}'),
        ({"questions": [{"question": "Which\ncolour?"}, {}]}, "Which colour?"),
        ({"title": "", "questions": []}, "title: , questions: []"),
        ({"plan": "# Plan\n1. Count."}, "# Plan 1. Count."),
        ({}, ""),
        ({"command": "x" * 300}, "x" * 99 + "…"),
    ],
)
def test_a_tool_call_is_about_one_thing(given: dict[str, Any], about: str) -> None:
    assert shown(frame("tool_use", 1, tool="T", input=given, tool_use_id="t")) == (
        f"● T  {about}\n" if about else "● T\n"
    )


def test_the_end_tells_what_it_took() -> None:
    usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 0}
    assert (
        shown(frame("done", 1, usage=usage, max_context_tokens=4000))
        == "· 1,000 tokens in, 20 out, 25% of the context\n"
    )


def test_tones_tell_good_from_bad() -> None:
    use = frame("tool_use", 1, tool="Bash", input={"command": "ls"}, tool_use_id="t")
    assert tones(use, frame("tool_result", 2, tool_use_id="t", result="", is_error=False))["✓ done"] is Tone.GOOD
    assert tones(use, frame("tool_result", 2, tool_use_id="t", result="", is_error=True))["✗ failed"] is Tone.BAD
    assert tones(frame("error", 3, error="no"))["✗ the turn has ended with an error: no"] is Tone.BAD
    assert tones(frame("thinking", 1, content="Hm."))["Hm."] is Tone.THINKING
    assert "\x1b[" in paint(Renderer().render(frame("stopped", 1)), colour=True)


# --- people, queue, line ------------------------------------------------------------------------------------------


def test_others_are_named_and_own_messages_are_not_shown_again() -> None:
    assert shown(message(1, None, "Hi\nthere", "act_2")) == "Ada› Hi\n  there\n"
    assert shown(message(1, "mine", "Hi"), own={"mine": "Hi"}) == ""


def test_a_foreign_message_that_waits_is_named() -> None:
    other = {**entry("x", "q_2", "wait for me"), "actor_id": "act_2"}
    assert shown(frame("queue_update", queue=[other])) == "· waits: wait for me (q_2, from Ada)\n"


def test_what_waits_already_is_told_at_the_beginning_and_then_only_once() -> None:
    queue = [entry("x", "q_2", "wait for me")]
    assert shown(status(0, queue=queue), frame("queue_update", queue=queue)).count("waits:") == 1


def test_a_foreign_message_that_is_taken_back() -> None:
    queued = frame("queue_update", queue=[entry("x", "q_1", "wait")])
    assert shown(queued, removed("x", "cancelled")).endswith("· taken back: wait\n")


def test_a_lost_line_is_told_once_until_it_is_back() -> None:
    lost = [Disconnected(reason="gone", retry_seconds=n) for n in range(3)]
    events = [status(0), CaughtUp(first=True), *lost, status(0), CaughtUp(first=False)]
    assert shown(*events) == "· gone; connecting again …\n· connected again\n"


def test_an_unconfirmed_message_is_told() -> None:
    assert "nobody knows whether this arrived" in shown(Unconfirmed(client_msg_id="a"), own={"a": "hello"})


def test_history_is_shown_as_it_was_said() -> None:
    def stored(role: str, content: str, actor_id: str | None = None) -> Message:
        from nerve.contract.generated.entities import MessageRole

        return Message(
            id=1, session_id="main", role=MessageRole(role), content=content, thinking=None, blocks=None,
            created_at=NOW, channel=None, external_id=None, native_turn_id=None, actor_id=actor_id,
        )  # fmt: skip

    renderer = Renderer(me="act_1", names=lambda actor_id: "Ada")
    rows = [
        stored("user", "Hi", "act_1"),
        stored("assistant", "Hello.\n"),
        stored("user", "Hey", "act_2"),
        stored("system", "A note."),
    ]
    assert paint([piece for row in rows for piece in renderer.stored(row)], colour=False) == (
        "› Hi\n\nHello.\n\nAda› Hey\n\n· A note.\n"
    )


# --- hostile text -------------------------------------------------------------------------------------------------

HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\x9b31md\x08e\u202ef\x00g\rh"


@pytest.mark.parametrize(
    "event",
    [
        token(1, HOSTILE),
        frame("thinking", 1, content=HOSTILE),
        frame("tool_use", 1, tool=HOSTILE, input={"command": HOSTILE}, tool_use_id="t"),
        frame("tool_output", 1, tool_use_id="t", content=HOSTILE),
        frame("tool_result", 1, tool_use_id="t", result=HOSTILE, is_error=False),
        frame("error", 1, error=HOSTILE),
        frame("session_updated", title=HOSTILE),
        frame("file_changed", 1, path=HOSTILE, operation="edit", tool_use_id="t"),
        message(1, None, HOSTILE),
        frame("queue_update", queue=[entry("x", HOSTILE, HOSTILE)]),
        Disconnected(reason=HOSTILE, retry_seconds=1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_nothing_that_is_said_drives_the_terminal(event: Any) -> None:
    text = shown(event)
    assert not [character for character in text if ord(character) < 32 and character != "\n"]
    assert not set(text) & {"\x7f", "\x9b", "\u202e", "\x9d"}


def test_there_are_plain_marks_for_plain_terminals() -> None:
    renderer = Renderer(symbols=ASCII)
    events = [
        frame("thinking", 1, content="Hm."),
        frame("tool_use", 2, tool="Bash", input={"command": "x" * 300}, tool_use_id="t"),
        frame("tool_result", 3, tool_use_id="t", result="", is_error=True),
        frame("stopped", 4),
    ]
    assert shown(*events, renderer=renderer).isascii()
