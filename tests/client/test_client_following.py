"""Following a session without a socket: what is shown, what is asked for, what goes out again."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from nerve.client.errors import SessionGone
from nerve.client.following import CaughtUp, Follower, LiveEvent, Unconfirmed
from nerve.client.sending import MAX_SENDS, RESEND_SECONDS
from nerve.client.socket import read_frame
from nerve.contract.generated.frames_client import ClientFrame, MessageFrame
from nerve.contract.generated.frames_server import GapFrame, ServerFrame, SessionStatusFrame
from nerve.contract.unset import UNSET
from tests.client.frames import connections, entry, frame, message, removed, status, token


def feed(follower: Follower, *frames: ServerFrame, now: float = 0.0) -> list[LiveEvent]:
    return [event for one in frames for event in follower.receive(one, now)]


def numbers(events: list[LiveEvent]) -> list[int]:
    return [seq for event in events if isinstance(seq := getattr(event, "seq", None), int)]


def play(follower: Follower, steps: list[dict[str, Any]]) -> list[LiveEvent]:
    frames = [read_frame(step["server"]) for step in steps if "server" in step]
    return feed(follower, *(one for one in frames if one is not None))


def test_a_transcript_with_three_returns_shows_every_frame_once_and_the_gaps() -> None:
    follower = Follower("main")
    first, second, third, fourth = connections("reconnect")
    assert numbers(play(follower, first)) == [41, 42, 43]
    follower.disconnected()
    assert second[0]["open"].endswith(f"after_seq={follower.cursor}")
    assert numbers(play(follower, second)) == [44, 45, 46]
    follower.disconnected()
    assert third[0]["open"].endswith(f"after_seq={follower.cursor}")
    shown = play(follower, third)
    assert [(gap.from_seq, gap.to_seq) for gap in shown if isinstance(gap, GapFrame)] == [(47, 477)]
    assert numbers(shown) == [478, 479, 480]
    # A database that was put back: the numbers begin anew, and what is kept is shown.
    follower.disconnected()
    follower.cursor = 9000
    shown = play(follower, fourth)
    assert [gap.reset for gap in shown if isinstance(gap, GapFrame)] == [True]
    assert numbers(shown) == [478, 479, 480]
    assert follower.cursor == 480


def test_the_snapshot_of_a_running_turn_is_taken_apart_into_its_frames() -> None:
    follower = Follower("main")
    shown = feed(
        follower,
        status(42, running=True, buffered=[{"type": "token", "session_id": "main", "content": "a", "seq": 42}]),
    )
    assert isinstance(shown[0], SessionStatusFrame)
    assert shown[0].buffered_events is UNSET
    assert numbers(shown) == [42]
    assert shown[-1] == CaughtUp(first=True)
    assert follower.cursor == 42


def test_a_snapshot_that_holds_only_the_newest_frames_moves_the_cursor_all_the_same() -> None:
    follower = Follower("main")
    feed(follower, status(42, running=True, buffered=[]))
    assert follower.cursor == 42
    assert numbers(feed(follower, token(42), token(43))) == [43]


def test_repeats_are_dropped_and_holes_are_not_filled() -> None:
    """The sender's own message is left out of the numbers that its socket sees."""
    follower = Follower("main", 4)
    shown = feed(follower, status(5), token(5), token(5), token(7), token(6), token(8))
    assert numbers(shown) == [5, 7, 8]
    assert all(before < after for before, after in pairwise(numbers(shown)))


def test_it_is_caught_up_only_once_everything_that_was_missed_has_been_shown() -> None:
    follower = Follower("main", 2)
    assert not any(isinstance(event, CaughtUp) for event in feed(follower, status(5), token(3)))
    assert not follower.caught_up
    assert feed(follower, frame("gap", from_seq=4, to_seq=5))[-1] == CaughtUp(first=True)
    follower.disconnected()
    assert not follower.caught_up
    assert feed(follower, status(5))[-1] == CaughtUp(first=False)


