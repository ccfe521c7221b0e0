"""`nerve chat` at a terminal: streaming, ^C, a cut line, moving about, and how it leaves the terminal."""

import re
import signal

import pytest

from tests.cli.terminals import PASSWORD, SLOW, SLOW_WORDS, Seat, begun, nerve, running, say
from tests.live.instance import Instance
from tools.line import line_to

pytestmark = pytest.mark.slow


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
        program.see(lambda screen: screen.splitlines()[-1] == "›")
        assert "∴ Hm.\n\n● Bash  make\n  │ built\n  ✓ done\n● Write" in program.screen
        assert b"\x1b[2;3m" in program.raw
        program.type("\x04")
        assert program.ended() == 0
        assert program.echoes()


def test_interrupt_stops_the_turn_and_one_goes_on_talking(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        say(program, SLOW)
        running(program)
        program.interrupt()
        program.see("■ stopped")
        assert SLOW_WORDS[-1] not in program.screen.split("› #!nerve-scenario")[1].split("pace")[1]
        program.type("Are you there?\r")
        program.see("I received your message: “Are you there?”")
        program.type("\x04")
        assert program.ended() == 0


def test_a_second_interrupt_leaves_a_turn_that_does_not_listen(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        say(program, STUBBORN)
        program.see("\nI do not listen.")
        program.interrupt()
        program.watch(0.3)
        program.interrupt()
        assert program.ended(5) == 130
        assert program.echoes()
    seat.house.instance.http("POST", f"/api/sessions/{seat.session_id}/archive?force=true", seat.house.token)


def test_what_is_typed_during_a_turn_waits_and_can_be_taken_back(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        say(program, SLOW)
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


def test_an_idle_prompt_hints_and_then_leaves(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        program.type("half a line")
        program.see("› half a line")
        program.interrupt()
        program.see(lambda screen: screen.splitlines()[-1] == "›")
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
        program.see(lambda screen: screen.splitlines()[-1].startswith("offline ›"))
        program.type("and one for the road\r")
        program.see("it goes out once the line is back")
        line.mend()
        program.see("connected again")
        program.see("I received your message: “and one for the road”", 20)
        answer = program.screen.split("pace: 0.08")[1].split("I received")[0]
        assert re.findall(r"word\d+", answer) == SLOW_WORDS


def test_a_server_that_restarts_is_found_again(instance: Instance) -> None:
    instance.foreground()
    token = instance.claim()
    port = instance.address.rpartition(":")[2]
    with nerve(instance, "chat", NERVE_TOKEN=token) as program:
        begun(program)
        instance.must("stop")
        program.see("connecting again")
        instance.foreground("--port", port)
        program.see("connected again", 30)
        program.type("Hello again\r")
        program.see("I received your message: “Hello again”")


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
        program.see(f"Hello there ({seat.session_id})")
        program.type("/history 2\r")
        program.see(lambda screen: screen.count("› Hello there\n") == 2)
        program.type("/switch nowhere\r")
        program.see("Session not found")
        program.type("/nonsense\r")
        program.see("there is no /nonsense")
        program.type("/help\r")
        program.see("/history [N]")


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(seat: Seat, number: signal.Signals) -> None:
    with seat.chat() as program:
        begun(program)
        assert not program.echoes()
        program.signal(number)
        assert program.ended() == 128 + number
        assert program.echoes()
        assert program.raw.endswith(b"\x1b[?2004l")


def test_a_narrow_terminal_and_one_that_is_resized(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        program.resize(30, 10)
        program.type("x" * 50)
        program.see(lambda screen: screen.splitlines()[-1] == "› " + "x" * 26)
        program.type("\x15Hello\r")
        program.see("configured")
        program.watch(0.5)
        answer = program.screen.split("› Hello")[1]
        assert max(map(len, answer.splitlines())) <= 29


def test_no_colour_where_none_is_wanted(seat: Seat) -> None:
    with seat.chat(NO_COLOR="1") as program:
        begun(program)
        program.type("Hello\r")
        program.see("restart`.")
        assert re.search(rb"\x1b\[[\d;]*m", program.raw) is None


def test_a_dumb_terminal_gets_plain_lines(seat: Seat) -> None:
    with seat.chat(TERM="dumb") as program:
        begun(program)
        program.type("Hello\n")
        program.see("restart`.")
        program.type("/quit\n")
        assert program.ended() == 0
        assert b"\x1b" not in program.raw
