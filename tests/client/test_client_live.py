"""A session that is followed over connections that a script opens, holds and drops, on the test's own clock."""

from collections.abc import Callable

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from nerve.client.errors import SessionGone, SocketEnded, TurnLost, TurnRefused
from nerve.client.following import CaughtUp, Disconnected, LiveEvent, Unconfirmed
from nerve.client.live import ANSWER_SECONDS, MAX_MESSAGE_BYTES, SILENCE_SECONDS, LiveSession
from nerve.contract.generated.frames_client import ClientFrame, MessageFrame, PingFrame
from tests.client.frames import frame, message, removed, status, token
from tests.client.lines import LOST, PONG, Line, SilentLine, server


async def take(live: LiveSession, until: Callable[[LiveEvent], bool]) -> list[LiveEvent]:
    events = []
    async for event in live:
        events.append(event)
        if until(event):
            return events
    raise AssertionError(f"it ended: {events}")


def numbers(events: list[LiveEvent]) -> list[int]:
    return [seq for event in events if isinstance(seq := getattr(event, "seq", None), int)]


async def test_a_lost_line_is_found_again_and_nothing_comes_twice(autojump_clock: MockClock) -> None:
    first = Line([status(4), token(5), token(6), LOST])
    second = Line([status(9), token(6), token(7), frame("gap", from_seq=8, to_seq=8), token(9), token(10)])
    house = server(first, second)
    async with house.follow() as live:
        events = await take(live, lambda event: getattr(event, "seq", None) == 10)
    assert numbers(events) == [5, 6, 7, 9, 10]
    assert [type(event).__name__ for event in events if not hasattr(event, "type")] == [
        "CaughtUp",
        "Disconnected",
        "CaughtUp",
    ]
    assert [line.bound for line in house.opened] == [("main", None), ("main", 6)]


async def test_the_waits_between_attempts_grow_to_a_bound_and_are_never_the_same_for_all(
    autojump_clock: MockClock,
) -> None:
    waits: list[list[float]] = []
    for seed in (1, 2):
        house = server()
        async with house.follow(seed=seed) as live:
            lost = [await anext(live) for _ in range(8)]
        assert all(isinstance(event, Disconnected) and event.reason == "nobody is there" for event in lost)
        told = [event.retry_seconds for event in lost if isinstance(event, Disconnected)]
        taken = [later - earlier for earlier, later in zip(house.attempts, house.attempts[1:], strict=False)]
        assert taken == pytest.approx(told[: len(taken)])
        for wait, whole in zip(told, [1, 2, 4, 8, 8, 8, 8, 8], strict=True):
            assert whole / 2 <= wait <= whole
        waits.append(told)
    assert waits[0] != waits[1]


async def test_a_good_connection_makes_the_next_wait_short_again(autojump_clock: MockClock) -> None:
    short = [Line([status(1), LOST]) for _ in range(4)]
    house = server(*short)
    async with house.follow() as live:
        events = [await anext(live) for _ in range(12)]
    lost = [event.retry_seconds for event in events if isinstance(event, Disconnected)]
    assert lost[3] > 4 >= lost[0]
    steady = Line([status(1)])
    house = server(Line([status(1), LOST]), Line([status(1), LOST]), steady)
    async with house.follow() as live:
        await take(live, lambda event: isinstance(event, CaughtUp) and len(house.opened) == 3)
        await trio.sleep(11)
        steady.drop()
        steady.say(PONG)
        lost_again = await take(live, lambda event: isinstance(event, Disconnected))
    assert isinstance(lost_again[-1], Disconnected)
    assert lost_again[-1].retry_seconds <= 1


@pytest.mark.parametrize("code", [4001, 1008])
async def test_two_close_codes_are_the_end(code: int, autojump_clock: MockClock) -> None:
    house = server(Line([status(1), SocketEnded("closed", code)]), Line([status(1)]))
    async with house.follow() as live:
        with pytest.raises(SocketEnded) as ended:
            await take(live, lambda event: False)
        assert ended.value.code == code
        await trio.sleep(3600)
    assert len(house.opened) == 1


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1006, 1009, 1011, 1012, 1013, 4000, None])
async def test_no_other_one_is(code: int | None, autojump_clock: MockClock) -> None:
    house = server(Line([status(1), SocketEnded("closed", code)]), Line([status(1)]))
    async with house.follow() as live:
        events = await take(live, lambda event: isinstance(event, CaughtUp) and not event.first)
    assert [event.code for event in events if isinstance(event, Disconnected)] == [code]


