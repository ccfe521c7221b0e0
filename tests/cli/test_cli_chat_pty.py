"""`nerve chat` at a terminal: streaming, ^C, a cut line, moving about, and how it leaves the terminal.

What keys and frames bring about is proved without a terminal (test_cli_chat_loop, -answers); here it is the terminal's
turn.  Everything waits for what is to be seen, and nothing depends on how long that takes.
"""

import re
import signal
from collections.abc import Callable

import pytest

from tests.cli.terminals import (
    ENDLESS,
    ENDLESS_WORDS,
    PASSWORD,
    SLOW,
    SLOW_WORDS,
    Seat,
    begun,
    nerve,
    prompts,
    running,
    say,
)
from tests.live.instance import Instance
from tests.soak.scale import only_whole
from tools.line import line_to

pytestmark = pytest.mark.slow


def at_length(test: Callable[..., None]) -> Callable[..., None]:
    """Part of `make soak` only."""
    return pytest.mark.soak(only_whole(test))


STUBBORN = "#!nerve-scenario\n- say: I do not listen.\n- stuck: 30"


# --- turns --------------------------------------------------------------------------------------------------------


def test_a_turn_streams_with_its_thoughts_and_tools(seat: Seat) -> None:
    play = (
        '#!nerve-scenario\n- think: Hm.\n- tool: Bash\n  input: {command: make}\n  output: ["built\\n"]\n'
        "- write: made.txt\n  content: x\n- say: All done."
    )
    with seat.chat() as program:
        begun(program)
        say(program, play)
        program.see("\nAll done.\n")
        prompts(program)
        assert "∴ Hm.\n\n● Bash  make\n  │ built\n  ✓ done\n● Write" in program.screen
        assert b"\x1b[2;3m" in program.raw
        program.type("\x04")
        assert program.ended() == 0
        assert program.echoes()


