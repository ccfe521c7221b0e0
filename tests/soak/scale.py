"""How long the long proofs are: ``NERVE_SOAK=whole`` for `make soak`, otherwise a sample.  Seeds, for replays."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

SCALE = os.environ.get("NERVE_SOAK", "sample")
if SCALE not in ("sample", "whole"):
    raise ValueError(f"NERVE_SOAK is sample or whole, not {SCALE!r}")
WHOLE = SCALE == "whole"

# A proof that says little in a short time: CI leaves it to `make soak`.
only_whole = pytest.mark.skipif(not WHOLE, reason="part of `make soak` only")


def amount(sample: T, whole: T) -> T:
    return whole if WHOLE else sample


def within(seconds: float) -> float:
    """A bound in real time; a machine that does other work meanwhile gets enough more to say nothing about itself."""
    return seconds if WHOLE else seconds + 30.0


def seed(make: Callable[[], int]) -> int:
    """The seed of this run: ``NERVE_SOAK_SEED``, else a new one."""
    given = os.environ.get("NERVE_SOAK_SEED")
    return make() if given is None else int(given)
