"""True processes on the true clock: started, found again by their mark, and gone."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
import trio

from nerve.effects import in_thread
from nerve.processes import Child, Children, Marker, StillThere, open_children
from nerve.processes import census as process_census
from nerve.processes import children as process_children

pytestmark = pytest.mark.slow
HOME = f"home-of-test-{os.getpid()}"
MARKER = Marker(HOME, "s1", "ag_1")
DEAF = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
# A child of the child that left its session and threw its environment away.
RUNAWAY = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {DEAF!r}], env={{}}, start_new_session=True)
time.sleep(60)
"""
# The child ends; what it left behind stays in its session, without the mark.
LEAVER = "import subprocess, sys; subprocess.Popen(['sleep', '60'], env={}); print('up', flush=True)"


@asynccontextmanager
async def children_of(home: str = HOME) -> AsyncIterator[Children]:
    with trio.fail_after(30):
        async with open_children(home, {"PATH": os.environ["PATH"]}, in_thread) as children:
            yield children


async def start(children: Children, tmp_path: Path, argv: Sequence[str], marker: Marker = MARKER) -> Child:
    output = os.open(tmp_path / "output", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        return await children.start(argv, tmp_path, marker, output)
    finally:
        os.close(output)


async def says(tmp_path: Path, text: str) -> None:
    while text not in (tmp_path / "output").read_text():  # noqa: ASYNC110 - another process writes it
        await trio.sleep(0.01)


def marked() -> list[int]:
    found = process_census.look().family(lambda seen: seen.marker is not None and seen.marker.home_id == HOME)
    return [seen.pid for seen in found]


async def test_a_child_has_its_environment_its_output_and_its_exit_code(tmp_path: Path) -> None:
    async with children_of() as children:
        child = await start(children, tmp_path, ["sh", "-c", "env; exit 3"])
        assert await child.wait() == 3
        await child.end()
    told = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    told.pop("PWD", None), told.pop("SHLVL", None), told.pop("_", None), told.pop("OLDPWD", None)
    assert told == {"PATH": os.environ["PATH"], **MARKER.environment()}


async def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async with children_of() as children:
        with pytest.raises(FileNotFoundError):
            await start(children, tmp_path, ["no-such-program"])


async def test_one_that_heeds_sigterm_is_gone(tmp_path: Path) -> None:
    async with children_of() as children:
        child = await start(children, tmp_path, ["sleep", "60"])
        await child.end()
        assert await child.wait() == -15
        assert marked() == []


async def test_one_that_is_deaf_is_killed_with_a_runaway_child(tmp_path: Path) -> None:
    async with children_of() as children:
        child = await start(children, tmp_path, [sys.executable, "-c", RUNAWAY])
        await says(tmp_path, "up")
        below = [process.pid for process in psutil.Process(child.pid).children(recursive=True)]
        assert len(below) == 1
        await child.end()
        assert not any(psutil.pid_exists(pid) for pid in [child.pid, *below] if pid not in _dead())


def _dead() -> set[int]:
    """Zombies: they are somebody else's to reap here, because the tests are no subreaper."""
    return {p.pid for p in psutil.process_iter(["status"]) if p.info["status"] == psutil.STATUS_ZOMBIE}


def out_of_files(*_: object) -> object:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def test_one_that_cannot_be_looked_at_is_not_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with children_of() as children:
        with monkeypatch.context() as patched:
            patched.setattr(process_census, "born", out_of_files)
            with pytest.raises(OSError, match="Too many open files"):
                await start(children, tmp_path, ["sleep", "60"])
        assert marked() == []


async def test_without_a_look_its_group_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with children_of() as children:
        child = await start(children, tmp_path, ["sh", "-c", "sleep 60 & sleep 60"])
        with monkeypatch.context() as patched:
            patched.setattr(process_census, "look", out_of_files)
            await child.end()
        assert await child.wait() == -9
        await gone(marked)
        # The house closes all the same.
        monkeypatch.setattr(process_census, "look", out_of_files)


async def gone(found: Callable[[], list[int]]) -> None:
    with trio.fail_after(30):
        while found():  # noqa: ASYNC110 - nobody tells
            await trio.sleep(0.01)


async def test_a_slow_look_is_not_taken_for_a_process_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly() -> process_census.Census:
        found = look()
        time.sleep(0.3)
        return found

    look = process_census.look
    monkeypatch.setattr(process_census, "look", slowly)
    monkeypatch.setattr(process_children, "TERM_SECONDS", 0.0)
    monkeypatch.setattr(process_children, "END_SECONDS", 0.2)
    async with children_of() as children:
        child = await start(children, tmp_path, ["sleep", "60"])
        await child.end()
        assert await child.wait() == -9


async def test_one_that_stays_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with children_of() as children:
        child = await start(children, tmp_path, ["sleep", "60"])
        with monkeypatch.context() as patched:
            patched.setattr(process_census, "send", lambda *_: None)
            patched.setattr(process_children, "END_SECONDS", 0.2)
            patched.setattr(process_children, "TERM_SECONDS", 0.0)
            with pytest.raises(StillThere) as still:
                await child.end()
        assert still.value.pids == (child.pid,)


async def test_many_that_look_share_their_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def counted() -> process_census.Census:
        looks.append(1)
        return process_census.Census(())

    monkeypatch.setattr(process_census, "look", counted)
    async with children_of() as children, trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(children.look)
    assert len(looks) == 1


async def test_what_an_ended_child_left_behind_goes_too(tmp_path: Path) -> None:
    async with children_of() as children:
        child = await start(children, tmp_path, [sys.executable, "-c", LEAVER])
        assert await child.wait() == 0
        left = process_census.look().family(child.belongs)
        assert len(left) == 1
        await child.end()
        assert process_census.look().family(child.belongs) == []


async def test_one_agents_end_spares_the_others(tmp_path: Path) -> None:
    async with children_of() as children:
        one = await start(children, tmp_path, ["sleep", "60"])
        other = await start(children, tmp_path, ["sleep", "60"], Marker(HOME, "s1", "ag_2"))
        await one.end()
        assert marked() == [other.pid]
    assert marked() == [], "the end of the house ends all"


async def test_survivors_are_found_by_mark_and_birth(tmp_path: Path) -> None:
    survivor, stranger = _sleeper(MARKER), _sleeper(Marker("another home", "s1", "ag_1"))
    try:
        async with children_of() as children:
            born = process_census.born(survivor.pid)
            assert born is not None
            assert await children.end_survivors(born) == 0, "as old as the daemon: one of its own"
            assert await children.end_survivors(born + 1) == 1
        assert survivor.wait(60) == -15
        assert stranger.poll() is None
    finally:
        for process in (survivor, stranger):
            process.kill()
            process.wait()


def _sleeper(marker: Marker) -> "subprocess.Popen[bytes]":
    environment = {"PATH": os.environ["PATH"], **marker.environment()}
    return subprocess.Popen(["sleep", "60"], env=environment, start_new_session=True)


ADOPTS = """
import os, sys, time, subprocess, trio, psutil
from nerve.effects import in_thread
from nerve.processes import Marker, become_subreaper, open_children
import nerve.processes.children as children_module
import nerve.processes.orphans as orphans_module

children_module.SWEEP_SECONDS = 0.05
# A busy machine may look too late to see whose child the orphan was.
orphans_module.PATIENCE_SECONDS = 0.2

async def main():
    assert become_subreaper()
    async with open_children("home", {"PATH": os.environ["PATH"]}, in_thread) as children:
        child = await children.start(
            ["sh", "-c", "(sleep 0.4; exit 0) & sleep 0.2"], os.getcwd(), Marker("home", "s", "a"), 1
        )
        await child.wait()
        mine = psutil.Process()
        with trio.fail_after(60):
            while mine.children():
                await trio.sleep(0.02)
    print("reaped")

trio.run(main)
"""


def test_a_subreaper_adopts_and_reaps_orphans() -> None:
    done = subprocess.run([sys.executable, "-c", ADOPTS], capture_output=True, text=True, timeout=100, check=False)
    assert (done.stdout, done.stderr) == ("reaped\n", "")
