"""Programs of plays: how they begin, what they say, and what becomes of their exit."""

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from nerve.adapters.scripted import output_files, program_output
from nerve.adapters.scripted.acts import programs
from tests.processes.theatre import LONG_SECONDS, SLEEPER, Theatre, open_theatre, outputs, python, step

pytestmark = pytest.mark.slow


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


async def test_a_program_is_told_to_those_who_watch(theatre: Theatre) -> None:
    async with theatre.house.owner.connect({"session_id": theatre.session_id}) as socket:
        await theatre.play(step("one", ["echo", "hello"]))
        told: list[dict[str, Any]] = []
        with trio.fail_after(LONG_SECONDS):
            while not any(frame["type"] == "background_tasks_update" and _is_over(frame) for frame in told):
                told.append(await socket.receive_json(LONG_SECONDS))
    kinds = [frame["type"] for frame in told]
    call, result = (next(f for f in told if f["type"] == kind) for kind in ("tool_use", "tool_result"))
    assert (call["tool"], call["input"]["command"]) == ("Bash", "echo hello")
    assert result["tool_use_id"] == call["tool_use_id"]
    assert (result["result"][:26], result["is_error"]) == ("Running in the background ", False)
    assert kinds.index("tool_use") < kinds.index("tool_result") < kinds.index("done")
    views = [agent for frame in told if frame["type"] == "agent_update" for agent in frame["agents"]]
    assert {view["id"] for view in views} == {(await theatre.agents())["one"]["id"]}
    assert (views[-1]["status"], views[-1]["result_preview"]) == ("completed", "Exit code 0")
    assert [view["rev"] for view in views] == sorted({view["rev"] for view in views})


def _is_over(frame: dict[str, Any]) -> bool:
    return [task["status"] for task in frame["tasks"]] == ["done"]


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


async def test_however_few_descriptors_are_left_nothing_is_left_behind(theatre: Theatre) -> None:
    outcomes = set()
    for left in range(12):
        with descriptors_left(left):
            said = await theatre.play(step(f"one-{left}", ["echo", "hello"], background=False), {"say": "${result}"})
        outcomes.add(said)
        assert theatre.processes() == []
    assert outcomes == {"hello\n", "It can't be started: Too many open files."}
    assert {agent["status"] for agent in (await theatre.agents()).values()} == {"completed", "failed"}


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """This process can open so many more files, and sockets, and pipes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir("/dev/fd")}
    free = (number for number in range(soft) if number not in used)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(islice(free, count, None)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_program_runs_for_an_hour_at_most(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_SECONDS", 0.05)
    await theatre.play(step("one", ["sleep", "600"]))
    record = await theatre.ended("one")
    assert (record["status"], record["error"]) == ("failed", "A play lasts at most one hour in all.")
    assert theatre.processes() == []


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


async def test_without_permission_nothing_is_run(tmp_path: Path) -> None:
    async with open_theatre(tmp_path, allowed=False) as theatre:
        message = "#!nerve-scenario\n- say: a\n- {shell: one, run: [touch, made]}\n- say: b\n"
        body = {"message": message, "session_id": theatre.session_id}
        answer = await theatre.house.owner.call("chat.send", body)
        assert (answer.status, answer.json["detail"]) == (502, "/1: 'run' needs scripted.allow_run")
        assert await theatre.agents() == {}
        assert list(theatre.house.services.config.workspace.glob("made")) == []
