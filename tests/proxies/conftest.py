from collections.abc import Iterator

import pytest

from tests.proxies.behind import KINDS, Kind, Nerve, Site, nerve_with, running, settings


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    found = KINDS[request.param]
    found.required()
    return found


@pytest.fixture(scope="package")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nerve]:
    """As the page says."""
    with nerve_with(settings(), tmp_path_factory.mktemp("configured") / "nerve") as nerve:
        yield nerve


@pytest.fixture(scope="package")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nerve]:
    """It knows its public name, and trusts no proxy."""
    with nerve_with(settings("trusted_proxies"), tmp_path_factory.mktemp("named") / "nerve") as nerve:
        yield nerve


@pytest.fixture(scope="package", params=KINDS)
def site(request: pytest.FixtureRequest, configured: Nerve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("site") / "proxy"
    with running(KINDS[request.param], root, configured.upstream) as proxy:
        yield Site(configured, proxy)


@pytest.fixture(scope="package", params=KINDS)
def distrusted(
    request: pytest.FixtureRequest, named: Nerve, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("distrusted") / "proxy"
    with running(KINDS[request.param], root, named.upstream) as proxy:
        yield Site(named, proxy)
