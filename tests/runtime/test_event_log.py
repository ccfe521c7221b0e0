"""The numbered event log: merging, numbers, records and blocks."""

from functools import partial

import apsw
import pytest
import trio
from trio.testing import MockClock

from nerve.contract.generated.frames_server import (
    StoppedFrame,
    ToolUseFrame,
)
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.event_log import BLOCK, SAVE_SECONDS, TICK_SECONDS, SessionLog
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
    run_on_a_log,
    stored,
)


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
        assert await database.read(stored) == []
        assert SAVE_SECONDS < LATEST_SAVE
        await trio.sleep(LATEST_SAVE - TICK_SECONDS)
        assert [seq for seq, _ in await database.read(stored)] == [1]

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
        assert [seq for seq, _ in await database.read(stored)] == [1, 2, 3]

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
            await database.write(add_session)
            witness = Witness()
            async with life(database, witness) as living:
                living.log.delta(piece("token", "lost"))
                await trio.sleep(0.02)
            async with life(database, witness) as living:
                await living.log.record([StoppedFrame(session_id=SESSION)])
                assert [seq for _, seq, _ in witness.shown] == [1, BLOCK + 2]
                frames = await replayed(living, 0)
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
        assert [seq for seq, _ in await database.read(stored)] == [1, 2]

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