def test_interrupt_stops_the_turn_and_one_goes_on_talking(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        say(program, ENDLESS)
        running(program)
        program.interrupt()
        program.see("■ stopped")
        assert ENDLESS_WORDS[-1] not in program.screen.split("pace: 0.08")[1]
        program.type("Are you there?\r")
        program.see("I received your message: “Are you there?”")
        program.type("\x04")
        assert program.ended() == 0


@at_length
def test_a_second_interrupt_leaves_a_turn_that_does_not_listen(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        say(program, STUBBORN)
        program.see("\nI do not listen.")
        program.interrupt()
        prompts(program, "■ ›")
        program.interrupt()
        assert program.ended() == 130
        assert program.echoes()
    seat.house.instance.http("POST", f"/api/sessions/{seat.session_id}/archive?force=true", seat.house.token)


@at_length
def test_what_is_typed_during_a_turn_waits_and_can_be_taken_back(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        say(program, ENDLESS)
        running(program)
        program.type("one more thing\r")
        program.see("waits: one more thing")
        program.type("/queue\r")
        program.see(lambda screen: screen.count("waits: one more thing") == 2)
        queue_id = re.search(r"one more thing \((q_\w+)\)", program.screen)
        assert queue_id is not None
        program.type(f"/cancel {queue_id[1]}\r")
        program.see("taken back: one more thing")
        program.type("/cancel q_nothing\r/stop\r")
        program.see("No such entry in the queue.")
        program.see("■ stopped")


@at_length
def test_an_idle_prompt_hints_and_then_leaves(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        program.type("half a line")
        program.see("› half a line")
        program.interrupt()
        prompts(program)
        program.interrupt()
        program.see("^C again leaves")
        program.interrupt()
        assert program.ended() == 130
        assert program.echoes()


# --- the line -----------------------------------------------------------------------------------------------------


def test_a_line_that_is_cut_in_the_middle_loses_nothing(seat: Seat) -> None:
    with line_to(seat.house.instance.address) as line, seat.chat("--url", line.address) as program:
        begun(program)
        say(program, SLOW)
        running(program)
        line.cut(and_keep_down=True)
        program.see("connecting again")
        prompts(program, "offline ›")
        program.type("and one for the road\r")
        program.see("it goes out once the line is back")
        line.mend()
        program.see("connected again")
        program.see("I received your message: “and one for the road”")
        answer = program.screen.split("pace: 0.08")[1].split("I received")[0]
        assert re.findall(r"word\d+", answer) == SLOW_WORDS


@at_length
def test_a_server_that_restarts_is_found_again(instance: Instance) -> None:
    instance.foreground()
    token = instance.claim()
    port = instance.address.rpartition(":")[2]
    with nerve(instance, "chat", NERVE_TOKEN=token) as program:
        begun(program)
        instance.must("stop")
        program.see("connecting again")
        instance.foreground("--port", port)
        program.see("connected again")
        program.type("Hello again\r")
        program.see("I received your message: “Hello again”")


@at_length
def test_a_disabled_account_is_the_end(instance: Instance) -> None:
    instance.foreground()
    instance.claim(password=PASSWORD)
    instance.must("account", "create", "bob", stdin="pw\n")
    with nerve(instance, "chat", NERVE_USERNAME="bob", NERVE_PASSWORD="pw") as program:
        begun(program)
        instance.must("account", "disable", "bob")
        assert program.ended() == 1
        assert "your account was disabled" in program.screen
        assert program.echoes()


# --- commands -----------------------------------------------------------------------------------------------------


@at_length
def test_moving_between_sessions(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        program.type("Hello there\r")
        program.see("restart`.")
        program.type("/new Another place\r")
        program.see("Another place (")
        program.type("/sessions\r")
        program.see(re.compile(r"\* \w+ +Another place").search)
        program.type(f"/switch {seat.session_id}\r")
        program.see(f"· A place to talk ({seat.session_id})\n")
        program.type("/history 2\r")
        program.see(lambda screen: screen.count("› Hello there\n") == 2)
        program.type("/switch nowhere\r")
        program.see("Session not found")
        program.type("/fork A second way\r")
        program.see(re.compile(r"\n· A second way \(fork-\w+\)\n").search)
        program.type("/history\r")
        program.see(lambda screen: screen.count("› Hello there\n") == 3)
        program.type("/nonsense\r")
        program.see("there is no /nonsense")
        program.type("/help\r")
        program.see("/history [N]")


@at_length
def test_an_old_conversation_is_shown_at_the_beginning(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        program.type("remember this\r")
        program.see("restart`.")
    with seat.chat() as program:
        begun(program)
        assert "› remember this\n\nI received your message" in program.screen
    with seat.chat() as program:
        begun(program)
        say(program, SLOW)
        running(program)
        with seat.chat() as second:
            begun(second)
            second.see("word39")
            assert second.screen.count("- say:") == 1


# --- the terminal -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=[pytest.mark.soak, only_whole])])
def test_a_signal_leaves_the_terminal_as_it_was(seat: Seat, number: signal.Signals) -> None:
    with seat.chat() as program:
        begun(program)
        assert not program.echoes()
        program.signal(number)
        assert program.ended() == 128 + number
        assert program.echoes()
        assert program.raw.endswith(b"\x1b[?2004l")


@at_length
def test_a_program_that_was_put_aside_edits_again(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        program.put_aside()
        assert program.echoes()
        program.signal(signal.SIGCONT)
        program.see(lambda _: not program.echoes())
        program.type("still here\r")
        program.see("I received your message: “still here”")


def test_an_interrupt_swallows_nothing_that_was_typed_before_it(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        program.type("#!nerve-scenario\x1b\r- wait: 20\r\x03")
        program.see("› #!nerve-scenario\n  - wait: 20")


@at_length
def test_a_narrow_terminal_and_one_that_is_resized(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        program.resize(30, 10)
        program.type("x" * 50)
        prompts(program, "› " + "x" * 26)
        program.type("\x15Hello\r")
        program.see("configured")
        prompts(program)
        answer = program.screen.split("› Hello")[1]
        assert max(map(len, answer.splitlines())) <= 29


@at_length
def test_no_colour_where_none_is_wanted(seat: Seat) -> None:
    with seat.chat(NO_COLOR="1") as program:
        begun(program)
        program.type("Hello\r")
        program.see("restart`.")
        assert re.search(rb"\x1b\[[\d;]*m", program.raw) is None


@at_length
def test_a_dumb_terminal_gets_plain_lines(seat: Seat) -> None:
    with seat.chat(TERM="dumb") as program:
        program.see("/help tells")
        program.type("Hello\n")
        program.see("restart`.")
        program.type("/quit\n")
        assert program.ended() == 0
        assert b"\x1b" not in program.raw
