"""`nerve chat MESSAGE`, pipes and JSON: one message, its turn, and an exit code."""

import json
import os
import shutil
import subprocess

import pytest

from tests.cli.terminals import ENDLESS, ENDLESS_WORDS, PASSWORD, SLOW, SLOW_WORDS, Seat, running
from tests.contract.spec_reader import frame_complaints
from tests.live.instance import PROGRAM, Instance
from tests.soak.scale import only_whole
from tools.line import line_to

pytestmark = pytest.mark.slow


# --- one message --------------------------------------------------------------------------------------------------


def test_one_message_is_answered_and_that_is_it(seat: Seat) -> None:
    with seat.chat("Hello") as program:
        assert program.ended() == 0
        assert program.screen.startswith("I received your message: “Hello”.")


def test_an_interrupt_of_one_message_stops_its_turn(seat: Seat) -> None:
    with seat.chat(ENDLESS) as program:
        running(program)
        program.interrupt()
        assert program.ended() == 130
        assert "■ stopped" in program.screen
        assert ENDLESS_WORDS[-1] not in program.screen


def test_an_interrupt_of_a_message_that_waits_takes_it_back(seat: Seat) -> None:
    with seat.chat(ENDLESS) as first:
        running(first)
        with seat.chat("never mind") as second:
            second.see("waits: never mind")
            second.interrupt()
            assert second.ended() == 130
            assert "taken back: never mind" in second.screen
        first.interrupt()
        assert first.ended() == 130
    assert seat.house.roles(seat.session_id) == ["user", "assistant"]


# --- pipes --------------------------------------------------------------------------------------------------------


def piped(seat: Seat, *words: str, stdin: str | None = None, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, "chat", "--session", seat.session_id, *words],
        env={**seat.house.instance.env, "NERVE_TOKEN": seat.house.token, **env},
        stdin=subprocess.DEVNULL if stdin is None else None,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_message_from_a_pipe_is_answered_into_a_pipe(seat: Seat) -> None:
    done = piped(seat, stdin="#!nerve-scenario\n- think: Hm.\n- say: Yes.\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "∴ Hm.\n\nYes.\n", "")


def test_a_terminal_without_these_characters_gets_others(seat: Seat) -> None:
    done = piped(seat, "#!nerve-scenario\n- think: Hm.\n", PYTHONIOENCODING="ascii")
    assert done.stdout == "~ Hm.\n"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("#!nerve-scenario\n- fail: It broke.", "the turn has ended with an error: It broke."),
        ("#!nerve-scenario\n- dance: 1", "unknown step"),
    ],
)
def test_a_turn_that_fails_is_a_failure(seat: Seat, message: str, said: str) -> None:
    done = piped(seat, message)
    assert done.returncode == 1
    assert said in done.stdout


def test_a_turn_that_somebody_else_stops_is_a_failure(seat: Seat) -> None:
    with seat.chat(ENDLESS) as program:
        running(program)
        seat.house.instance.http("POST", f"/api/sessions/{seat.session_id}/stop", seat.house.token, json={})
        assert program.ended() == 1


def test_frames_as_json_are_those_of_the_contract(seat: Seat) -> None:
    done = piped(seat, "--json", "#!nerve-scenario\n- say: Yes é.\n")
    assert done.returncode == 0
    assert done.stdout.isascii()
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    assert [
        (frame["type"], frame_complaints("server", frame)) for frame in frames if frame_complaints("server", frame)
    ] == []
    assert frames[-1]["type"] == "done"
    assert "".join(frame["content"] for frame in frames if frame["type"] == "token").startswith("Yes")


@pytest.mark.parametrize("words", [["--json"], []])
@pytest.mark.soak
@only_whole
def test_nothing_to_say_is_a_mistake(seat: Seat, words: list[str]) -> None:
    for done in (piped(seat, *words), piped(seat, *words, "  ")):
        assert done.returncode == 2
        assert "the message is empty" in done.stderr


