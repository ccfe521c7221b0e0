"""Signing in over and over, and how long it takes."""

import trio

from tests.identity.identity_house import PASSWORD, House


async def timed(house: House, password: str = "wrong", **more: str) -> tuple[int, float]:
    """The status, and the seconds it took."""
    begun = trio.current_time()
    reply = await house.login(password, **more)
    return reply.status, round(trio.current_time() - begun, 3)


async def fail(house: House, times: int, **more: str) -> None:
    for _ in range(times):
        assert (await house.login("wrong", **more)).status == 401


async def with_bob(house: House) -> str:
    """alice and bob, both with ``PASSWORD``; bob's id."""
    alice = await house.alice()
    reply = await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD})
    return str(reply.json["id"])
