import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.soak import scale
from tests.soak.daemon import Daemon


@pytest.fixture
def rng(capsys: pytest.CaptureFixture[str]) -> random.Random:
    """Seeded; the seed is shown so that a failure can be replayed with NERVE_SOAK_SEED."""
    seed = scale.seed(lambda: random.randrange(1 << 32))
    line = f"NERVE_SOAK={scale.SCALE} NERVE_SOAK_SEED={seed}"
    print(line)  # a failure shows it
    with capsys.disabled():
        print(f"\n{line}")
    return random.Random(seed)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Show a measured figure beside the dots."""

    def show(line: str) -> None:
        print(line)
        with capsys.disabled():
            print(line)

    return show


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A claimed, running server."""
    daemon = Daemon(tmp_path / "home", tmp_path / "workspace")
    with ExitStack() as stack:
        stack.callback(daemon.end)
        daemon.start()
        daemon.claim()
        yield daemon
