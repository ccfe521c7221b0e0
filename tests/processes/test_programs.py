"""Programs of plays: what becomes of their exit, their output and their children, whatever they do."""

import os
import stat
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import trio

from nerve.adapters.scripted import output_files, program_output
from tests.processes.theatre import DEAF, LONG_SECONDS, SLEEPER, Theatre, open_theatre, python, step

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory that nobody else has files in."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
async def theatre(tmp_path: Path) -> AsyncIterator[Theatre]:
    async with open_theatre(tmp_path) as theatre:
        yield theatre


def outputs(temporary: Path) -> list[Path]:
    return list(temporary.rglob("*.output"))


async def test_a_program_runs_beyond_its_turn_and_its_output_is_shown(theatre: Theatre) -> None:
    await theatre.play(step("server", python(SLEEPER, "a b")), {"say": "Started."})
    await theatre.says("server", "up\n")
    record = (await theatre.agents())["server"]
    assert (record["status"], record["kind"], record["background"]) == ("running", "shell", True)
    assert record["command"].endswith("'a b'")
    process = psutil.Process(theatre.processes()[0])
    mark = {name: value for name, value in process.environ().items() if name.startswith("NERVE_")}
    assert mark == {
        "NERVE_HOME_ID": theatre.house.services.identity.home_id,
        "NERVE_SESSION_ID": theatre.session_id,
        "NERVE_AGENT_ID": record["id"],
    }
    assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid


async def test_a_child_sees_nothing_of_the_servers_secrets(theatre: Theatre) -> None:
    await theatre.play(step("env", ["env"]))
    await theatre.ended("env")
    names = {line.partition("=")[0] for line in (await theatre.output("env"))["text"].splitlines()}
    assert names <= {"PATH", "HOME", "LANG", "TMPDIR", "NERVE_HOME_ID", "NERVE_SESSION_ID", "NERVE_AGENT_ID"}
    assert "PATH" in names


async def test_the_output_file_is_ours_alone(theatre: Theatre, temporary: Path) -> None:
    await theatre.play(step("one", ["echo", "hello"]))
    await theatre.ended("one")
    (found,) = outputs(temporary)
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert found.read_bytes() == b"hello\n"
    for directory in found.relative_to(temporary).parents[:-1]:
        assert stat.S_IMODE((temporary / directory).stat().st_mode) == 0o700
    assert found.parts[len(temporary.parts)] == f"claude-{os.getuid()}"


async def test_a_place_that_is_not_ours_alone_gets_no_output(theatre: Theatre, temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    output_files.root().symlink_to(tmp_path / "elsewhere")
    await theatre.play(step("one", ["echo", "hello"], background=False), {"say": "It said ${result}"})
    assert (await theatre.agents())["one"]["status"] == "completed"
    assert not (await theatre.output("one"))["available"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("program", "status", "reason", "error"),
    [
        ("", "completed", "completed", None),
        ("raise SystemExit(3)", "failed", "error", "Exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "failed", "error", "Ended by SIGKILL"),
        ("import os; os.kill(os.getpid(), 40)", "failed", "error", "Ended by signal 40"),
    ],
)
async def test_how_it_ended_is_on_record(
    theatre: Theatre, program: str, status: str, reason: str, error: str | None
) -> None:
    await theatre.play(step("one", python(program)))
    record = await theatre.ended("one")
    assert (record["status"], record["end_reason"], record["error"]) == (status, reason, error)
    assert record["result_preview"] == (error or "Exit code 0")


async def test_in_the_foreground_its_output_is_the_result(theatre: Theatre) -> None:
    said = await theatre.play(step("one", ["printf", "a\\nb"], background=False), {"say": "<${result}>"})
    assert said == "<a\nb>"
    failing = step("two", python("print('no', flush=True); raise SystemExit(1)"), background=False)
    assert await theatre.play(failing, {"say": "<${result}>"}) == "<no\n>"


async def test_a_long_result_is_its_end(theatre: Theatre) -> None:
    program = python(f"print('x' * {program_output.SHOWN_BYTES}, end='LAST')")
    said = await theatre.play(step("one", program, background=False), {"say": "${result}"})
    assert said.startswith("[4 bytes before this are left out]\nxxx")
    assert said.endswith("xxxLAST")


async def test_what_is_no_utf8_is_replaced(theatre: Theatre) -> None:
    program = python("import os; os.write(1, b'a\\xff\\x00\\xe2\\x82')")
    said = await theatre.play(step("one", program, background=False), {"say": "${result}"})
    assert said == "a\ufffd\0\ufffd"
    assert (await theatre.output("one"))["text"] == "a\ufffd\0\ufffd"


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["no-such-program"], "No such file or directory"),
        (["/etc/passwd"], "Permission denied"),
        (["/"], "Permission denied"),
        (["echo", "a\0b"], "embedded null byte"),
        (["/" + "x" * 5_000], "File name too long"),
        (["echo", "x" * 150_000], "Argument list too long"),
    ],
)
@pytest.mark.parametrize("background", [True, False])
async def test_one_that_cannot_be_started_is_an_error_of_its_call(
    theatre: Theatre, argv: list[str], why: str, background: bool
) -> None:
    said = await theatre.play(step("one", argv, background=background), {"say": "${result}"})
    assert said == f"It can't be started: {why}."
    record = (await theatre.agents())["one"]
    assert (record["status"], record["end_reason"], record["error"]) == ("failed", "spawn_failed", said)
    assert theatre.processes() == []


