"""Interactions, forks and resuming over connections that come and go; and pings that nobody waits for."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked
from trio_websocket import WebSocketRequest, serve_websocket

from nerve.client import CaughtUp, Disconnected, LiveEvent, Unanswered, open_socket
from nerve.client.asking import REMEMBERED
from nerve.client.following import Follower
from nerve.client.sending import MAX_SENDS, MAX_WAITING, RESEND_SECONDS
from nerve.client.socket import UNREAD_FRAMES
from nerve.contract import codec
from nerve.contract.generated.frames_client import AnswerInteractionFrame, ForkFrame, MessageFrame, ResumeFrame
from nerve.contract.generated.frames_server import InteractionFrame, ServerFrame
from tests.client.frames import asked, frame, resolved, status, token
from tests.client.lines import LOST, Line, server
from tests.contract.spec_reader import frame_complaints

NOT_FOUND = frame("error", error="interaction_not_found")


def feed(follower: Follower, *frames: ServerFrame) -> list[LiveEvent]:
    return [event for one in frames for event in follower.receive(one, 0.0)]


def asks(events: list[LiveEvent]) -> list[str]:
    return [event.interaction_id for event in events if isinstance(event, InteractionFrame)]


def answer(interaction_id: str) -> AnswerInteractionFrame:
    return AnswerInteractionFrame(session_id="main", interaction_id=interaction_id)


def answered(follower: Follower, now: float = 0.0) -> list[str]:
    return [one.interaction_id for one in follower.due(now) if isinstance(one, AnswerInteractionFrame)]


# --- what is asked ------------------------------------------------------------------------------------------------


def test_what_still_waits_is_shown_once_whatever_its_number_is() -> None:
    follower = Follower("main")
    assert asks(feed(follower, status(40), asked(12, "i1"), asked(12, "i1"), token(41))) == ["i1"]
    assert follower.cursor == 41
    follower.disconnected()
    gap = frame("gap", from_seq=42, to_seq=50)
    assert asks(feed(follower, status(50), gap, asked(12, "i1"), asked(45, "i2"), asked(45, "i2"))) == ["i1", "i2"]
    assert follower.cursor == 50


def test_a_gap_behind_what_was_brought_tells_no_more_than_what_it_has_lost() -> None:
    follower = Follower("main")
    feed(follower, status(40), asked(41, "i1"))
    follower.disconnected()
    gap = frame("gap", from_seq=43, to_seq=50)
    assert asks(feed(follower, status(50), token(42), gap, asked(41, "i1"), asked(45, "i2"))) == ["i2"]


def test_one_that_was_shown_and_settled_does_not_come_back_in_a_replay() -> None:
    follower = Follower("main")
    feed(follower, status(1), asked(2, "i1"), resolved(3, "i1"))
    assert asks(feed(follower, asked(2, "i1"))) == []


def test_what_is_remembered_of_them_is_bounded() -> None:
    follower = Follower("main")
    feed(follower, status(1), *(asked(2 + number, f"i{number}") for number in range(REMEMBERED + 1)))
    assert asks(feed(follower, asked(2, "i0"), asked(3, "i2"))) == ["i0"]


async def test_the_cursor_does_not_go_back_for_an_old_number(autojump_clock: MockClock) -> None:
    async with server(Line([status(40), asked(12, "i1"), token(41)])).follow() as live:
        cursors = [(type(await anext(live)).__name__, live.cursor) for _ in range(4)]
    assert cursors[2:] == [("InteractionFrame", 40), ("TokenFrame", 41)]


# --- what is answered ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settled", [resolved(2, "i1"), NOT_FOUND])
def test_an_answer_is_sent_again_until_it_is_settled(settled: ServerFrame) -> None:
    follower = Follower("main")
    feed(follower, status(1))
    follower.submit(answer("i1"))
    assert answered(follower) == ["i1"]
    assert answered(follower) == []
    follower.disconnected()
    feed(follower, status(1))
    assert answered(follower, RESEND_SECONDS + 1) == ["i1"]  # late is no danger: it is settled once
    feed(follower, settled)
    follower.disconnected()
    feed(follower, status(2))
    assert answered(follower) == []


def test_a_refusal_without_a_name_is_that_of_the_first_answer() -> None:
    follower = Follower("main")
    feed(follower, status(1))
    for interaction_id in ("i1", "i2", "i3"):
        follower.submit(answer(interaction_id))
    answered(follower)
    feed(follower, resolved(2, "i1"), NOT_FOUND)
    follower.disconnected()
    feed(follower, status(2))
    assert answered(follower) == ["i3"]


def test_an_answer_that_no_line_outlives_is_given_up() -> None:
    follower = Follower("main")
    follower.submit(answer("i1"))
    for _ in range(MAX_SENDS):
        feed(follower, status(1))
        assert answered(follower) == ["i1"]
        follower.disconnected()
    assert feed(follower, status(1))[-1] == Unanswered(interaction_id="i1")
    assert answered(follower) == []


def test_what_waits_for_a_line_is_bounded() -> None:
    follower = Follower("main")
    for number in range(MAX_WAITING):
        follower.submit(MessageFrame(session_id="main", content="x", client_msg_id=str(number)))
    with pytest.raises(ValueError, match="too much waits"):
        follower.submit(answer("i1"))


async def test_answers_forks_and_resuming_reach_the_server_as_its_contract_says(autojump_clock: MockClock) -> None:
    line, back = Line([status(1)]), Line([status(1)])
    async with server(line, back).follow() as live:
        live.answer("i1", {"answers": {"colour": "Blue"}})
        live.answer("i2", denied=True, message="No.")
        live.fork(at_message_id="msg-42", title="Mine")
        live.resume()
        await wait_all_tasks_blocked()
        sent: list[Any] = line.sent
        line.drop()
        while not isinstance(event := await anext(live), CaughtUp) or event.first:
            pass
        await wait_all_tasks_blocked()
    assert [type(one) for one in sent] == [AnswerInteractionFrame, AnswerInteractionFrame, ForkFrame, ResumeFrame]
    assert [frame_complaints("client", codec.unstructure(one)) for one in sent] == [[], [], [], []]
    assert sent[:2] == back.sent  # of a fork, nobody wants two
    assert (sent[1].denied, sent[1].message) == (True, "No.")


async def test_what_is_answered_while_the_line_is_lost_goes_out_when_it_is_back(autojump_clock: MockClock) -> None:
    deaf, back = Line([status(1), LOST]), Line([status(1)])
    async with server(deaf, back).follow() as live:
        while not isinstance(await anext(live), Disconnected):
            pass
        live.answer("i1")
        while not isinstance(await anext(live), CaughtUp):
            pass
        await wait_all_tasks_blocked()
    assert [(type(one), getattr(one, "interaction_id", None)) for one in back.sent] == [(AnswerInteractionFrame, "i1")]


async def test_an_answer_that_no_server_reads_is_not_sent(autojump_clock: MockClock) -> None:
    async with server(Line([status(1)])).follow() as live:
        with pytest.raises(ValueError, match="bytes"):
            live.answer("i1", {"plan": "x" * 2**20})


# --- pings --------------------------------------------------------------------------------------------------------


async def test_pings_are_answered_while_nobody_asks_for_frames() -> None:
    """The library's own queue of one frame would keep a ping behind the second one unanswered."""
    answered = trio.Event()

    async def chatter(request: WebSocketRequest) -> None:
        socket = await request.accept()
        for _ in range(UNREAD_FRAMES):
            await socket.send_message('{"type": "pong"}')
        await socket.ping()  # returns with the pong
        answered.set()
        await trio.sleep_forever()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            served = await nursery.start(serve_websocket, chatter, "127.0.0.1", 0, None)
            async with open_socket(f"http://127.0.0.1:{served.port}", "x") as socket:
                await answered.wait()
                assert [(await socket.receive()).type for _ in range(UNREAD_FRAMES)] == ["pong"] * UNREAD_FRAMES
            nursery.cancel_scope.cancel()
