"""Whatever ends a program of a play ends all that came of it, and the record says what did."""

from pathlib import Path

import psutil
import pytest
import trio

from nerve.processes import census as process_census
from nerve.processes import children as process_children
from tests.processes.theatre import DEAF, LONG_SECONDS, SLEEPER, Theatre, open_theatre, outputs, python, step

pytestmark = pytest.mark.slow


async def test_a_deaf_one_is_killed(theatre: Theatre) -> None:
    await theatre.play(step("one", python(DEAF)))
    await theatre.says("one", "up")
    await theatre.stop("one")
    record = await theatre.ended("one")
    assert (record["status"], record["end_reason"]) == ("stopped", "user")
    assert theatre.processes() == []


async def test_last_words_of_one_that_is_stopped_are_kept(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    # However long a busy machine takes to let it speak.
    monkeypatch.setattr(process_children, "TERM_SECONDS", LONG_SECONDS)
    monkeypatch.setattr(process_children, "END_SECONDS", LONG_SECONDS)
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


async def test_one_that_cannot_be_ended_is_not_said_to_be_stopped(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    await theatre.play(step("one", ["sleep", "600"]))
    (pid,) = theatre.processes()
    with monkeypatch.context() as patched:
        patched.setattr(process_census, "send", lambda *_: None)  # as if it waited for a disk that never answers
        patched.setattr(process_children, "TERM_SECONDS", 0.0)
        patched.setattr(process_children, "END_SECONDS", 0.1)
        await theatre.stop("one")
        record = await theatre.ended("one")
    assert (record["status"], record["error"]) == ("failed", f"processes {pid} can't be ended")
    assert theatre.processes() == [pid]
