from collections.abc import Iterator

import pytest

from nerve.client.plain import PlainClient, open_client
from tests.live.instance import Instance


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """A claimed server that the tests of a module share; each makes a session of its own."""
    made = Instance(tmp_path_factory.mktemp("instance"))
    try:
        made.foreground()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def token(instance: Instance) -> str:
    return instance.claim()


@pytest.fixture
def client(instance: Instance, token: str) -> Iterator[PlainClient]:
    with open_client(instance.address, token) as opened:
        yield opened
