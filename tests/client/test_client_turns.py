"""What becomes of one message, told from the frames of a session."""

import pytest

from nerve.client.socket import read_frame
from nerve.client.turns import Phase, TurnWatch
from nerve.contract.generated.frames_server import ServerFrame
from tests.client.frames import connections, entry, frame, message, removed, status, token


def watched(*frames: ServerFrame, sent: str = "a") -> tuple[TurnWatch, list[ServerFrame]]:
    watch = TurnWatch("main", sent)
    return watch, [one for one in frames if watch.see(one)]


DONE = frame("done", 9)


def test_the_turn_is_what_comes_between_its_start_and_its_end() -> None:
    watch, turn = watched(token(1), DONE, removed("a", "started"), token(11), frame("done", 12), token(13))
    assert [getattr(one, "seq", None) for one in turn] == [11, 12]
    assert (watch.over, watch.refusal, watch.lost) == (True, None, False)


@pytest.mark.parametrize("end", [frame("stopped", 12), frame("error", 12, error="no")], ids=["stopped", "error"])
def test_a_turn_also_ends_stopped_or_failed(end: ServerFrame) -> None:
    watch, turn = watched(removed("a", "started"), end)
    assert watch.over
    assert turn == [end]


def test_an_error_without_a_number_answers_something_else() -> None:
    watch, _ = watched(removed("a", "started"), frame("error", error="interaction_not_found"))
    assert watch.phase is Phase.RUNNING


def test_a_message_that_waits_has_a_place_in_the_queue() -> None:
    watch, turn = watched(frame("queue_update", queue=[entry("b", "q_1"), entry("a", "q_2")]), token(1))
    assert (watch.phase, watch.queue_id, turn) == (Phase.WAITING, "q_2", [])


@pytest.mark.parametrize(
    ("name", "sent", "texts"),
    [
        ("first_turn", "4b6f-1", ["I run them. ", "They do."]),
        ("stop", "4b6f-2", ["1 2 3 ", "4 5 6 "]),
        ("stop", "4b6f-3", ["Then I rest."]),
        ("queue", "4b6f-5", ["All green."]),
    ],
)
def test_transcripts_are_told_apart(name: str, sent: str, texts: list[str]) -> None:
    steps = [step for steps in connections(name) for step in steps]
    session_id = next(step["client"]["session_id"] for step in steps if step.get("client", {}).get("type") == "message")
    watch = TurnWatch(session_id, sent)
    frames = [read_frame(step["server"]) for step in steps if "server" in step]
    turn = [one for one in frames if one is not None and watch.see(one)]
    assert [one.content for one in turn if one.type == "token"] == texts
    assert watch.over


def test_transcripts_tell_why_a_message_did_not_run() -> None:
    frames = [read_frame(step["server"]) for steps in connections("queue") for step in steps if "server" in step]
    cancelled, refused = TurnWatch("main", "4b6f-6"), TurnWatch("main", "4b6f-7")
    for one in frames:
        assert one is not None
        cancelled.see(one)
        refused.see(one)
    assert cancelled.refusal == "the message was cancelled"
    assert refused.refusal == "The server is shutting down."
    assert refused.explained


def test_a_refusal_is_explained_by_the_error_that_follows() -> None:
    watch, _ = watched(removed("a", "refused"))
    assert (watch.over, watch.explained) == (True, False)
    watch.see(frame("error", error="Too many messages wait.", client_msg_id="a"))
    assert (watch.refusal, watch.explained) == ("Too many messages wait.", True)


# --- over a lost line ---------------------------------------------------------------------------------------------


def test_a_replay_shows_the_start_that_was_missed() -> None:
    watch, turn = watched(status(3, running=True), message(2, "a"), token(3))
    watch.caught_up()
    assert watch.phase is Phase.RUNNING
    assert len(turn) == 1


def test_a_turn_that_ended_in_a_gap_is_lost() -> None:
    watch, _ = watched(removed("a", "started"), status(90), frame("gap", from_seq=3, to_seq=90))
    assert not watch.over
    watch.caught_up()
    assert watch.lost


def test_a_turn_that_goes_on_behind_a_gap_is_not() -> None:
    watch, turn = watched(removed("a", "started"), status(90, running=True), frame("gap", from_seq=3, to_seq=90))
    watch.caught_up()
    assert watch.phase is Phase.RUNNING
    assert [one.type for one in turn] == ["gap"]


def test_another_turn_after_ours_says_that_ours_is_over() -> None:
    watch, _ = watched(removed("a", "started"), frame("gap", from_seq=3, to_seq=8), message(9, "b"))
    assert watch.lost


def test_a_message_that_left_the_queue_meanwhile_was_taken_back_by_somebody() -> None:
    watch, _ = watched(frame("queue_update", queue=[entry("a")]), status(3), token(3))
    watch.caught_up()
    assert watch.refusal == "the message has left the queue"


def test_a_message_that_left_the_queue_in_a_gap_may_have_run() -> None:
    watch, _ = watched(frame("queue_update", queue=[entry("a")]), status(9), frame("gap", from_seq=2, to_seq=9))
    watch.caught_up()
    assert (watch.lost, watch.refusal) == (True, None)


def test_a_message_still_waits_after_a_return() -> None:
    watch, _ = watched(frame("queue_update", queue=[entry("a")]), status(3, queue=[entry("a", "q_7")]))
    watch.caught_up()
    assert (watch.phase, watch.queue_id) == (Phase.WAITING, "q_7")


def test_a_resend_that_is_a_duplicate_of_what_ran_in_a_gap_is_lost() -> None:
    watch, _ = watched(status(9), frame("gap", from_seq=2, to_seq=9))
    watch.caught_up()
    assert watch.phase is Phase.SENT
    watch.see(removed("a", "duplicate"))
    assert watch.lost


def test_a_duplicate_that_waits_goes_on_waiting() -> None:
    watch, _ = watched(removed("a", "duplicate", queue=[entry("a")]))
    assert watch.phase is Phase.WAITING


def test_nobody_sends_it_again() -> None:
    watch, _ = watched()
    watch.give_up()
    assert watch.over
    assert "not known" in (watch.refusal or "")
