"""The output of shells and monitors: the tail of their file, and only of a file that is safe to read."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.contract.generated.entities import AgentKind
from tests.roster.rostering import WORKER, Stage, ask, spawned, staged, started, views
from tests.sessions.session_house import House, play

NOTHING = {"text": "", "size": 0, "truncated": False, "available": False}


def private() -> Path:
    """The directory of the person who runs the tests, where the house looks; made as it has to be."""
    directory = Path(tempfile.gettempdir()) / f"claude-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


async def output(house: House, session_id: str, agent_id: str, **query: Any) -> dict[str, Any]:
    reply = await ask(house, session_id, agent_id, "output", **query)
    assert reply.status == 200, reply.text
    return dict(reply.json)


async def shell(stage: Stage, path: Path | None, task_id: str = "task-1") -> str:
    """The id of a shell that writes there."""
    stage.puppet.say(spawned(kind=AgentKind.SHELL), started(task_id=task_id, output_path=path))
    await stage.told()
    return str((await stage.only())["id"])


@pytest.mark.req("AGENT-42")
@pytest.mark.parametrize("kind", ["shell", "monitor"])
async def test_the_output_grows_over_time(house: House, kind: str) -> None:
    session_id = await house.create()
    await house.run(session_id, play(f'- {{{kind}: server, output: [one, "\\ntwo ", ü], seconds: 8}}'))
    agent_id = (await views(house, session_id))["server"]["id"]
    for text in ("", "one", "one\ntwo ", "one\ntwo ü", "one\ntwo ü"):
        found = await output(house, session_id, agent_id)
        assert found.keys() == {"agent_id", "text", "size", "truncated", "available"}
        wanted = {"agent_id": agent_id, "text": text, "size": len(text.encode()), "truncated": False}
        assert found == {**wanted, "available": True}
        await trio.sleep(2.01)
    assert (await views(house, session_id))["server"]["status"] == "completed"


@pytest.mark.req("AGENT-47")
async def test_what_is_no_shell_has_no_output(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play(WORKER))
    reply = await ask(house, session_id, (await views(house, session_id))["build-api"]["id"], "output")
    assert (reply.status, reply.json["detail"]["code"]) == (409, "not_a_shell")


@pytest.mark.req("AGENT-43")
async def test_a_tail_of_at_most_256_kib(house: House) -> None:
    async with staged(house) as stage:
        path = private() / "task-1.output"
        path.write_bytes(b"x" * 300_000)
        agent_id = await shell(stage, path)
        for asked, given in ((None, 65_536), (0, 1), (262_144, 262_144), (262_145, 262_144), (10**12, 262_144)):
            query = {} if asked is None else {"tail_bytes": asked}
            found = await output(house, stage.session_id, agent_id, **query)
            assert (len(found["text"]), found["size"], found["truncated"]) == (given, 300_000, True)
        path.write_bytes(b"x" * 65_536)
        assert (await output(house, stage.session_id, agent_id))["truncated"] is False


@pytest.mark.req("AGENT-42")
@pytest.mark.parametrize("tail", range(1, 9))
async def test_a_tail_begins_with_a_whole_character(house: House, tail: int) -> None:
    whole = "aü€🙂"
    async with staged(house) as stage:
        path = private() / "task-1.output"
        path.write_text(whole, encoding="utf-8")
        found = await output(house, stage.session_id, await shell(stage, path), tail_bytes=tail)
    assert "\ufffd" not in found["text"]
    assert whole.endswith(found["text"])
    assert tail - 3 <= len(found["text"].encode()) <= tail
    assert found["size"] == 10


# --- what is not served -------------------------------------------------------------------------------------------

Trap = Callable[[Path, Path], Path]


def elsewhere(inside: Path, outside: Path) -> Path:
    return outside


def beside(inside: Path, outside: Path) -> Path:
    """In the temporary directory, and not in ours within it."""
    path = inside.parent.parent / "task-1.output"
    path.write_text("secret")
    return path


def upwards(inside: Path, outside: Path) -> Path:
    return inside.parent / "tasks" / ".." / ".." / ".." / outside.parent.name / outside.name


def another_name(inside: Path, outside: Path) -> Path:
    path = inside.with_name("task-2.output")
    path.write_text("secret")
    return path


def a_link(inside: Path, outside: Path) -> Path:
    inside.symlink_to(outside)
    return inside


def a_linked_directory(inside: Path, outside: Path) -> Path:
    (inside.parent / "tasks").symlink_to(outside.parent)
    return inside.parent / "tasks" / outside.name


def a_directory(inside: Path, outside: Path) -> Path:
    inside.mkdir()
    return inside


def a_pipe(inside: Path, outside: Path) -> Path:
    os.mkfifo(inside)
    return inside


def open_to_the_group(inside: Path, outside: Path) -> Path:
    inside.write_text("secret")
    inside.parent.chmod(0o750)
    return inside


def gone(inside: Path, outside: Path) -> Path:
    return inside


def the_root_is_a_link(inside: Path, outside: Path) -> Path:
    inside.parent.rmdir()
    inside.parent.symlink_to(outside.parent)
    return inside


TRAPS: tuple[Trap, ...] = (
    elsewhere,
    beside,
    upwards,
    another_name,
    a_link,
    a_linked_directory,
    a_directory,
    a_pipe,
    open_to_the_group,
    gone,
    the_root_is_a_link,
)


@pytest.mark.req("AGENT-44", "AGENT-45")
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
async def test_nothing_else_is_available(house: House, tmp_path: Path, trap: Trap) -> None:
    outside = tmp_path / "outside" / "task-1.output"
    outside.parent.mkdir(mode=0o700)
    outside.write_text("secret")
    async with staged(house) as stage:
        agent_id = await shell(stage, trap(private() / "task-1.output", outside))
        found = await output(house, stage.session_id, agent_id)
    assert found == {"agent_id": agent_id, **NOTHING}


@pytest.mark.req("AGENT-44", "AGENT-45")
async def test_another_owners_directory_is_not_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(house) as stage:
        path = private() / "task-1.output"
        path.write_text("fine")
        agent_id = await shell(stage, path)
        assert (await output(house, stage.session_id, agent_id))["text"] == "fine"
        stat = os.fstat

        def of_somebody_else(handle: int) -> os.stat_result:
            found = list(stat(handle))
            found[4] += 1
            return os.stat_result(found)

        monkeypatch.setattr("nerve.runtime.agent_output.os.fstat", of_somebody_else)
        assert await output(house, stage.session_id, agent_id) == {"agent_id": agent_id, **NOTHING}


@pytest.mark.req("AGENT-45")
async def test_a_shell_that_told_of_no_file(house: House) -> None:
    async with staged(house) as stage:
        agent_id = await shell(stage, None)
        assert await output(house, stage.session_id, agent_id) == {"agent_id": agent_id, **NOTHING}


async def test_the_output_leaves_with_its_session(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- {shell: server, output: [one], seconds: 2}"))
    await trio.sleep(5)
    assert len(list(private().rglob("*.output"))) == 1
    await house.alice.delete(f"/api/sessions/{session_id}")
    assert list(private().rglob("*.output")) == []
