from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.house import House, open_house
from tests.temporary import temporary_files

HERE = Path(__file__).parent


def run_autojump(fn: Callable[[], Any], clock: object = None, **options: Any) -> Any:
    return trio.run(fn, clock=MockClock(autojump_threshold=0), **options)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing here waits for real.  (pytest-trio only looks at clocks that a test function names itself.)"""
    for item in items:
        if item.get_closest_marker("trio") and item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.trio(run=run_autojump), append=False)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    with temporary_files(tmp_path):
        async with open_house(tmp_path / "home") as house:
            yield house
