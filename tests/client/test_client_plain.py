"""The plain client has the names of the other one, and none besides that are not for a program without a loop."""

import inspect
from typing import Any

import pytest

from nerve.client import LiveSession, NerveClient
from nerve.client.plain import PlainClient, PlainLiveSession

OWN = {"portal", "client", "next_within"}
ASYNC_ONLY = {"tls", "run"}  # the plain one takes tls when it is opened


def public(cls: type[Any]) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


@pytest.mark.parametrize(("other", "plain"), [(NerveClient, PlainClient), (LiveSession, PlainLiveSession)])
def test_the_same_names(other: type[Any], plain: type[Any]) -> None:
    assert public(other) - ASYNC_ONLY == public(plain) - OWN


METHODS = sorted(
    name
    for name in public(NerveClient) & public(PlainClient)
    if inspect.isfunction(getattr(NerveClient, name)) and name not in ("call", "follow")
)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_parameters(name: str) -> None:
    other, plain = getattr(NerveClient, name), getattr(PlainClient, name)
    assert inspect.signature(plain).parameters == inspect.signature(other).parameters
    assert inspect.iscoroutinefunction(other)
    assert not inspect.iscoroutinefunction(plain)


@pytest.mark.parametrize("name", ["call", "follow"])
def test_the_parameters_of_what_is_written_twice(name: str) -> None:
    other, plain = (inspect.signature(getattr(cls, name)).parameters for cls in (NerveClient, PlainClient))
    assert list(other) == list(plain)
    assert [parameter.default for parameter in other.values()] == [parameter.default for parameter in plain.values()]