async def test_a_session_that_is_gone_is_the_end_too(autojump_clock: MockClock) -> None:
    house = server(Line([frame("error", error="session_not_found")]))
    async with house.follow() as live:
        with pytest.raises(SessionGone):
            await take(live, lambda event: False)


async def test_a_silent_line_is_asked_and_then_given_up(autojump_clock: MockClock) -> None:
    silent = SilentLine([status(1)])
    house = server(silent, Line([status(1)]))
    async with house.follow() as live:
        events = await take(live, lambda event: isinstance(event, Disconnected))
        assert isinstance(events[-1], Disconnected)
        assert events[-1].reason == "the server is silent"
        assert trio.current_time() == pytest.approx(SILENCE_SECONDS + ANSWER_SECONDS)
    assert silent.sent == [PingFrame()]


async def test_a_quiet_line_that_answers_is_kept(autojump_clock: MockClock) -> None:
    quiet = Line([status(1)])
    house = server(quiet)
    async with house.follow() as live:
        await take(live, lambda event: isinstance(event, CaughtUp))
        with trio.move_on_after(3600):
            raise AssertionError(await anext(live))
    assert len(house.opened) == 1
    assert quiet.sent.count(PingFrame()) > 60


async def test_a_line_that_never_catches_up_is_given_up(autojump_clock: MockClock) -> None:
    house = server(SilentLine([status(9), token(3)]), Line([status(1)]))
    async with house.follow(2) as live:
        await take(live, lambda event: isinstance(event, Disconnected))
    assert house.opened[0].sent == []


async def test_one_can_come_back_without_waiting(autojump_clock: MockClock) -> None:
    house = server(Line([status(1), LOST]), Line([status(1)]))
    async with house.follow() as live:
        await take(live, lambda event: isinstance(event, Disconnected))
        before = trio.current_time()
        live.retry_now()
        await take(live, lambda event: isinstance(event, CaughtUp))
        assert trio.current_time() == before


async def test_the_cursor_is_that_of_what_was_given_out(autojump_clock: MockClock) -> None:
    buffered = [{"type": "token", "session_id": "main", "content": "a", "seq": seq} for seq in (7, 8)]
    line = Line(
        [status(9, running=True, buffered=buffered), token(10), frame("gap", from_seq=11, to_seq=12), token(13)]
    )
    async with server(line).follow() as live:
        await trio.testing.wait_all_tasks_blocked()
        assert live.cursor is None
        cursors = []
        for _ in range(7):
            event = await anext(live)
            cursors.append((type(event).__name__, live.cursor))
    assert cursors == [
        ("SessionStatusFrame", None),
        ("TokenFrame", 7),
        ("TokenFrame", 8),
        ("CaughtUp", 9),
        ("TokenFrame", 10),
        ("GapFrame", 12),
        ("TokenFrame", 13),
    ]


# --- messages -----------------------------------------------------------------------------------------------------


async def test_an_unacknowledged_message_goes_out_again_with_its_id(autojump_clock: MockClock) -> None:
    first, second, third = Line([status(1)]), Line([status(1)]), Line([status(1)])
    house = server(first, second, third)
    async with house.follow() as live:
        sent = live.send("hello")
        await trio.testing.wait_all_tasks_blocked()
        assert [one.client_msg_id for one in first.messages] == [sent]
        first.drop()
        await take(live, lambda event: isinstance(event, CaughtUp) and not event.first)
        await trio.testing.wait_all_tasks_blocked()
        assert [(one.client_msg_id, one.content) for one in second.messages] == [(sent, "hello")]
        second.say(removed(sent, "started"))
        await trio.testing.wait_all_tasks_blocked()
        assert live.unconfirmed == ()
        second.drop()
        await take(live, lambda event: isinstance(event, Disconnected))
        await take(live, lambda event: isinstance(event, CaughtUp))
        await trio.testing.wait_all_tasks_blocked()
    assert third.messages == []


