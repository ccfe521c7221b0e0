"""Tests that own the clock: nothing in them waits for real."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock


def _run(fn: Callable[[], Any], clock: object = None, **options: Any) -> Any:
    return trio.run(fn, clock=MockClock(autojump_threshold=0), **options)


def own_the_clock(items: list[pytest.Item], below: Path) -> None:
    """For a ``pytest_collection_modifyitems`` that comes last: the tests in that directory get an autojumping clock.

    A fixture would not do: pytest-trio only looks at clocks that a test function names itself.
    """
    for item in items:
        if item.get_closest_marker("trio") and item.path.is_relative_to(below):
            item.add_marker(pytest.mark.trio(run=_run), append=False)
