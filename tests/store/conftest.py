import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import trio

from nerve.store.database import Database
from nerve.store.inline import open_inline
from nerve.store.threads import open_database

CHILD = Path(__file__).with_name("child.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nerve.db"


@pytest.fixture(params=["threads", "inline", "inline in memory"])
async def database(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[Database]:
    """Every implementation of the protocol in turn."""
    match request.param:
        case "threads":
            async with open_database(path, busy_seconds=0.2) as threads:
                yield threads
        case "inline":
            with open_inline(path, busy_seconds=0.2) as inline:
                yield inline
        case _:
            with open_inline() as inline:
                yield inline


@pytest.fixture
async def child() -> AsyncIterator[Callable[..., Awaitable[trio.Process]]]:
    """Starts ``child.py`` with the given arguments, its pipes in our hands; none outlives the test."""
    started: list[trio.Process] = []

    async def start(*args: object) -> trio.Process:
        process = await trio.lowlevel.open_process([sys.executable, str(CHILD), *map(str, args)], stdin=-1, stdout=-1)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await process.stdio.aclose()
