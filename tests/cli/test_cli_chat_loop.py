"""The chat over a scripted server: what is typed, stopped, cut and left, on the test's own clock."""

import signal
from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from nerve.client import SocketEnded
from nerve.contract.generated.errors import ErrorCode
from tests.cli.stage import on_stage
from tests.client.frames import asked, entry, frame, message, removed, status, token
from tests.client.lines import LOST, Line, server

STOP = "POST /api/sessions/main/stop"


def stopped(turn: str) -> dict[str, Any]:
    return {"scope": "turn", "turn": turn, "would_end": [], "shell_count": 0}


def running(seq: int = 3, *, is_running: bool = True) -> Any:
    return frame(
        "session_running",
        is_running=is_running,
        pending_wakeup_at=None,
        pending_wakeup_created_by_actor_id=None,
        pending_wakeup_caused_by_actor_id=None,
        has_background_tasks=False,
        background_count=0,
    )


# --- turns --------------------------------------------------------------------------------------------------------


async def test_what_is_typed_is_sent_and_its_answer_streams_in_above_the_prompt(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        assert stage.prompt == "›"
        await stage.type("Hel")
        assert stage.prompt == "› Hel"
        await stage.says(token(2, "somebody else's turn "))
        await stage.type("lo\r")
        assert stage.sent == ["Hello"]
        await stage.says(running(), token(3, "One"))
        assert stage.screen.endswith("› Hello\n\nOne\n… ›")
        await stage.says(token(4, " two"), frame("done", 5), running(is_running=False))
        assert stage.screen.endswith("› Hello\n\nOne two\n›")


async def test_thinking_and_tools_are_told_apart(mock_clock: MockClock) -> None:
    use = frame("tool_use", 3, tool="Bash", input={"command": "make"}, tool_use_id="t1")
    result = frame("tool_result", 5, tool_use_id="t1", result="", is_error=False)
    output = frame("tool_output", 4, tool_use_id="t1", content="built\n")
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(frame("thinking", 2, content="Hm."), use, output, result, token(6, "Done."))
        assert "∴ Hm.\n\n● Bash  make\n  │ built\n  ✓ done\n\nDone." in stage.screen


async def test_interrupt_stops_the_turn_once_and_one_goes_on_talking(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), answers={STOP: stopped("stopped")}) as stage:
        await stage.says(running(), token(2, "word"))
        await stage.signal()
        assert [call for call, _ in stage.rest.asked] == [STOP]
        await stage.says(frame("stopped", 3), running(is_running=False))
        assert "■ stopped" in stage.screen
        await stage.enter("Are you there?")
        assert stage.sent == ["Are you there?"]
        assert stage.code is None


async def test_a_second_interrupt_leaves_a_turn_that_does_not_listen(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), answers={STOP: stopped("not_stopped")}) as stage:
        await stage.says(running())
        await stage.signal()
        assert "does not stop" in stage.screen
        await stage.signal()
        assert stage.code == 130


async def test_a_stop_that_came_too_late_or_could_not_be_asked_for_says_so(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), answers={STOP: stopped("not_running")}) as stage:
        await stage.enter("/stop")
        assert "no turn is running" in stage.screen
        stage.rest.answers[STOP] = ErrorCode.SESSION_NOT_FOUND
        await stage.enter("/stop")
        assert "the turn can't be stopped: 404" in stage.screen


async def test_an_idle_prompt_hints_and_then_leaves(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.type("half a line")
        await stage.signal()
        assert stage.prompt == "›"
        await stage.signal()
        assert "^C again leaves" in stage.screen
        await stage.signal()
        assert stage.code == 130


@pytest.mark.parametrize("keys", ["\x04", "/quit\r"])
async def test_one_leaves_while_a_turn_goes_on(keys: str, mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), token(2, "open line"))
        await stage.type(keys)
        assert stage.code == 0
        assert stage.screen.endswith("open line")
        assert stage.rest.asked == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_is_the_end(number: signal.Signals, mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.signal(number)
        assert stage.code == 128 + number


# --- the queue ----------------------------------------------------------------------------------------------------


async def test_what_is_typed_during_a_turn_waits_and_can_be_taken_back(mock_clock: MockClock) -> None:
    cancel = "DELETE /api/sessions/main/queue/q_1"
    answers = {"GET /api/sessions/main/queue": {"items": [entry("m1", preview="one more thing")]}, cancel: {}}
    async with on_stage(mock_clock, Line([status(1)]), answers=answers) as stage:
        await stage.says(running())
        await stage.enter("one more thing")
        sent = str(stage.line.messages[0].client_msg_id)
        await stage.says(frame("queue_update", queue=[entry(sent, preview="one more thing")]))
        assert "waits: one more thing (q_1)" in stage.screen
        await stage.enter("/queue")
        assert stage.screen.count("waits: one more thing") == 2
        await stage.says(removed(sent, "cancelled"))
        assert "taken back: one more thing" in stage.screen


async def test_a_message_alone_shows_its_turn_and_ends_with_it(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), message="Hello") as stage:
        assert stage.sent == ["Hello"]
        sent = stage.line.messages[0].client_msg_id
        await stage.says(message(2, "other"), token(3, "not ours"), frame("done", 4))
        await stage.says(message(5, sent), token(6, "ours"), frame("done", 7))
        assert (stage.code, stage.screen) == (0, "ours")


