"""Agents for a long time: random trees as deep and as wide as a play may be, stopped, forced and crashed at random."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.forest import Size, grow
from tests.soak.scale import only_whole

SIZES = (Size(), Size(agents=60, depth=8, width=3), Size(agents=12, depth=8, width=5))
TREES = 150


@pytest.mark.soak
@only_whole
def test_trees_that_people_shake(rng: random.Random, say: Callable[[str], None], tmp_path: Path) -> None:
    grown = 0
    for n in range(TREES):
        seed = rng.randrange(1 << 32)
        say_seed = f"tree {n}: seed {seed}, {SIZES[n % len(SIZES)]}"
        print(say_seed)  # a failure shows it
        grown += grow(tmp_path / str(n), seed, SIZES[n % len(SIZES)], moments=20)
    say(f"{TREES} trees with {grown} scopes")
