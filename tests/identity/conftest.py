from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from nerve.identity.service import AuthSettings
from nerve.store.inline import InlineDatabase, open_inline
from tests.identity.identity_house import LOCAL, House, Opening, open_house
from tests.identity.two_people import Pair, create

HERE = Path(__file__).parent


def run_autojump(fn: Callable[[], Any], clock: object = None, **options: Any) -> Any:
    return trio.run(fn, clock=MockClock(autojump_threshold=0), **options)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing here waits for real, except beside real threads: an autojumping clock takes those for idle.

    A fixture would not do: pytest-trio only looks at the clocks that a test function names itself.
    """
    for item in items:
        if (
            item.get_closest_marker("trio")
            and item.path.is_relative_to(HERE)
            and "threads" not in getattr(item, "fixturenames", ())
        ):
            item.add_marker(pytest.mark.trio(run=run_autojump), append=False)


@pytest.fixture
def database() -> Iterator[InlineDatabase]:
    with open_inline() as database:
        yield database


@pytest.fixture
async def opening(database: InlineDatabase) -> AsyncIterator[Opening]:
    """Opens houses, by default on one database; none of them may have answered with an undeclared error."""
    houses: list[House] = []

    async def open_one(settings: AuthSettings = LOCAL, on: InlineDatabase = database, **options: Any) -> House:
        houses.append(await open_house(on, settings, **options))
        return houses[-1]

    yield open_one
    assert [name for house in houses for name in house.undeclared] == []


@pytest.fixture
async def house(opening: Opening) -> House:
    """Ready, and not claimed yet."""
    return await opening()


@pytest.fixture
async def pair(house: House) -> Pair:
    alice = await house.alice()
    alice_id = (await alice.get("/api/accounts/me")).json["id"]
    made = await create(alice)
    return Pair(house, alice, await house.signed_in("bob"), alice_id, made.json["id"])