async def test_a_message_alone_says_where_its_question_can_be_answered(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), message="Hello") as stage:
        await stage.says(message(2, stage.line.messages[0].client_msg_id), asked(3))
        assert "Which colour?" in stage.screen
        assert "nerve chat --session main" in stage.screen


async def test_an_interrupt_of_a_message_that_waits_takes_it_back(mock_clock: MockClock) -> None:
    cancel = "DELETE /api/sessions/main/queue/q_1"
    async with on_stage(mock_clock, Line([status(1, running=True)]), message="Hello") as stage:
        sent = str(stage.line.messages[0].client_msg_id)
        await stage.says(frame("queue_update", queue=[entry(sent)]))
        await stage.signal()
        assert stage.rest.asked == [(cancel, None)]
        await stage.says(removed(sent, "cancelled"))
        assert stage.code == 130


# --- the line -----------------------------------------------------------------------------------------------------


async def test_a_line_that_is_cut_is_found_again_and_nothing_is_lost(mock_clock: MockClock) -> None:
    back = Line([status(4, running=True), token(3, "b"), token(4, "c")])
    async with on_stage(mock_clock, Line([status(1)]), back) as stage:
        await stage.says(running(), token(2, "a"))
        await stage.drops()
        assert "the line to the server is lost; connecting again" in stage.screen
        assert stage.prompt == "offline ›"
        await stage.enter("and one for the road")
        assert "it goes out once the line is back" in stage.screen
        assert stage.sent == []
        await stage.waits()
        assert "connected again" in stage.screen
        assert stage.line.bound == ("main", 2)
        assert "bc\n" in stage.screen
        assert stage.sent == ["and one for the road"]
        assert stage.prompt == "… ›"


async def test_a_server_that_stays_away_is_told_of_once(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1), LOST])) as stage:
        for _ in range(20):
            await stage.waits()
        assert stage.screen.count("connecting again") == 1
        assert len(stage.house.attempts) > 20
        assert stage.code is None


@pytest.mark.parametrize(("code", "said"), [(4001, "start again to sign in anew"), (1008, "your account was disabled")])
async def test_two_close_codes_are_the_end(code: int, said: str, mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), Line([status(1)])) as stage:
        await stage.drops(SocketEnded("closed", code))
        assert said in stage.screen
        assert stage.code == 1


@pytest.mark.parametrize("code", [1000, 1001, 1009, 1011, 1012, 4000])
async def test_no_other_one_is(code: int, mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), Line([status(1)])) as stage:
        await stage.drops(SocketEnded("closed", code))
        await stage.waits()
        assert "connected again" in stage.screen
        assert stage.code is None


# --- commands -----------------------------------------------------------------------------------------------------


async def test_one_goes_on_in_another_session(mock_clock: MockClock) -> None:
    other = server(Line([status(1, session_id="s2"), token(2, "hello from there", session_id="s2")]))
    async with on_stage(mock_clock, Line([status(1)]), places={"s2": other}) as stage:
        stage.chat.switch("s2")
        await wait_all_tasks_blocked()
        assert stage.chat.session_id == "s2"
        await stage.enter("/switch nowhere")
        assert "Session not found" in stage.screen
        assert stage.chat.session_id == "s2"


async def test_mistakes_are_told_and_never_sent(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.enter("/nonsense")
        await stage.enter("/answer")
        await stage.enter("//home is where")
        assert "there is no /nonsense" in stage.screen
        assert "nothing is asked" in stage.screen
        assert stage.sent == ["/home is where"]


async def test_too_many_commands_at_once_are_refused(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.type("/help\r" * 40)
        assert "one thing after another" in stage.screen
