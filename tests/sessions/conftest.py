from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from nerve.store.inline import InlineDatabase, open_inline
from tests.sessions.session_house import House, open_house


@pytest.fixture(autouse=True)
def clock(autojump_clock: MockClock) -> MockClock:
    """Nothing here ever waits for real."""
    return autojump_clock


@pytest.fixture
def database() -> Iterator[InlineDatabase]:
    with open_inline() as database:
        yield database


@pytest.fixture
async def house(database: InlineDatabase, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(database, tmp_path / "home") as house:
        yield house
