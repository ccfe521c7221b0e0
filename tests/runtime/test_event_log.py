"""The numbered event log under every interleaving of pieces, records, pauses and crashes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import apsw
import orjson
import pytest
import trio
from attrs import define, field
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from nerve.contract.generated.frames_server import (
    LoggedFrame,
    StoppedFrame,
    ThinkingFrame,
    TokenFrame,
    ToolOutputFrame,
    ToolUseFrame,
)
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.backends import Backends
from nerve.runtime.binding import Binding
from nerve.runtime.event_log import BLOCK, SAVE_SECONDS, TICK_SECONDS, SessionLog
from nerve.runtime.house import House
from nerve.runtime.hub import Hub
from nerve.runtime.outbox import Outbox
from nerve.runtime.supervisor import Supervisor, open_supervisor
from nerve.store.inline import InlineDatabase, open_inline
from tests.sessions.session_house import now

SESSION = "s"
LATEST_SAVE = 0.25
SLACK = 0.001


def _add_session(db: apsw.Connection) -> None:
    db.execute(
        "INSERT INTO sessions (id, title, source, status, backend, cwd, created_at, updated_at)"
        " VALUES (?1, ?1, 'web', 'idle', 'scripted', '/', 'x', 'x')",
        (SESSION,),
    )


def _stored(db: apsw.Connection) -> list[tuple[int, str]]:
    return list(db.execute("SELECT seq, frame FROM frames ORDER BY seq"))


@define(eq=False)
class Witness:
    """Bound to the session; keeps what it is shown and when."""

    account_id: str | None = None
    shown: list[tuple[float, int, dict[str, Any]]] = field(factory=list)

    def deliver(self, data: bytes, seq: int | None = None) -> None:
        assert seq is not None
        frame = orjson.loads(data)
        assert frame["seq"] == seq
        self.shown.append((trio.current_time(), seq, frame))

    def close(self, code: int, reason: str = "") -> None:
        raise AssertionError("nothing here closes a socket")


@define(eq=False)
class Life:
    """One process: what it was given to say, up to its crash."""

    supervisor: Supervisor
    log: SessionLog
    witness: Witness
    said: list[tuple[str, str]] = field(factory=list)  # kind with tool, and the piece


@asynccontextmanager
async def life(database: InlineDatabase, witness: Witness) -> AsyncIterator[Life]:
    """Leaving it is a crash: nothing is flushed."""
    hub = Hub()
    hub.bind(witness, SESSION)
    house = House(database, hub, Effects(now=now), Backends("scripted", {}))
    async with open_supervisor(house) as supervisor, trio.open_nursery() as nursery:
        log = await supervisor.logs.hold(SESSION)
        nursery.start_soon(log.run)
        yield Life(supervisor, log, witness)
        nursery.cancel_scope.cancel()


def piece(kind: str, text: str) -> TokenFrame | ThinkingFrame | ToolOutputFrame:
    match kind:
        case "token":
            return TokenFrame(session_id=SESSION, content=text)
        case "thinking":
            return ThinkingFrame(session_id=SESSION, content=text)
        case _:
            return ToolOutputFrame(session_id=SESSION, tool_use_id=kind, content=text)


def nothing_more(db: apsw.Connection) -> None:
    """No bounds to trim to."""


def kind_of(frame: dict[str, Any]) -> str:
    return str(frame["tool_use_id"]) if frame["type"] == "tool_output" else str(frame["type"])


KINDS = ("token", "thinking", "t1", "t2")
Action = tuple[Any, ...]
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(KINDS), st.integers(1, 4)),
        st.tuples(st.just("record"), st.integers(0, 3)),
        st.tuples(st.just("end")),
        st.tuples(st.just("pause"), st.sampled_from([0.0, 0.005, 0.02, 0.09, 0.3])),
        st.tuples(st.just("crash")),
    ),
    max_size=25,
)


async def play_log(actions: list[Action]) -> None:
    with open_inline() as database:
        await database.write(_add_session)
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
    on_disk = dict(await database.read(_stored))
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
            for frame in await _replayed(living, after):
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


async def _replayed(living: Life, after: int) -> list[dict[str, Any]]:
    outbox = Outbox()
    binding = await Binding.bind(living.supervisor, outbox, SESSION)
    binding.attach()
    await binding.replay(after)
    binding.release()
    outbox.close(1000)
    frames = []
    while (data := await outbox.next()) is not None:
        frames.append(orjson.loads(data))
        outbox.taken()
    return frames


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ACTIONS)
def test_numbers_records_and_returns_under_any_interleaving(actions: list[Action]) -> None:
    trio.run(play_log, actions, clock=MockClock(autojump_threshold=0))


def run_on_a_log(fn: Any) -> None:
    async def main() -> None:
        with open_inline() as database:
            await database.write(_add_session)
            async with life(database, Witness()) as living:
                await fn(database, living)

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_pieces_go_out_with_the_next_tick_and_to_disk_within_a_quarter_second() -> None:
    async def check(database: InlineDatabase, living: Life) -> None:
        started = trio.current_time()
        living.log.delta(piece("token", "a"))
        living.log.delta(piece("token", "b"))
        assert living.witness.shown == []
        await trio.sleep(TICK_SECONDS + SLACK)
        ((when, seq, frame),) = living.witness.shown
        assert when - started <= 0.02
        assert (seq, frame["content"]) == (1, "ab")
        assert await database.read(_stored) == []
        assert SAVE_SECONDS < LATEST_SAVE
        await trio.sleep(LATEST_SAVE - TICK_SECONDS)
        assert [seq for seq, _ in await database.read(_stored)] == [1]

    run_on_a_log(check)


def test_only_pieces_of_one_kind_and_tool_in_a_row_are_merged() -> None:
    async def check(database: InlineDatabase, living: Life) -> None:
        for kind in ("token", "token", "thinking", "token", "t1", "t1", "t2", "t1"):
            living.log.delta(piece(kind, "x"))
        await trio.sleep(0.02)
        assert [(kind_of(f), f["content"]) for _, _, f in living.witness.shown] == [
            ("token", "xx"),
            ("thinking", "x"),
            ("token", "x"),
            ("t1", "xx"),
            ("t2", "x"),
            ("t1", "x"),
        ]

    run_on_a_log(check)


def test_nothing_is_merged_across_a_recorded_frame() -> None:
    async def check(database: InlineDatabase, living: Life) -> None:
        living.log.delta(piece("token", "before"))
        await living.log.record([ToolUseFrame(session_id=SESSION, tool="Bash", input={}, tool_use_id="t")])
        living.log.delta(piece("token", "after"))
        await living.log.flush()
        assert [f.get("content", f["type"]) for _, _, f in living.witness.shown] == ["before", "tool_use", "after"]
        assert [seq for seq, _ in await database.read(_stored)] == [1, 2, 3]

    run_on_a_log(check)


def test_a_block_is_reserved_before_its_first_number_is_shown() -> None:
    async def check(database: InlineDatabase, living: Life) -> None:
        reserved = partial(database.read, lambda db: db.execute("SELECT seq_reserved FROM sessions").fetchall())
        assert await reserved() == [(0,)]
        living.log.delta(piece("token", "a"))
        await trio.sleep(0.02)
        assert await reserved() == [(1 + BLOCK,)]
        # The unused rest is given back at the end of a turn, and what is shown next goes on from there.
        await living.log.record([StoppedFrame(session_id=SESSION)], at_end=nothing_more)
        assert await reserved() == [(2,)]
        await living.log.record([StoppedFrame(session_id=SESSION)])
        assert await reserved() == [(3,)]
        assert [seq for _, seq, _ in living.witness.shown] == [1, 2, 3]

    run_on_a_log(check)


def test_more_pieces_than_a_block_has_numbers_come_while_it_is_reserved() -> None:
    async def check(database: InlineDatabase, living: Life) -> None:
        def many() -> None:
            for n in range(BLOCK):
                living.log.delta(piece(("token", "thinking")[n % 2], f"{n}|"))

        living.log.delta(piece("thinking", "first|"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(living.log.flush)
            await trio.lowlevel.checkpoint()
            many()
            many()
        await living.log.flush()
        await living.log.flush()
        numbers = [seq for _, seq, _ in living.witness.shown]
        assert numbers == list(range(1, 2 * BLOCK + 2))
        words = [frame["content"] for _, _, frame in living.witness.shown]
        assert words == ["first|", *[f"{n}|" for n in range(BLOCK)] * 2]

    run_on_a_log(check)


def test_after_a_crash_numbers_go_on_above_the_block() -> None:
    async def main() -> None:
        with open_inline() as database:
            await database.write(_add_session)
            witness = Witness()
            async with life(database, witness) as living:
                living.log.delta(piece("token", "lost"))
                await trio.sleep(0.02)
            async with life(database, witness) as living:
                await living.log.record([StoppedFrame(session_id=SESSION)])
                assert [seq for _, seq, _ in witness.shown] == [1, BLOCK + 2]
                frames = await _replayed(living, 0)
            assert [(f["type"], f.get("from_seq"), f.get("to_seq")) for f in frames] == [
                ("gap", 1, BLOCK + 1),
                ("stopped", None, None),
            ]

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_a_write_that_fails_shows_nothing_and_takes_no_number() -> None:
    async def check(database: InlineDatabase, living: Life) -> None:
        def refuse(db: apsw.Connection) -> None:
            db.execute("INSERT INTO instance (key, value) VALUES ('k', 'v')")
            raise NerveError(ErrorCode.STORE_FULL)

        living.log.delta(piece("token", "a"))
        with pytest.raises(NerveError):
            await living.log.record([StoppedFrame(session_id=SESSION)], refuse)
        assert [f["type"] for _, _, f in living.witness.shown] == ["token"]
        assert await database.read(lambda db: db.execute("SELECT * FROM instance").fetchall()) == []
        await living.log.record([StoppedFrame(session_id=SESSION)])
        assert [seq for _, seq, _ in living.witness.shown] == [1, 2]
        assert [seq for seq, _ in await database.read(_stored)] == [1, 2]

    run_on_a_log(check)


def test_a_cancelled_record_did_not_happen() -> None:
    async def check(database: InlineDatabase, living: Life) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await living.log.record([StoppedFrame(session_id=SESSION)])
        assert scope.cancelled_caught
        assert living.witness.shown == []
        await living.log.record([StoppedFrame(session_id=SESSION)])
        assert [seq for _, seq, _ in living.witness.shown] == [1]

    run_on_a_log(check)


def test_one_log_per_session_whoever_holds_it() -> None:
    async def check(database: InlineDatabase, living: Life) -> None:
        logs = living.supervisor.logs
        held: list[SessionLog] = []

        async def hold() -> None:
            held.append(await logs.hold(SESSION))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(hold)
        assert {id(log) for log in held} == {id(living.log)}
        with pytest.raises(NerveError) as error:
            await logs.hold("nowhere")
        assert error.value.code is ErrorCode.SESSION_NOT_FOUND
        assert logs.last_seq("nowhere") is None
        for _ in range(5):
            logs.drop(SESSION)
        assert logs.last_seq(SESSION) == 0
        logs.drop(SESSION)
        assert logs.last_seq(SESSION) is None
        await logs.hold(SESSION)

    run_on_a_log(check)
