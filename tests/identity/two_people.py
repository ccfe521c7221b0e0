"""alice and bob at the front door of the accounts."""

from typing import Any

from attrs import frozen

from tests.asgi_client import AsgiClient, Reply
from tests.identity.identity_house import PASSWORD, House


@frozen
class Pair:
    """alice and bob, both with ``PASSWORD`` and signed in."""

    house: House
    alice: AsgiClient
    bob: AsgiClient
    alice_id: str
    bob_id: str

    async def on_bob(self, verb: str) -> Reply:
        return await self.alice.post(f"/api/accounts/{self.bob_id}/{verb}")


async def create(client: AsgiClient, username: str = "bob", password: str = PASSWORD, **more: Any) -> Reply:
    return await client.post("/api/accounts", json={"username": username, "password": password, **more})


async def change(client: AsgiClient, **body: Any) -> Reply:
    return await client.put("/api/accounts/me/password", json=body)


def told(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.json["detail"]
