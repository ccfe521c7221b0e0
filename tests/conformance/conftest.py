from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import pytest
import trio
from trio.testing import MockClock

from tests.conformance.subject import Start, Subject
from tests.house import open_house

HERE = Path(__file__).parent


class Opening(Protocol):
    """Opens servers, each at its start, for as long as a block lasts."""

    def __call__(
        self, start: Start = ..., settings: Mapping[str, str] = ...
    ) -> AbstractAsyncContextManager[Subject]: ...


def run_autojump(fn: Callable[[], Any], clock: object = None, **options: Any) -> Any:
    return trio.run(fn, clock=MockClock(autojump_threshold=0), **options)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "local: needs a hand inside the server, not only its address")


def marked(value: Any, local: bool) -> Any:
    """A parameter, marked if its scenario is local."""
    return pytest.param(value, marks=pytest.mark.local) if local else value


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing here waits for real.  (pytest-trio only looks at clocks that a test function names itself.)"""
    for item in items:
        if item.get_closest_marker("trio") and item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.trio(run=run_autojump), append=False)


@pytest.fixture
def opening(tmp_path: Path) -> Opening:
    numbers = count(1)

    def open_one(
        start: Start = Start.CLAIMED, settings: Mapping[str, str] = MappingProxyType({})
    ) -> AbstractAsyncContextManager[Subject]:
        return open_house(tmp_path / f"home-{next(numbers)}", start, settings=settings)

    return open_one


@pytest.fixture
async def subject(opening: Opening) -> AsyncIterator[Subject]:
    """A server that alice has claimed."""
    async with opening(Start.CLAIMED) as subject:
        yield subject