async def test_what_is_said_while_the_line_is_lost_goes_out_when_it_is_back(autojump_clock: MockClock) -> None:
    deaf, back = Line([status(1), LOST]), Line([status(1)])
    house = server(deaf, back)
    async with house.follow() as live:
        await take(live, lambda event: isinstance(event, Disconnected))
        sent = [live.send("one"), live.send("two")]
        await take(live, lambda event: isinstance(event, CaughtUp))
        await trio.testing.wait_all_tasks_blocked()
    assert [one.client_msg_id for one in back.messages] == sent


@pytest.mark.parametrize("content", ["", "x" * MAX_MESSAGE_BYTES])
async def test_what_no_server_would_read_is_not_sent(content: str, autojump_clock: MockClock) -> None:
    async with server(Line([status(1)])).follow() as live:
        with pytest.raises(ValueError, match=r"content|bytes"):
            live.send(content)
        assert live.unconfirmed == ()


async def test_a_turn_goes_on_over_a_lost_line(autojump_clock: MockClock) -> None:
    agent = Line([status(1)])
    back = Line([status(4, running=True), token(4, "b"), token(5, "c"), frame("done", 6)])
    house = server(agent, back)
    async with house.follow() as live:
        texts = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_begin_and_drop, agent)
            async for one in live.turn("hello"):
                texts.append(getattr(one, "content", one.type))
    assert texts == ["a", "b", "c", "done"]


async def _begin_and_drop(line: Line) -> None:
    await line.spoken_to.wait()
    line.say(removed(str(line.messages[0].client_msg_id), "started"), token(3, "a"))
    await trio.testing.wait_all_tasks_blocked()
    line.drop()


async def test_a_turn_whose_end_is_gone_is_lost(autojump_clock: MockClock) -> None:
    agent = Line([status(1)])
    house = server(agent, Line([status(900), frame("gap", from_seq=4, to_seq=900)]))
    async with house.follow() as live, trio.open_nursery() as nursery:
        nursery.start_soon(_begin_and_drop, agent)
        with pytest.raises(TurnLost):
            async for _ in live.turn("hello"):
                pass


async def test_a_refused_message_says_why(autojump_clock: MockClock) -> None:
    class Full(Line):
        def answer(self, frame_: ClientFrame) -> None:
            if isinstance(frame_, MessageFrame):
                sent = str(frame_.client_msg_id)
                self.say(removed(sent, "refused"), frame("error", error="Too many messages wait.", client_msg_id=sent))

    async with server(Full([status(1)])).follow() as live:
        with pytest.raises(TurnRefused, match="Too many messages wait"):
            async for _ in live.turn("hello"):
                pass


async def test_a_message_that_kills_every_line_is_given_up(autojump_clock: MockClock) -> None:
    class Fragile(Line):
        def answer(self, frame_: ClientFrame) -> None:
            if isinstance(frame_, MessageFrame):
                self.drop(SocketEnded("frame too big", 1009))

    lines = [Fragile([status(1)]) for _ in range(9)]
    async with server(*lines).follow() as live:
        sent = live.send("hello")
        events = await take(live, lambda event: isinstance(event, Unconfirmed))
    assert events[-1] == Unconfirmed(client_msg_id=sent)
    assert sum(len(line.messages) for line in lines) == 5


async def test_an_own_message_that_comes_back_in_a_replay_starts_its_turn(autojump_clock: MockClock) -> None:
    first = Line([status(1)])
    second = Line([])
    house = server(first, second)
    async with house.follow() as live, trio.open_nursery() as nursery:

        async def drop_unseen() -> None:
            await first.spoken_to.wait()
            sent = str(first.messages[0].client_msg_id)
            second.says += [status(3, running=True), message(2, sent), token(3), frame("done", 4)]
            first.drop()

        nursery.start_soon(drop_unseen)
        kinds = [one.type async for one in live.turn("hello")]
    assert kinds == ["token", "done"]
    assert second.messages == []
