"""The judges of the long proofs notice what they are there for."""

import orjson
import pytest

from tests.soak.quarantine import LoopBreaker
from tests.soak.records import Records, Turn
from tests.soak.witness import Witness


def _frame(kind: str, seq: int | None = None, **more: object) -> bytes:
    return orjson.dumps({"type": kind, "session_id": "s", **({} if seq is None else {"seq": seq}), **more})


def _turn(seq: int) -> list[bytes]:
    return [
        _frame("user_message", seq, content="Hello", client_msg_id=f"m{seq}"),
        _frame("token", seq + 1, content="Hi "),
        _frame("tool_use", seq + 2, tool_use_id="t"),
        _frame("tool_result", seq + 3, tool_use_id="t"),
        _frame("done", seq + 4),
    ]


def _witness(*frames: bytes) -> Witness:
    witness = Witness("s")
    for number, frame in enumerate(frames):
        witness.follow(frame, float(number))
    return witness


def test_a_sound_log_passes() -> None:
    witness = _witness(*_turn(1), _frame("gap", from_seq=6, to_seq=9), *_turn(10))
    witness.check_turns()
    assert witness.begun() == ["m1", "m10"]
    assert witness.ended() == 2
    assert witness.text_of_turn(10) == "Hi "
    assert witness.text_of_turn(10, until=0.0) == ""


@pytest.mark.parametrize(
    "frames",
    [
        [_frame("token", 1, content="a"), _frame("token", 3, content="b")],
        [_frame("token", 1, content="a"), _frame("token", 1, content="a")],
        [_frame("gap", from_seq=2, to_seq=3)],
        [_frame("gap", from_seq=1, to_seq=3, reset=True)],
        [_frame("token", 1, content="a"), _frame("session_status", last_seq=0)],
    ],
    ids=["missing", "repeated", "gap too far", "reset", "numbers went back"],
)
def test_a_broken_sequence_is_noticed(frames: list[bytes]) -> None:
    with pytest.raises(AssertionError):
        _witness(*frames)


def test_a_number_used_twice_is_noticed() -> None:
    witness = _witness(_frame("token", 1, content="a"))
    with pytest.raises(AssertionError, match="number 1 was"):
        witness.glance(_frame("token", 1, content="b"), 9.0)
    lost = _witness(_frame("gap", from_seq=1, to_seq=5))
    with pytest.raises(AssertionError, match="told as lost"):
        lost.glance(_frame("session_status", last_seq=9, buffered_events=[{"seq": 5, "type": "token"}]), 9.0)


@pytest.mark.parametrize(
    "frames",
    [
        [*_turn(1), *_turn(6)[1:]],
        [*_turn(1)[:-1], *(_frame("user_message", 5, client_msg_id="m"),)],
        [_turn(1)[0], _frame("tool_use", 2, tool_use_id="t"), _frame("done", 3)],
    ],
    ids=["no beginning", "no end", "open tool"],
)
def test_a_broken_turn_is_noticed(frames: list[bytes]) -> None:
    witness = Witness("s")
    for frame in frames:
        witness.glance(frame, 0.0)
    with pytest.raises(AssertionError):
        witness.check_turns()


def test_what_acknowledges_a_message() -> None:
    removed = [
        {"queue_id": "q", "client_msg_id": "b", "reason": "started"},
        {"queue_id": None, "client_msg_id": "c", "reason": "refused"},
    ]
    witness = _witness(_frame("queue_update", queue=[{"client_msg_id": "a"}], removed=removed))
    assert witness.acknowledged == {"a", "b"}
    assert witness.refused == {"c"}


def _records(cut_off: list[set[str]], quarantined: set[str]) -> Records:
    turns = [
        Turn(f"{n}{s}", s, "interrupted", f"{n}{s}", 1, f"2026-01-01T00:0{n}:01Z", 1, 1, "")
        for n, sessions in enumerate(cut_off)
        for s in sessions
    ]
    starts = tuple(f"2026-01-01T00:0{n}:00Z" for n in range(len(cut_off) + 1))
    return Records(turns=tuple(turns), waiting={}, quarantined=frozenset(quarantined), starts=starts)


def test_three_quick_deaths_in_a_row_set_a_session_aside() -> None:
    breaker = LoopBreaker()
    deaths = [{"a", "b"}, {"a"}, {"a", "b"}]
    breaker.restarted(_records(deaths[:1], set()))
    breaker.restarted(_records(deaths[:2], set()))
    breaker.restarted(_records(deaths, {"a"}))
    breaker.lifted("a")
    with pytest.raises(AssertionError, match="set aside are"):
        breaker.restarted(_records([*deaths, {"a"}], set()))


def test_records_notice_a_message_that_ran_twice_and_a_turn_left_open() -> None:
    begun = "2026-01-01T00:00:01Z"
    sound = Turn("t1", "s", "completed", "m", 1, begun, 1, 1, "")
    twice = Turn("t2", "s", "completed", "m", 5, begun, 1, 1, "")
    left_open = Turn("t3", "s", "running", "n", 9, begun, 1, 0, None)
    starts = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")
    Records((sound,), {}, frozenset(), starts).check()
    for turns, waiting in [((sound, twice), {}), ((sound, left_open), {}), ((sound,), {"s": ["m"]})]:
        with pytest.raises(AssertionError):
            Records(turns, waiting, frozenset(), starts).check()
