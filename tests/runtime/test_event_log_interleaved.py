"""The numbered event log under every interleaving of pieces, records, pauses and crashes."""

from itertools import groupby, pairwise
from typing import Any

import orjson
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from nerve.contract.generated.frames_server import (
    LoggedFrame,
    StoppedFrame,
    ToolUseFrame,
)
from nerve.store.inline import InlineDatabase, open_inline
from tests.runtime.log_life import (
    LATEST_SAVE,
    SESSION,
    SLACK,
    Life,
    Witness,
    add_session,
    kind_of,
    life,
    nothing_more,
    piece,
    replayed,
    stored,
)

KINDS = ("token", "thinking", "t1", "t2")
Action = tuple[Any, ...]
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(KINDS), st.integers(1, 4)),
        st.tuples(st.just("record"), st.integers(1, 3)),
        st.tuples(st.just("end")),
        st.tuples(st.just("pause"), st.sampled_from([0.0, 0.005, 0.02, 0.09, 0.3])),
        st.tuples(st.just("crash")),
    ),
    max_size=25,
)


async def play_log(actions: list[Action]) -> None:
    with open_inline() as database:
        await database.write(add_session)
        witness, begun = Witness(), 0
        rest = list(actions)
        while True:
            async with life(database, witness) as living:
                crashed = await _live(living, rest)
                at = trio.current_time()
            await _check_life(database, witness, living, begun, at)
            begun = len(witness.shown)
            if not crashed:
                break
        _check_numbers(witness)
        await _check_returns(database, witness)


async def _live(living: Life, rest: list[Action]) -> bool:
    count = 0
    while rest:
        match rest.pop(0):
            case ("say", kind, times):
                for _ in range(times):
                    count += 1
                    text = f"{count}|"
                    living.said.append((kind, text))
                    living.log.delta(piece(kind, text))
            case ("record", number):
                frames: list[LoggedFrame] = []
                for _ in range(number):
                    count += 1
                    living.said.append(("tool_use", f"{count}|"))
                    frames.append(ToolUseFrame(session_id=SESSION, tool=f"{count}|", input={}, tool_use_id="t"))
                await living.log.record(frames)
            case ("end",):
                living.said.append(("stopped", ""))
                await living.log.record([StoppedFrame(session_id=SESSION)], at_end=nothing_more)
            case ("pause", seconds):
                await trio.sleep(seconds)
            case ("crash",):
                return True
    return False


async def _check_life(database: InlineDatabase, witness: Witness, living: Life, begun: int, at: float) -> None:
    """What was shown is a beginning of what was said, in order; all but the newest of it is on disk."""
    shown = witness.shown[begun:]
    heard: list[tuple[str, str]] = []
    for _, _, frame in shown:
        match frame["type"]:
            case "tool_use":
                heard.append(("tool_use", frame["tool"]))
            case "stopped":
                heard.append(("stopped", ""))
            case _:
                heard += [(kind_of(frame), f"{word}|") for word in frame["content"].split("|")[:-1]]
    assert heard == living.said[: len(heard)]
    assert heard or not any(kind in ("tool_use", "stopped") for kind, _ in living.said)
    on_disk = dict(await database.read(stored))
    for when, seq, frame in shown:
        early = when < at - LATEST_SAVE - SLACK
        if early or frame["type"] in ("tool_use", "stopped"):
            assert seq in on_disk, f"{seq} was shown and is lost"
        assert seq not in on_disk or orjson.loads(on_disk[seq]) == frame
    # What goes out at one moment is merged as far as it may be.
    for _, together in groupby(shown, key=lambda entry: entry[0]):
        for (_, _, one), (_, _, next_one) in pairwise(together):
            deltas = {one["type"], next_one["type"]} <= {"token", "thinking", "tool_output"}
            assert not deltas or kind_of(one) != kind_of(next_one)


def _check_numbers(witness: Witness) -> None:
    numbers = [seq for _, seq, _ in witness.shown]
    assert all(before < after for before, after in pairwise(numbers))


async def _check_returns(database: InlineDatabase, witness: Witness) -> None:
    """Whoever comes back, with any number that was ever shown, gets each frame or a gap that covers it."""
    shown = {seq: frame for _, seq, frame in witness.shown}
    async with life(database, Witness()) as living:
        last = living.log.last_seq
        assert last >= max(shown, default=0)
        for after in sorted({0, *shown, last}):
            covered = after
            for frame in await replayed(living, after):
                if frame["type"] == "gap":
                    assert "reset" not in frame
                    assert frame["from_seq"] == covered + 1
                    assert frame["to_seq"] >= frame["from_seq"]
                    covered = frame["to_seq"]
                else:
                    assert frame["seq"] == covered + 1
                    assert shown.get(frame["seq"], frame) == frame
                    covered = frame["seq"]
            assert covered == last


@pytest.mark.slow
@settings(max_examples=150)
@given(ACTIONS)
def test_numbers_records_and_returns_under_any_interleaving(actions: list[Action]) -> None:
    trio.run(play_log, actions, clock=MockClock(autojump_threshold=0))
