"""The store among real processes and files: other writers, full disks, sudden death, who may read what."""

import os
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from nerve.errors import ErrorCode, NerveError
from nerve.store.health import quick_check
from nerve.store.inline import open_inline
from nerve.store.lock import HomeLocked, home_lock
from nerve.store.migrate import open_store
from nerve.store.rows import insert, scalar
from nerve.store.threads import open_database

Child = Callable[..., Awaitable[trio.Process]]

pytestmark = pytest.mark.slow


class Lines:
    """The lines a child says."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdout is not None
        self._stream = process.stdout
        self._left = b""

    async def next(self) -> str:
        with trio.fail_after(20):
            while b"\n" not in self._left:
                chunk = await self._stream.receive_some()
                if not chunk:
                    raise EOFError(self._left)
                self._left += chunk
        line, _, self._left = self._left.partition(b"\n")
        return line.decode()

    async def rest(self) -> list[str]:
        """Every whole line until the child's death; its last may be cut."""
        chunks = [self._left]
        async for chunk in self._stream:
            chunks.append(chunk)
        return b"".join(chunks).decode().split("\n")[:-1]


async def tell(process: trio.Process, line: str = "go on") -> None:
    assert process.stdin is not None
    await process.stdin.send_all(f"{line}\n".encode())


def add(db: object, key: str) -> None:
    insert(db, "instance", key=key, value="")  # type: ignore[arg-type]


def modes(directory: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}


async def test_another_process_holding_the_lock_is_busy(path: Path, child: Child) -> None:
    open_store(path).close()
    other = await child("hold-write-lock", path)
    says = Lines(other)
    assert await says.next() == "held"
    async with open_database(path, busy_seconds=0.1) as database:
        with pytest.raises(NerveError) as caught:
            await database.write(add, "refused")
        assert caught.value.code is ErrorCode.STORE_BUSY
        assert await database.read(scalar, "SELECT count(*) FROM instance") == 0


async def test_a_lock_released_in_time_is_waited_for(path: Path, child: Child) -> None:
    open_store(path).close()
    other = await child("hold-write-lock", path)
    says = Lines(other)
    assert await says.next() == "held"
    async with open_database(path, busy_seconds=20) as database, trio.open_nursery() as nursery:
        for n in range(3):
            nursery.start_soon(database.write, add, f"waited-{n}")
        with trio.move_on_after(0.05) as impatient:
            await database.write(add, "left")
        assert impatient.cancelled_caught, "who leaves while the lock is waited for has written nothing"
        assert await database.read(scalar, "SELECT count(*) FROM instance") == 0
        await tell(other)
    with open_inline(path) as again:
        assert await again.read(scalar, "SELECT group_concat(key) FROM instance") == "waited-0,waited-1,waited-2"


async def test_a_full_disk_stops_writes_until_there_is_space(path: Path, child: Child) -> None:
    says = Lines(await child("fill", path))
    assert await says.next() == "store_full"
    written = await says.next()
    assert int(written) > 3
    assert [await says.next() for _ in range(3)] == [written] * 3, "read inline, read large, after space came back"
    with open_inline(path) as again:
        assert await again.read(quick_check) == []


@pytest.mark.req("GEN-10")
@pytest.mark.parametrize("wait_for", [1, 200, 2000])
async def test_a_kill_loses_nothing_acknowledged(path: Path, child: Child, wait_for: int) -> None:
    writing = await child("write", path)
    says = Lines(writing)
    acknowledged = {await says.next() for _ in range(wait_for)}
    writing.kill()
    acknowledged.update(await says.rest())
    with open_inline(path) as again:
        stored = await again.read(lambda db: {key for (key,) in db.execute("SELECT key FROM instance")})
        assert await again.read(quick_check) == []
    assert len(acknowledged) >= wait_for
    assert acknowledged <= stored
    assert len(stored - acknowledged) <= 20, "at most one unheard acknowledgement for each writer"


async def test_many_processes_may_open_a_new_database_at_once(path: Path, child: Child) -> None:
    openers = [await child("open-fresh", path) for _ in range(4)]
    says = [Lines(opener) for opener in openers]
    assert [await lines.next() for lines in says] == ["ready"] * 4
    for opener in openers:
        await tell(opener)
    assert [await lines.next() for lines in says] == ["opened"] * 4


async def test_only_the_owner_may_read(path: Path) -> None:
    old = os.umask(0)
    try:
        async with open_database(path) as database:
            await database.write(add, "a")
            found = modes(path.parent)
    finally:
        os.umask(old)
    assert found == {"nerve.db": 0o600, "nerve.db-wal": 0o600, "nerve.db-shm": 0o600}


async def test_an_open_database_is_tightened(path: Path) -> None:
    open_store(path).close()
    os.chmod(path, 0o644)
    async with open_database(path):
        assert modes(path.parent)["nerve.db"] == 0o600


async def test_deleted_text_is_gone_from_the_file(path: Path) -> None:
    async with open_database(path) as database:
        await database.write(add, "a secret to be forgotten")
        await database.write(lambda db: db.execute("DELETE FROM instance"))
    assert b"a secret to be forgotten" not in await trio.Path(path).read_bytes()


async def test_one_process_holds_a_home(tmp_path: Path, child: Child) -> None:
    with home_lock(tmp_path):
        assert await Lines(await child("hold-home", tmp_path)).next() == f"locked by {os.getpid()}"
    holder = await child("hold-home", tmp_path)
    says = Lines(holder)
    assert await says.next() == f"held {holder.pid}"
    with pytest.raises(HomeLocked, match=f"in use by process {holder.pid}") as caught, home_lock(tmp_path):
        pass
    assert caught.value.pid == holder.pid
    await tell(holder)
    assert await says.next() == "released"
    with home_lock(tmp_path):
        pass


async def test_a_killed_holder_leaves_the_home_free(tmp_path: Path, child: Child) -> None:
    holder = await child("hold-home", tmp_path)
    assert await Lines(holder).next() == f"held {holder.pid}"
    holder.kill()
    await holder.wait()
    with home_lock(tmp_path):
        assert (tmp_path / "nerve.lock").read_text() == str(os.getpid())


async def test_a_child_process_does_not_inherit_the_home(tmp_path: Path) -> None:
    with home_lock(tmp_path):
        sleeper = await trio.lowlevel.open_process(["sleep", "60"], close_fds=False)
    try:
        with home_lock(tmp_path):
            pass
    finally:
        sleeper.kill()
        await sleeper.wait()


async def test_no_thread_is_left(path: Path) -> None:
    async with open_database(path) as database:
        await database.write(add, "a")
        assert "nerve store writer" in {thread.name for thread in threading.enumerate()}
    assert "nerve store writer" not in {thread.name for thread in threading.enumerate()}