async def test_without_descriptors_none_is_started(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(24, os.strerror(24))

    with monkeypatch.context() as patched:
        patched.setattr(program_output.os, "pipe", none_left)
        said = await theatre.play(step("one", ["echo"], background=False), {"say": "${result}"})
    assert said == "It can't be started: Too many open files."
    assert (await theatre.agents())["one"]["end_reason"] == "spawn_failed"


async def test_a_working_directory_that_is_gone_is_said(theatre: Theatre) -> None:
    theatre.house.services.config.workspace.rmdir()
    said = await theatre.play(step("one", ["echo"], background=False), {"say": "${result}"})
    assert said == "It can't be started: No such file or directory."


async def test_a_program_that_writes_without_end_is_ended(
    theatre: Theatre, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_output, "MAX_BYTES", 100_000)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: print('y' * 1000)"
    await theatre.play(step("one", python(deaf)))
    record = await theatre.ended("one")
    assert (record["status"], record["error"]) == ("failed", "It wrote more than 16 MiB.")
    assert [found.stat().st_size for found in outputs(temporary)] == [100_000]
    assert theatre.processes() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
async def test_a_full_disk_loses_output_and_nothing_else(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        append(Path("/dev/full"), data)

    append = output_files.append
    monkeypatch.setattr(output_files, "append", full)
    said = await theatre.play(step("one", ["echo", "hello"], background=False), {"say": "${result}"})
    assert said == "hello\n"
    assert (await theatre.agents())["one"]["status"] == "completed"


async def test_a_monitor_says_its_newest_line(theatre: Theatre) -> None:
    program = "import time; print('ready\\n', flush=True); time.sleep(600)"
    await theatre.play(step("log", python(program), "monitor"))
    record = await theatre.agent("log", lambda agent: agent["summary"] is not None)
    assert (record["kind"], record["task_type"], record["summary"]) == ("monitor", "local_monitor", "ready")


async def test_a_deaf_one_is_killed(theatre: Theatre) -> None:
    await theatre.play(step("one", python(DEAF)))
    await theatre.says("one", "up")
    await theatre.stop("one")
    record = await theatre.ended("one")
    assert (record["status"], record["end_reason"]) == ("stopped", "user")
    assert theatre.processes() == []


async def test_last_words_of_one_that_is_stopped_are_kept(theatre: Theatre) -> None:
    tidy = "import signal; signal.signal(15, lambda *_: (print('bye', flush=True), exit(0))); " + SLEEPER
    await theatre.play(step("one", python(tidy)))
    await theatre.says("one", "up")
    await theatre.stop("one")
    assert (await theatre.ended("one"))["status"] == "stopped"
    assert (await theatre.output("one"))["text"] == "up\nbye\n"


async def test_one_that_closes_its_descriptors_lives_until_it_is_stopped(theatre: Theatre) -> None:
    closing = "import os, time; print('up', flush=True); [os.close(n) for n in range(3)]; time.sleep(600)"
    await theatre.play(step("one", python(closing)))
    await theatre.says("one", "up")
    assert len(theatre.processes()) == 1
    assert (await theatre.agents())["one"]["status"] == "running"
    await theatre.stop("one")
    assert (await theatre.ended("one"))["status"] == "stopped"
    assert theatre.processes() == []


# The daemon leaves the session of whoever started it, twice over, and keeps only the mark.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid() if os.getpid() != os.getsid(0) else None
        print("daemon", os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
"""


async def daemon_of(theatre: Theatre, name: str) -> int:
    await theatre.says(name, "daemon ")
    return int((await theatre.output(name))["text"].split()[1])


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


async def test_daemons_go_with_the_one_that_forked_them(theatre: Theatre) -> None:
    await theatre.play(step("one", python(DAEMON + "time.sleep(600)")))
    daemon = await daemon_of(theatre, "one")
    assert alive(daemon)
    await theatre.stop("one")
    assert (await theatre.ended("one"))["status"] == "stopped"
    assert not alive(daemon)


async def test_daemons_of_one_that_ends_by_itself_go_too(theatre: Theatre) -> None:
    await theatre.play(step("one", python(DAEMON + "raise SystemExit(0)")))
    record = await theatre.ended("one")
    assert (record["status"], record["end_reason"]) == ("completed", "completed")
    assert not alive(await daemon_of(theatre, "one"))


async def test_one_agents_stop_spares_another_agents_program(theatre: Theatre) -> None:
    await theatre.play(step("one", python(SLEEPER)), step("two", python(SLEEPER)))
    await theatre.stop("one")
    await theatre.ended("one")
    assert len(theatre.processes()) == 1
    assert (await theatre.agents())["two"]["status"] == "running"


async def test_a_stopped_turn_ends_the_program_it_waits_for(theatre: Theatre) -> None:
    """In the background one goes on (decisions D16)."""
    session = {"session_id": theatre.session_id}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            theatre.play, step("back", python(SLEEPER)), step("front", python(SLEEPER), background=False)
        )
        with trio.fail_after(LONG_SECONDS):
            while "front" not in await theatre.agents():  # noqa: ASYNC110 - only asked does it answer
                await trio.sleep(0.01)
        await theatre.says("front", "up")
        answer = await theatre.house.owner.ok("sessions.stop", {"scope": "turn"}, path=session)
    assert answer["turn"] == "stopped"
    assert (await theatre.ended("front"))["end_reason"] == "turn_stop"
    assert (await theatre.agents())["back"]["status"] == "running"
    assert len(theatre.processes()) == 1


@pytest.mark.parametrize("scope", ["all", "force"])
async def test_a_stop_of_everything_ends_programs(theatre: Theatre, scope: str) -> None:
    await theatre.play(step("one", python(SLEEPER)), step("two", python(DEAF), "monitor"))
    for name in ("one", "two"):
        await theatre.says(name, "up")
    await theatre.house.owner.ok("sessions.stop", {"scope": scope}, path={"session_id": theatre.session_id})
    ends = {(await theatre.ended(name))["status"] for name in ("one", "two")}
    assert ends == ({"stopped"} if scope == "all" else {"interrupted"})
    assert theatre.processes() == []


async def test_a_stop_of_all_may_spare_programs(theatre: Theatre) -> None:
    await theatre.play(step("one", python(SLEEPER)))
    body = {"scope": "all", "include_shells": False}
    answer = await theatre.house.owner.ok("sessions.stop", body, path={"session_id": theatre.session_id})
    assert answer["stopping"] == []
    assert len(theatre.processes()) == 1


async def test_an_archive_by_force_ends_programs(theatre: Theatre) -> None:
    await theatre.play(step("one", python(DEAF)))
    await theatre.says("one", "up")
    path = {"session_id": theatre.session_id}
    await theatre.house.owner.ok("sessions.archive", path=path, query={"force": "true"})
    record = (await theatre.agents())["one"]
    assert (record["status"], record["end_reason"]) == ("interrupted", "archived")
    assert theatre.processes() == []


async def test_a_deletion_ends_programs_and_removes_what_they_wrote(theatre: Theatre, temporary: Path) -> None:
    await theatre.play(step("one", python(DEAF)))
    await theatre.says("one", "up")
    assert len(outputs(temporary)) == 1
    await theatre.house.owner.ok("sessions.delete", path={"session_id": theatre.session_id})
    assert theatre.processes() == []
    assert outputs(temporary) == []


async def test_the_end_of_the_house_ends_programs(tmp_path: Path) -> None:
    async with open_theatre(tmp_path) as theatre:
        await theatre.play(step("one", python(DEAF)), step("two", python(DAEMON)))
        await theatre.says("one", "up")
        assert theatre.processes()
    assert theatre.processes() == []


async def test_a_crash_of_the_runtime_ends_programs(theatre: Theatre) -> None:
    answer = await theatre.house.owner.call(
        "chat.send",
        {
            "message": "#!nerve-scenario\n- {shell: one, run: [sleep, '600']}\n- crash: true\n",
            "session_id": theatre.session_id,
        },
    )
    assert answer.status == 502
    record = await theatre.ended("one")
    assert (record["status"], record["end_reason"]) == ("interrupted", "process_ended")
    with trio.fail_after(LONG_SECONDS):
        while theatre.processes():  # noqa: ASYNC110 - nobody tells
            await trio.sleep(0.02)


async def test_a_program_that_ignores_its_stop_by_the_play_is_ended_by_force(theatre: Theatre) -> None:
    await theatre.play(step("one", python(SLEEPER), on_stop="ignore"))
    await theatre.says("one", "up")
    await theatre.stop("one")
    assert (await theatre.agents())["one"]["status"] == "stopping"
    assert len(theatre.processes()) == 1
    await theatre.house.owner.ok("sessions.stop", {"scope": "force"}, path={"session_id": theatre.session_id})
    assert theatre.processes() == []


async def test_without_permission_nothing_is_run(tmp_path: Path) -> None:
    async with open_theatre(tmp_path, allowed=False) as theatre:
        message = "#!nerve-scenario\n- say: a\n- {shell: one, run: [touch, made]}\n- say: b\n"
        body = {"message": message, "session_id": theatre.session_id}
        answer = await theatre.house.owner.call("chat.send", body)
        assert (answer.status, answer.json["detail"]) == (502, "/1: 'run' needs scripted.allow_run")
        assert await theatre.agents() == {}
        assert list(theatre.house.services.config.workspace.glob("made")) == []
