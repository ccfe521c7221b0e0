from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminals import PASSWORD, House, Seat
from tests.live.instance import Instance


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    made = Instance(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = Instance(tmp_path_factory.mktemp("house"))
    try:
        made.foreground()
        yield House(made, made.claim(password=PASSWORD))
    finally:
        made.close()


@pytest.fixture
def seat(house: House) -> Seat:
    return Seat(house, house.new_session())
