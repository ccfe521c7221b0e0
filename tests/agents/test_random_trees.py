"""Random trees of agents under random stops, in orders that trio's scheduler draws from a seed.

No scope outlives its parent, each record settles exactly once, and summaries equal the records.  The long run is
tests/soak/test_soak_trees.py.
"""

from pathlib import Path

import pytest

from tests.agents.forest import Size, grow


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_small_tree(seed: int, tmp_path: Path) -> None:
    grow(tmp_path, seed, Size(agents=15, depth=8, width=8), moments=10)


@pytest.mark.slow
def test_a_tree_as_wide_as_a_play_may_be(tmp_path: Path) -> None:
    grow(tmp_path, 105, Size(), moments=12)
