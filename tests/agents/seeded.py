"""trio's scheduler in an order that a seed decides, so that a run which fails can be had again."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio
from trio.testing import MockClock

T = TypeVar("T")


def run_seeded(
    main: Callable[[random.Random], Awaitable[T]], seed: int, instruments: Sequence[trio.abc.Instrument] = ()
) -> T:
    """Run ``main`` on a clock that jumps; the seed decides what it draws and which of the ready tasks go first."""
    kernel = trio._core._run
    before = kernel._ALLOW_DETERMINISTIC_SCHEDULING, kernel._r.getstate()
    kernel._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    kernel._r.seed(seed)
    try:
        return trio.run(main, random.Random(seed), clock=MockClock(autojump_threshold=0), instruments=instruments)
    finally:
        kernel._ALLOW_DETERMINISTIC_SCHEDULING = before[0]  # type: ignore[misc]
        kernel._r.setstate(before[1])