def test_a_cursor_above_everything_waits_for_the_reset() -> None:
    follower = Follower("main", 9000)
    feed(follower, status(0))
    assert not follower.caught_up
    shown = feed(follower, frame("gap", from_seq=1, to_seq=0, reset=True))
    assert follower.caught_up
    assert isinstance(shown[0], GapFrame)
    assert numbers(feed(follower, token(1))) == [1]


def test_frames_of_other_sessions_and_pongs_are_passed_over() -> None:
    follower = Follower("main")
    other = token(1, session_id="other")
    assert feed(follower, other, frame("session_switched", session_id="other")) == []
    pong = read_frame({"type": "pong"})
    assert pong is not None
    assert feed(follower, pong) == []
    forked = read_frame({"type": "session_forked", "source_id": "main", "fork_id": "f", "title": "t"})
    assert forked is not None
    assert feed(follower, forked) == [forked]


def test_a_session_that_is_not_there_ends_it() -> None:
    with pytest.raises(SessionGone):
        feed(Follower("main"), frame("error", error="session_not_found"))
    # An error of a turn may read the same and is only a sentence.
    assert numbers(feed(Follower("main", 1), frame("error", 2, error="session_not_found"))) == [2]


# --- messages -----------------------------------------------------------------------------------------------------


def submitted(follower: Follower, *sent: str) -> None:
    for client_msg_id in sent:
        follower.submit(MessageFrame(session_id="main", content="hello", client_msg_id=client_msg_id))


def ids(frames: Sequence[ClientFrame]) -> list[object]:
    return [one.client_msg_id for one in frames if isinstance(one, MessageFrame)]


def test_messages_wait_for_the_connection_to_be_caught_up_and_go_out_in_order() -> None:
    follower = Follower("main", 1)
    submitted(follower, "a", "b")
    assert follower.due(0) == []
    feed(follower, status(2))
    assert follower.due(0) == []
    feed(follower, token(2))
    assert ids(follower.due(0)) == ["a", "b"]
    assert follower.due(0) == []
    submitted(follower, "c")
    assert ids(follower.due(0)) == ["c"]


@pytest.mark.parametrize(
    "sign",
    [
        removed("a", "started"),
        removed("a", "duplicate"),
        removed("a", "refused"),
        frame("queue_update", queue=[entry("a")]),
        status(3, queue=[entry("a")]),
        message(3, "a"),
        frame("error", error="Too many messages wait.", client_msg_id="a"),
    ],
    ids=["started", "duplicate", "refused", "queued", "queued at the return", "replayed", "told no"],
)
def test_what_shows_that_a_message_arrived_keeps_it_from_being_sent_again(sign: ServerFrame) -> None:
    follower = Follower("main")
    feed(follower, status(2))
    submitted(follower, "a", "b")
    assert ids(follower.due(0)) == ["a", "b"]
    follower.disconnected()
    assert follower.unconfirmed == ("a", "b")
    if isinstance(sign, SessionStatusFrame):
        feed(follower, sign, token(3))
    else:
        feed(follower, status(3), sign, token(3))
    assert follower.unconfirmed == ("b",)
    assert ids(follower.due(0)) == ["b"]


def test_a_message_is_not_sent_again_once_its_id_may_be_forgotten() -> None:
    follower = Follower("main")
    feed(follower, status(0))
    submitted(follower, "a")
    follower.due(100)
    follower.disconnected()
    submitted(follower, "never sent before")
    shown = feed(follower, status(0), now=100 + RESEND_SECONDS + 1)
    assert Unconfirmed(client_msg_id="a") in shown
    assert ids(follower.due(900)) == ["never sent before"]


def test_a_message_that_ends_every_connection_is_given_up() -> None:
    follower = Follower("main")
    submitted(follower, "a")
    sends, given_up = 0, []
    for _ in range(2 * MAX_SENDS):
        given_up += [event for event in feed(follower, status(0)) if isinstance(event, Unconfirmed)]
        sends += len(follower.due(0))
        follower.disconnected()
    assert (sends, given_up) == (MAX_SENDS, [Unconfirmed(client_msg_id="a")])
