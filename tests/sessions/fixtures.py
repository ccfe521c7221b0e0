"""A house of sessions on a database in memory, for every directory of tests that wants one."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from nerve.store.inline import InlineDatabase, open_inline
from tests.sessions.session_house import House, open_house


@pytest.fixture
def database() -> Iterator[InlineDatabase]:
    with open_inline() as database:
        yield database


@pytest.fixture
async def house(database: InlineDatabase, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(database, tmp_path / "home") as house:
        yield house
