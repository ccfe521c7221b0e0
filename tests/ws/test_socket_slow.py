"""A client that does not read: it is dropped, and nobody else notices (decisions D18)."""

import pytest
import trio
import trio.testing

from nerve.adapters.protocol import TextAdded, ToolFinished, ToolStarted
from nerve.runtime.outbox import FEED_BYTES, MAX_LIVE_BYTES, Outbox
from tests.asgi_client import Closed
from tests.runtime.puppets import COMPLETED, Puppet, puppets
from tests.runtime.tabs import numbers, tab, text
from tests.sessions.session_house import House, play

KILOBYTE = "x" * 1024


def pour(puppet: Puppet, kilobytes: int) -> None:
    for n in range(kilobytes // 64):
        puppet.say(ToolStarted(f"t{n}", "Bash", {}), ToolFinished(f"t{n}", KILOBYTE * 64))


@pytest.mark.req("WS-74")
async def test_a_mebibyte_that_waits_ends_the_socket_and_nothing_else(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id, window=4) as slow:
        await alice.say(session_id, "pour")
        puppet = await adapter.prompted()
        puppet.say(TextAdded("first "))
        await alice.until("token")
        before = trio.current_time()
        pour(puppet, 2048)
        puppet.say(TextAdded("last"), COMPLETED)
        frames = await alice.turn()
        assert trio.current_time() - before < 1, "the turn waited for a reader"
        assert text(frames) == "last"
        assert numbers(alice.frames) == list(range(2, numbers(frames)[-1] + 1))
        closed = await slow.socket.expect_close()
        assert closed == Closed(1013, "too slow")
        # It comes back with its last number and has everything.
        async with tab(house.bob, session_id, after_seq=1) as back:
            assert numbers(await back.until("done")) == numbers(alice.frames)


@pytest.mark.req("WS-74")
async def test_a_reader_with_too_much_waiting_is_gone_two_seconds_later(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id, window=3) as deaf:
        await alice.say(session_id, "pour")
        puppet = await adapter.prompted()
        pour(puppet, 2048)
        await alice.quiet(0.5)
        assert len(house.services.hub) == 2
        await trio.sleep(2)  # not ten: what it was being sent when it was too much does not get its own time
        assert len(house.services.hub) == 1
        puppet.say(COMPLETED)
        await alice.turn()
        deaf.socket.disconnect()


async def test_ten_seconds_without_progress_end_the_socket(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id, window=3) as slow:
        await alice.say(session_id, play("- say: hi"))
        await alice.turn()
        await trio.sleep(11.5)
        assert len(house.services.hub) == 2
        await trio.sleep(1)  # ten seconds, and two for a close that can't go out
        assert len(house.services.hub) == 1
        await alice.say(session_id, play("- say: hi"))
        assert text(await alice.turn()) == "hi"
        slow.socket.disconnect()


async def test_a_client_that_reads_slowly_and_steadily_stays(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id, window=1) as slow:
        await alice.say(session_id, play(*[f"- tool: T{n}" for n in range(4)]))
        await alice.turn()
        seen = []
        while not seen or seen[-1]["type"] != "done":
            await trio.sleep(9)
            seen.append(await slow.socket.receive_json())
        assert numbers(seen) == list(range(1, 11))


@pytest.mark.req("WS-45")
async def test_a_snapshot_and_a_replay_are_fed_at_the_readers_pace(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "pour")
        puppet = await adapter.prompted()
        pour(puppet, 3072)
        await alice.quiet()
        async with tab(house.bob, session_id, window=1) as slow:
            assert len(slow.greeting[-1]["buffered_events"]) == len(numbers(alice.frames)) + 1
            await slow.send("switch_session", session_id=session_id, after_seq=0)
            await slow.until("session_status")
            seen = []
            while len(seen) < 40:
                await trio.sleep(5)
                seen.append(await slow.socket.receive_json())
            # What came up meanwhile, also what is live, is in its place.
            puppet.say(TextAdded("live"))
            seen += await slow.until("token")
        assert numbers(seen) == list(range(1, numbers(seen)[-1] + 1))
        puppet.say(COMPLETED)
        await alice.turn()


async def test_what_a_client_asks_for_and_does_not_read_is_bounded(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "pour")
        puppet = await adapter.prompted()
        pour(puppet, 3072)
        await alice.quiet()
        async with tab(house.bob, session_id, window=1) as greedy:
            for _ in range(100):
                await greedy.send("switch_session", session_id=session_id)
                await greedy.send("ping")
            outbox = next(reversed(house.services.hub._all))
            assert isinstance(outbox, Outbox)
            await trio.sleep(5)
            assert outbox._fed_bytes < 8 * 1024 * 1024
            await trio.sleep(15)
            assert len(house.services.hub) == 1
            greedy.socket.disconnect()
        puppet.say(COMPLETED)
        await alice.turn()


# --- the outbox itself ------------------------------------------------------------------------------------------------


async def drained(outbox: Outbox) -> list[bytes]:
    outbox.close(1000)
    found = []
    while (data := await outbox.next()) is not None:
        found.append(data)
        outbox.taken()
    return found


async def test_numbers_that_were_read_already_are_passed_over() -> None:
    outbox = Outbox()
    outbox.deliver(b"1", 1)  # while a replay reads the log
    outbox.deliver(b"state")
    outbox.cursor = 2
    for seq in (1, 2, 3, 3, 4):
        outbox.deliver(str(seq).encode(), seq)
    assert await drained(outbox) == [b"state", b"3", b"4"]


async def test_the_first_close_counts_and_what_waits_goes_out_before_it() -> None:
    outbox = Outbox()
    outbox.put(b"a")
    outbox.deliver(b"b")
    outbox.close(1008, "first")
    outbox.close(1012, "second")
    outbox.put(b"c")
    outbox.deliver(b"d")
    assert outbox.closing == (1008, "first")
    assert await drained(outbox) == [b"a", b"b"]


async def test_live_bytes_count_until_they_are_taken() -> None:
    outbox = Outbox()
    quarter = b"x" * (MAX_LIVE_BYTES // 4)
    for _ in range(4):
        outbox.deliver(quarter)
    assert outbox.closing is None
    await outbox.next()
    outbox.taken()
    outbox.deliver(quarter)
    assert outbox.closing is None
    await outbox.next()  # on its way, and still waiting
    outbox.deliver(quarter)
    assert outbox.closing == (1013, "too slow")
    assert await drained(outbox) == []
    outbox.taken()  # what was on its way has gone out after all


async def test_a_great_frame_makes_nobody_slow_but_many_do() -> None:
    outbox = Outbox()
    for _ in range(3):
        outbox.deliver(b"x" * (2 * MAX_LIVE_BYTES))
        outbox.deliver(b"small")
    assert outbox.closing is None
    for _ in range(2):
        outbox.deliver(b"x" * (2 * MAX_LIVE_BYTES))
    assert outbox.closing is not None


async def test_what_is_fed_is_no_reason_to_close() -> None:
    outbox = Outbox()
    for _ in range(8):
        outbox.put(b"x" * MAX_LIVE_BYTES)
    outbox.deliver(b"live")
    assert outbox.closing is None
    assert len(await drained(outbox)) == 9


async def test_room_is_waited_for_by_as_many_as_like() -> None:
    outbox = Outbox()
    for _ in range(4):
        outbox.put(b"x" * FEED_BYTES)
    passed: list[int] = []

    async def wait(limit: int) -> None:
        await outbox.room(limit)
        passed.append(limit // FEED_BYTES)

    async with trio.open_nursery() as nursery:
        for limit in (1, 2, 3, 3):
            nursery.start_soon(wait, limit * FEED_BYTES)
        await trio.testing.wait_all_tasks_blocked()
        assert passed == []
        for expected in ([3, 3], [3, 3, 2], [3, 3, 2, 1]):
            await outbox.next()
            outbox.taken()
            await trio.testing.wait_all_tasks_blocked()
            assert passed == expected


async def test_closing_lets_everybody_go() -> None:
    outbox = Outbox()
    outbox.put(b"x" * (2 * FEED_BYTES))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.room)
        await trio.testing.wait_all_tasks_blocked()
        outbox.close(1000)
    await outbox.next()
    outbox.taken()
    assert await outbox.next() is None
    assert await outbox.next() is None
