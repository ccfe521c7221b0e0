"""The true thing: threads, the group-commit writer, the whole house with its sockets, on the real clock."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from nerve.app import OpenHouse, open_house
from nerve.config import load
from nerve.effects import Effects, in_thread
from nerve.identity.operator import AccountOperator
from nerve.store.threads import ThreadDatabase, open_database
from tests.asgi_client import AsgiClient, Reply
from tests.identity.identity_house import LOCAL, PASSWORD, Opening
from tests.spec_client import SpecObserver

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("threads")]


@pytest.fixture
def threads() -> None:
    """Asks for the real clock."""


@pytest.fixture
async def thread_database(tmp_path: Path) -> AsyncIterator[ThreadDatabase]:
    async with open_database(tmp_path / "nerve.db") as database:
        yield database


@pytest.mark.req("CLAIM-12", "CLAIM-11")
async def test_of_twenty_claims_at_once_one_wins(opening: Opening, thread_database: ThreadDatabase) -> None:
    house = await opening(LOCAL, thread_database, blocking=in_thread)
    token = await house.setup_token()
    replies: list[Reply] = []

    async def attempt(number: int) -> None:
        body = {"setup_token": token, "username": f"user{number}", "password": PASSWORD}
        replies.append(await house.client.post("/api/setup/claim", json=body))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(attempt, number)
    assert sorted(reply.status for reply in replies) == [200] + [409] * 19
    assert await house.setup_token() is None
    assert [account.has_password for account in house.identity.accounts()] == [True]


async def test_many_changes_at_once_leave_the_newest_directory(
    opening: Opening, thread_database: ThreadDatabase
) -> None:
    """Their commits share a transaction and their replies come in any order."""
    house = await opening(LOCAL, thread_database)
    alice = await house.alice()
    ids = []
    for number in range(8):
        reply = await alice.post("/api/accounts", json={"username": f"user{number}", "password": PASSWORD})
        ids.append(reply.json["id"])
    async with trio.open_nursery() as nursery:
        for account_id in ids:
            nursery.start_soon(alice.post, f"/api/accounts/{account_id}/disable")
    accounts = (await alice.get("/api/accounts")).json["accounts"]
    assert [account["enabled"] for account in accounts] == [True] + [False] * 8


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[OpenHouse]:
    environ = {"NERVE_HOME": str(tmp_path / "home"), "NERVE_WORKSPACE": str(tmp_path / "workspace")}
    async with open_house(load(None, environ, tmp_path), Effects(), "127.0.0.1") as house:
        yield house


async def claimed(whole: OpenHouse) -> AsgiClient:
    """alice's client of the whole house."""
    operator = AccountOperator(whole.services.database, Effects())
    client = AsgiClient(whole.app, observers=(SpecObserver(),))
    body = {"setup_token": await operator.setup_token(), "username": "alice", "password": PASSWORD}
    reply = await client.post("/api/setup/claim", json=body)
    assert reply.status == 200
    return client.with_(token=reply.json["token"])


@pytest.mark.req("ACCT-33")
@pytest.mark.parametrize("by", ["the api", "the command line"])
async def test_a_disabled_accounts_sockets_are_closed(whole: OpenHouse, tmp_path: Path, by: str) -> None:
    alice = await claimed(whole)
    made = await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD})
    login = await alice.with_(token=None).post("/api/auth/login", json={"username": "bob", "password": PASSWORD})
    bob = alice.with_(token=login.json["token"])
    async with alice.websocket() as kept, bob.websocket() as first, bob.websocket() as second:
        for socket in (kept, first, second):
            await socket.receive_until("session_status")
        if by == "the api":
            assert (await alice.post(f"/api/accounts/{made.json['id']}/disable")).status == 200
        else:
            async with open_database(whole.services.config.paths.database) as theirs:
                await AccountOperator(theirs, Effects()).disable("bob")
        for socket in (first, second):
            assert (await socket.expect_close(within=1.5)).code == 1008
        await kept.send_json({"type": "ping"})
        await kept.receive_until("pong")
    async with bob.websocket() as refused:
        assert (await refused.expect_close()).code == 4001


@pytest.mark.req("ACTOR-11", "ACTOR-08", "AUTH-46", "ACCT-05")
async def test_what_is_stored_is_the_actors_id(whole: OpenHouse) -> None:
    alice = await claimed(whole)
    me = (await alice.get("/api/auth/me")).json
    made = await alice.post("/api/sessions", json={"title": "Mine"})
    assert made.json["created_by_actor_id"] == me["actor"]["id"] != me["account"]["id"]
    await alice.post("/api/chat", json={"message": "hello", "session_id": made.json["id"]})
    change = {"username": "liddell", "display_name": "A. Liddell"}
    await alice.patch(f"/api/accounts/{me['account']['id']}", json=change)
    session = (await alice.get(f"/api/sessions/{made.json['id']}")).json
    messages = (await alice.get(f"/api/sessions/{made.json['id']}/messages")).json["messages"]
    assert session["created_by_actor_id"] == me["actor"]["id"]
    assert [m["actor_id"] for m in messages if m["role"] == "user"] == [me["actor"]["id"]]
    labels = {actor["id"]: actor["display_name"] for actor in (await alice.get("/api/actors")).json["actors"]}
    assert labels[session["created_by_actor_id"]] == "A. Liddell"


@pytest.mark.req("CLAIM-30")
async def test_the_claim_is_allowed_under_lockdown(tmp_path: Path) -> None:
    environ = {
        "NERVE_HOME": str(tmp_path / "home"),
        "NERVE_WORKSPACE": str(tmp_path / "workspace"),
        "NERVE_LOCKDOWN": "1",
    }
    loaded = load(None, environ, tmp_path)
    assert loaded.config.lockdown
    async with open_house(loaded, Effects(), "127.0.0.1") as house:
        alice = await claimed(house)
        assert (await alice.get("/api/accounts/me")).json["username"] == "alice"
