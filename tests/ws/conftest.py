from pathlib import Path

import pytest

from tests.own_clock import own_the_clock
from tests.sessions.fixtures import database, house

__all__ = ["database", "house"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    own_the_clock(items, Path(__file__).parent)
