import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hostile.attack import Victim, settled
from tests.soak.scale import WHOLE, within

# Short, so that what takes seconds in life takes part of one here; the order of the bounds stays the same.
QUICK = {
    "head_seconds": 0.6,
    "idle_seconds": 0.6,
    "body_seconds": 0.6,
    "stall_seconds": 0.6,
    "reset_seconds": 0.3,
    "linger_seconds": 0.5,
    "close_seconds": 0.5,
    "leave_seconds": 0.8,
    "ping_seconds": 0.3,
    "tls_seconds": 0.6,
}


@pytest.fixture(scope="module")
def survivor() -> Iterator[Victim]:
    """One hardened process for all tests of a module; at its end nothing may be left of them."""
    victim = Victim({"kind": "hardened", "limits": {"stall_seconds": 2.0, "leave_seconds": 2.0}}).start()
    try:
        for _ in range(20):
            victim.must_be_well()
        before = victim.census()
        yield victim
        victim.hang_up()
        settled(victim, before)
        victim.terminate()
        assert victim.wait(within(5)) == 0
    finally:
        victim.end()


@pytest.fixture(scope="module")
def hardened() -> Iterator[dict[str, Victim]]:
    """The processes of ``either`` by their orders."""
    victims: dict[str, Victim] = {}
    yield victims
    for victim in victims.values():
        victim.end()


@pytest.fixture
def make_victim() -> Iterator[Any]:
    """Start a process of one's own: ``make_victim(kind="stock", limits={...}, lifespan=...)``."""
    victims: list[Victim] = []

    def make(kind: str = "hardened", **order: Any) -> Victim:
        victim = Victim({"kind": kind, **order})
        victims.append(victim)
        return victim.start()

    yield make
    for victim in victims:
        victim.end()


STOCK = pytest.param(
    "stock",
    marks=[pytest.mark.soak, pytest.mark.xfail(reason="stock Hypercorn 0.18 has the fault", strict=True)],
)


@pytest.fixture(params=["hardened", STOCK] if os.environ.get("NERVE_STOCK") == "1" or WHOLE else ["hardened"])
def either(request: pytest.FixtureRequest, make_victim: Any, hardened: dict[str, Victim]) -> Any:
    """The same attack on both servers: on stock Hypercorn it has to succeed, or the cure would not be needed.

    Stock waits for its faults to show, so it takes part with ``NERVE_STOCK=1`` and in the whole soak only.  A hardened
    process goes on to the next test, if there is one with the same limits.
    """

    def make(**order: Any) -> Victim:
        if request.param == "stock":
            stock: Victim = make_victim("stock", **order)
            return stock
        name = json.dumps(order, sort_keys=True)
        victim = hardened.get(name)
        if victim is not None and victim.alive:
            victim.hang_up()
            victim.get("/forget")
            return victim
        if victim is not None:
            victim.end()
        hardened[name] = Victim({"kind": "hardened", **order})
        return hardened[name].start()

    return make
