"""Where a generated route and a hand-written handler meet; a handler of another shape does not type-check."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from nerve.contract.caller import Caller
from nerve.contract.route import Endpoint, Reply, Route
from nerve.services import Services

P = TypeVar("P")
B = TypeVar("B")
R = TypeVar("R")


def bind(
    route: Route[P, B, R], handler: Callable[[Services, Caller, P, B], Awaitable[R | Reply[R]]]
) -> Endpoint[Services]:
    return Endpoint(route, handler)
