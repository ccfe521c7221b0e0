from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import Instance


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    made = Instance(tmp_path)
    try:
        yield made
    finally:
        made.close()
