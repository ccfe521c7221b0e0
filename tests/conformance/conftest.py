from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import pytest
import trio
from trio.testing import MockClock

from tests.conformance.by_address import Server, Unfit, add_options, complaint_of, given_by, in_order, sampled
from tests.conformance.recipes import start_of
from tests.conformance.remote_subject import opened_by_address
from tests.conformance.subject import Local, Start, Subject
from tests.house import open_house

HERE = Path(__file__).parent
SERVER = pytest.StashKey[Server]()
SCENARIO_SECONDS = 240.0  # by address, where nothing jumps


class Opening(Protocol):
    """Opens servers, each at its start, for as long as a block lasts; the given one if there is one."""

    def __call__(
        self, start: Start = ..., settings: Mapping[str, str] = ...
    ) -> AbstractAsyncContextManager[Subject]: ...


def run_autojump(fn: Callable[[], Any], clock: object = None, **options: Any) -> Any:
    return trio.run(fn, clock=MockClock(autojump_threshold=0), **options)


def run_bounded(fn: Callable[[], Any], clock: object = None, **options: Any) -> Any:
    async def bounded() -> Any:
        with trio.fail_after(SCENARIO_SECONDS):
            return await fn()

    return trio.run(bounded, **options)


def local(why: Local) -> pytest.MarkDecorator:
    return pytest.mark.local(why)


def starting_marks(start: Start) -> list[pytest.MarkDecorator]:
    match start:
        case Start.CLAIMED:
            return []
        case Start.UNCLAIMED:
            return [pytest.mark.unclaimed]
        case _:
            return [local(Local.ALONE)]


def succeeding(operation_id: str) -> Any:
    """A parameter of a test in which this operation succeeds."""
    marks = [pytest.mark.claims] if start_of(operation_id) is Start.UNCLAIMED else []
    return pytest.param(operation_id, marks=marks)


def marked(value: Any, why: Local | None) -> Any:
    """A parameter, marked if its scenario is local."""
    return value if why is None else pytest.param(value, marks=local(why))


# --- which server -------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    for marker in (
        "local(why): can't be played against a server that is only known by its address",
        "unclaimed: needs a server before its claim",
        "claims: makes the claim",
        "wrong_passwords: fails to sign in so often that the server answers late from then on",
    ):
        config.addinivalue_line("markers", marker)
    given_by(config)  # what can't be meant is told before anything else happens


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In memory nothing waits for real.  (pytest-trio only looks at clocks that a test function names itself.)"""
    by_address = given_by(config) is not None
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        if item.get_closest_marker("trio"):
            item.add_marker(pytest.mark.trio(run=run_bounded if by_address else run_autojump), append=False)
        if by_address and (mark := item.get_closest_marker("local")):
            item.add_marker(pytest.mark.skip(reason=f"local: {mark.args[0].value}"))
    if by_address:
        chosen = sampled(in_order(items), config.getoption("every"))
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Server | None:
    """The server at the given address; None in memory."""
    given = given_by(request.config)
    if given is None:
        return None
    try:
        met = Server.met(given)
    except Unfit as unfit:
        pytest.exit(f"{given.url} can't be tested: {unfit}", returncode=pytest.ExitCode.USAGE_ERROR)
    request.config.stash[SERVER] = met
    return met


@pytest.fixture
def opening(tmp_path: Path, server: Server | None) -> Opening:
    numbers = count(1)

    def open_one(
        start: Start = Start.CLAIMED, settings: Mapping[str, str] = MappingProxyType({})
    ) -> AbstractAsyncContextManager[Subject]:
        if server is not None:
            return opened_by_address(server, start, settings)
        return open_house(tmp_path / f"home-{next(numbers)}", start, settings=settings)

    return open_one


@pytest.fixture(autouse=True)
def given_server_is_ready(request: pytest.FixtureRequest) -> None:
    """By address: it is where the test needs it, or the test is skipped."""
    if "opening" not in request.fixturenames or (server := request.getfixturevalue("server")) is None:
        return
    if _before_the_claim(request.node):
        if server.claimed:
            pytest.skip("needs an unclaimed server, given with its --setup-token; and it can be claimed once")
        return
    try:
        server.owner()
    except Unfit as unfit:
        pytest.fail(f"{server.address.url}: {unfit}", pytrace=False)


def _before_the_claim(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("unclaimed", "claims"))


@pytest.fixture
async def subject(opening: Opening) -> AsyncIterator[Subject]:
    """A server that somebody has claimed."""
    async with opening(Start.CLAIMED) as subject:
        yield subject


# --- what is told at the end --------------------------------------------------------------------------------------


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """By address: what was wrong, what was not played and why, and what stays on the server."""
    if (given := given_by(config)) is None:
        return
    terminalreporter.section(f"conformance of {given.url}")
    for report in [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]:
        terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}\n    {complaint_of(report.longreprtext)}")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    for reason, times in reasons.most_common():
        terminalreporter.write_line(f"not played, {times}: {reason}")
    if (server := config.stash.get(SERVER, None)) is not None:
        terminalreporter.write_line(f"left on the server: {server.disabled} disabled accounts")
        for kept in server.kept:
            terminalreporter.write_line(f"left on the server, not as it should be: {kept}")