@pytest.mark.parametrize(
    ("words", "env", "reason"),
    [
        (["--session", "nowhere"], {}, "there is no session nowhere"),
        ([], {"NERVE_TOKEN": "nobody"}, "does not accept NERVE_TOKEN"),
        ([], {"NERVE_TOKEN": ""}, "set NERVE_PASSWORD, or NERVE_TOKEN"),
        ([], {"NERVE_TOKEN": "", "NERVE_PASSWORD": "wrong"}, "Invalid username or password"),
        (["--url", "http://127.0.0.1:1"], {}, "can't be reached"),
        ([], {"NERVE_HOME": "/nonexistent/home"}, "not running"),
    ],
)
def test_what_goes_wrong_before_the_chat_is_one_line(
    seat: Seat, words: list[str], env: dict[str, str], reason: str
) -> None:
    done = piped(seat, "hello", *words, **env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("nerve: ")
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


@pytest.mark.parametrize(
    "address", ["nonsense", "ftp://x", "http://", "http://x/path", "http://x?a=b", "http://x:y", "http://[::1"]
)
@pytest.mark.soak
@only_whole
def test_an_address_is_checked(seat: Seat, address: str) -> None:
    done = piped(seat, "hello", "--url", address)
    assert done.returncode == 2
    assert "--url" in done.stderr


def test_a_line_that_others_can_read_is_remarked(seat: Seat) -> None:
    done = piped(seat, "hello", "--url", "http://nowhere.invalid:1")
    assert done.returncode == 1
    assert done.stderr.startswith("nerve: the line to nowhere.invalid is not encrypted\n")


def test_passwords_of_the_environment_sign_in_silently(seat: Seat) -> None:
    done = piped(seat, "#!nerve-scenario\n- say: Yes.", NERVE_TOKEN="", NERVE_PASSWORD=PASSWORD)
    assert (done.returncode, done.stdout) == (0, "Yes.\n")


@pytest.mark.soak
@only_whole
def test_a_passwordless_house_asks_for_nothing(instance: Instance) -> None:
    instance.foreground()
    body = {"setup_token": instance.status()["setup_token"], "passwordless": True}
    assert instance.http("POST", "/api/setup/claim", json=body).status_code == 200
    done = instance.nerve("chat", "#!nerve-scenario\n- say: Yes.")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Yes.\n", "")


@pytest.mark.soak
@only_whole
def test_a_line_that_is_cut_again_and_again_loses_nothing(seat: Seat) -> None:
    with line_to(seat.house.instance.address) as line:
        words = [*PROGRAM, "chat", "--session", seat.session_id, "--url", line.address, SLOW]
        env = {**seat.house.instance.env, "NERVE_TOKEN": seat.house.token}
        child = subprocess.Popen(
            words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            assert child.stdout is not None
            begun = b""
            for word in (b"word1 ", b"word12 ", b"word24 "):
                while word not in begun and (data := os.read(child.stdout.fileno(), 4096)):
                    begun += data
                line.cut()
            out, err = (stream.decode() for stream in child.communicate(timeout=60))
            out = begun.decode() + out
        finally:
            child.kill()
            child.wait(60)
    assert child.returncode == 0
    assert out == " ".join(SLOW_WORDS) + "\n"
    # A cut that falls into a reconnection, or behind the turn, is no loss of its own.
    assert err.count("connecting again") == err.count("connected again") <= 3


def test_a_reader_that_goes_away_ends_it_quietly(seat: Seat) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -c 20', "sh", *PROGRAM, "chat", "--session", seat.session_id, SLOW],
        env={**seat.house.instance.env, "NERVE_TOKEN": seat.house.token},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("word0 word1")
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
@pytest.mark.soak
@only_whole
def test_the_own_daemon_is_talked_to_over_tls_whatever_its_certificate_is(instance: Instance) -> None:
    cert, key = instance.root / "cert.pem", instance.root / "key.pem"
    subject = ["-subj", "/CN=nerve.example", "-days", "1", "-out", cert, "-keyout", key]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject]
    subprocess.run(made, check=True, capture_output=True)
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text(f"gateway: {{ssl: {{cert: {cert}, key: {key}}}}}\n")
    instance.foreground()
    assert instance.address.startswith("https://")
    minted = instance.must("token", "--mcp").strip()
    instance.env["NERVE_TOKEN"] = minted
    done = instance.nerve("chat", "#!nerve-scenario\n- say: Privately.")
    assert (done.returncode, done.stdout) == (0, "Privately.\n")
    stranger = instance.nerve("chat", "hello", "--url", instance.address)
    assert stranger.returncode == 1
    assert "certificate" in stranger.stderr.lower()
