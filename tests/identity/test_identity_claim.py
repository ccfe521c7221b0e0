"""The claim: in which order it is refused, that one wins, and that nothing is ever half done."""

from typing import Any

import apsw
import pytest
import trio
from attrs import evolve

from nerve.contract.route import AuthMode
from nerve.store.instance import CLAIMED_AT, SETUP_TOKEN, fact
from tests.asgi_client import Reply
from tests.identity.identity_house import LOCAL, PASSWORD, House, Opening, seconds_now

COMPLETE = (409, {"detail": "Setup of this instance is complete already."})
WRONG_TOKEN = (403, {"detail": "The setup token is not valid."})
BOTH_OR_NEITHER = {"detail": 'Send either a password or "passwordless" true, not both and not neither.'}
NO_USERNAME = {"detail": "A claim with a password needs a username."}
TOO_LONG = {"detail": "A password has at most 72 bytes in UTF-8."}
BAD_USERNAME = {
    "detail": "A username has 1 to 32 characters, a-z, 0-9, dot, dash or underscore, starts with a letter or digit,"
    " and is not a reserved word."
}


async def post(house: House, body: Any, **options: Any) -> Reply:
    return await house.client.post("/api/setup/claim", json=body, **options)


async def assert_unclaimed(house: House) -> None:
    """Nothing was written, and the token is still good."""
    assert (await house.client.get("/api/auth/status")).json["login"] == "setup"
    assert await house.database.read(fact, CLAIMED_AT) is None
    assert (await house.claim()).status == 200


@pytest.mark.req("CLAIM-02", "CLAIM-03", "CLAIM-04", "CLAIM-07", "CLAIM-31", "CLAIM-32", "CLAIM-36")
async def test_a_claim_with_a_password(house: House) -> None:
    reply = await house.claim(username=" Alice ", password=PASSWORD, display_name="Alice Liddell")
    assert (reply.status, list(reply.json)) == (200, ["token"])
    assert "set-cookie" not in reply.headers
    client = house.client.with_(token=reply.json["token"])
    accounts = (await client.get("/api/accounts")).json["accounts"]
    assert [(a["username"], a["display_name"], a["has_password"]) for a in accounts] == [
        ("alice", "Alice Liddell", True)
    ]
    assert (await client.get("/api/accounts/me")).json == accounts[0]
    assert (await house.client.get("/api/auth/status")).json["login"] == "password"
    assert (await house.login("wrong")).status == 401
    assert (await house.login(username="alice")).status == 200


@pytest.mark.req("CLAIM-05", "CLAIM-06", "CLAIM-33", "CLAIM-36", "CLAIM-37")
@pytest.mark.parametrize("more", [{}, {"username": None, "password": None, "display_name": None}, {"username": " "}])
async def test_a_passwordless_claim(house: House, more: dict[str, str | None]) -> None:
    owner = await house.passwordless(**more)
    [account] = (await owner.get("/api/accounts")).json["accounts"]
    assert (account["username"], account["display_name"], account["has_password"]) == (None, "", False)
    assert (await house.client.get("/api/auth/status")).json["login"] == "none"


@pytest.mark.req("CLAIM-05")
async def test_a_passwordless_claim_may_name_its_owner(house: House) -> None:
    owner = await house.passwordless(username="Bob", display_name="Bob")
    account = (await owner.get("/api/accounts/me")).json
    assert (account["username"], account["display_name"], account["has_password"]) == ("bob", "Bob", False)


@pytest.mark.req("CLAIM-06")
async def test_the_display_name_is_optional(house: House) -> None:
    reply = await house.claim(username="alice", password=PASSWORD)
    account = (await house.client.with_(token=reply.json["token"]).get("/api/accounts/me")).json
    assert account["display_name"] == ""


@pytest.mark.req("CLAIM-08", "CLAIM-24")
async def test_the_token_is_taken_from_the_body_only(house: House) -> None:
    token = await house.setup_token()
    body = {"username": "alice", "password": PASSWORD}
    assert token is not None
    for options in (
        {"query": {"setup_token": token}},
        {"headers": {"authorization": f"Bearer {token}"}},
        {"headers": {"cookie": f"setup_token={token}"}},
        {"headers": {"x-setup-token": token}},
    ):
        assert (await post(house, body, **options)).status == 422
    await assert_unclaimed(house)


@pytest.mark.req("CLAIM-09", "CLAIM-21")
async def test_the_token_is_dead_afterwards(house: House) -> None:
    token = await house.setup_token()
    await house.alice()
    assert await house.setup_token() is None
    reply = await post(house, {"setup_token": token, "username": "mallory", "password": "another"})
    assert (reply.status, reply.json) == COMPLETE
    assert (await house.login(PASSWORD, username="alice")).status == 200


@pytest.mark.req("CLAIM-18", "CLAIM-29")
@pytest.mark.parametrize("token", ["wrong", "setup-secret-1-", "é" * 40, "x" * 5000, "\0"])
async def test_a_wrong_token_is_403(house: House, token: str) -> None:
    reply = await post(house, {"setup_token": token, "passwordless": True})
    assert (reply.status, reply.json) == WRONG_TOKEN
    await assert_unclaimed(house)


@pytest.mark.req("CLAIM-19")
async def test_403_when_no_stored_token_can_match(house: House) -> None:
    token = await house.setup_token()
    await house.database.write(lambda db: db.execute("DELETE FROM instance WHERE key = 'setup_token'"))
    reply = await post(house, {"setup_token": token, "passwordless": True})
    assert (reply.status, reply.json) == WRONG_TOKEN


@pytest.mark.req("CLAIM-13", "CLAIM-14", "CLAIM-15", "CLAIM-16", "CLAIM-17", "CLAIM-29")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"username": "a", "password": "p", "passwordless": True}, BOTH_OR_NEITHER),
        ({"username": "a"}, BOTH_OR_NEITHER),
        ({"username": "a", "password": None, "passwordless": False}, BOTH_OR_NEITHER),
        ({"password": "p"}, NO_USERNAME),
        ({"password": "p", "username": None}, NO_USERNAME),
        ({"password": "p", "username": "  "}, NO_USERNAME),
        ({"password": "p", "username": "a b"}, BAD_USERNAME),
        ({"password": "p", "username": "-a"}, BAD_USERNAME),
        ({"password": "p", "username": "Nerve"}, BAD_USERNAME),
        ({"password": "p", "username": "a" * 33}, BAD_USERNAME),
        ({"password": "p", "username": "\u212aate"}, BAD_USERNAME),
        ({"passwordless": True, "username": "system"}, BAD_USERNAME),
        ({"username": "a", "password": "x" * 73}, TOO_LONG),
        ({"username": "a", "password": "é" * 37}, TOO_LONG),
    ],
)
async def test_400_only_with_the_right_token(house: House, body: dict[str, Any], expected: dict[str, str]) -> None:
    reply = await post(house, {"setup_token": "wrong", **body})
    assert (reply.status, reply.json) == WRONG_TOKEN
    reply = await house.claim(**body)
    assert (reply.status, reply.json) == (400, expected)
    await assert_unclaimed(house)


@pytest.mark.req("CLAIM-24", "CLAIM-25", "CLAIM-26", "CLAIM-27")
@pytest.mark.parametrize(
    "body",
    [
        {"passwordless": True},
        {"setup_token": None, "passwordless": True},
        {"setup_token": "", "passwordless": True},
        {"setup_token": "x", "username": "a", "password": ""},
        {"setup_token": 7, "passwordless": True},
        {"setup_token": "x", "passwordless": "true"},
        {"setup_token": "x", "passwordless": 1},
        {"setup_token": "x", "username": 7, "password": "p"},
        {"setup_token": "x", "username": "a", "password": ["p"]},
        {"setup_token": "x", "passwordless": True, "display_name": {}},
        [],
        None,
    ],
)
async def test_422_before_everything_else(opening: Opening, body: Any) -> None:
    """Also where the instance is not ready, or claimed already."""
    unready = await opening(evolve(LOCAL, jwt_secret=None))
    assert (await post(unready, body)).status == 422
    house = await opening()
    assert (await post(house, body)).status == 422
    await house.claim()
    assert (await post(house, body)).status == 422


@pytest.mark.req("CLAIM-28")
async def test_503_comes_before_409(opening: Opening) -> None:
    await (await opening()).claim()
    unready = await opening(evolve(LOCAL, jwt_secret=None))
    assert (await post(unready, {"setup_token": "x", "passwordless": True})).status == 503


@pytest.mark.req("CLAIM-21")
async def test_409_comes_before_403_and_400(house: House) -> None:
    await house.claim()
    for body in ({"setup_token": "wrong"}, {"setup_token": "wrong", "passwordless": True, "password": "p"}):
        reply = await post(house, body)
        assert (reply.status, reply.json) == COMPLETE


@pytest.mark.req("CLAIM-01")
async def test_in_external_mode_there_is_no_such_route(opening: Opening) -> None:
    house = await opening(evolve(LOCAL, mode=AuthMode.EXTERNAL, external_secret=b"x" * 64))
    reply = await post(house, {"setup_token": "x", "passwordless": True})
    assert (reply.status, reply.json) == (404, {"detail": "Not Found"})
    assert await house.setup_token() is None


@pytest.mark.req("CLAIM-02")
@pytest.mark.parametrize("kind", ["system", "legacy", "junk"])
async def test_a_credential_changes_nothing(house: House, kind: str) -> None:
    clients = {
        "system": house.with_token(typ="system", iat=seconds_now(), exp=seconds_now() + 300),
        "legacy": house.with_token(sub="user", exp=seconds_now() + 300),
        "junk": house.client.with_(token="junk"),
    }
    body = {"setup_token": "wrong", "passwordless": True}
    assert (await clients[kind].post("/api/setup/claim", json=body)).status == 403
    body["setup_token"] = str(await house.setup_token())
    assert (await clients[kind].post("/api/setup/claim", json=body)).status == 200


@pytest.mark.req("CLAIM-12", "CLAIM-20", "CLAIM-22")
@pytest.mark.parametrize("passwordless", [False, True])
async def test_of_twenty_at_once_exactly_one_wins(house: House, passwordless: bool) -> None:
    """Losers passed the token check as well; bcrypt is busy while they wait."""
    token = await house.setup_token()
    house.thread.seconds = 0.3
    replies: dict[int, Reply] = {}

    async def attempt(number: int) -> None:
        body: dict[str, Any] = {"setup_token": token, "username": f"user{number}"}
        body |= {"passwordless": True} if passwordless else {"password": f"password {number}"}
        replies[number] = await post(house, body)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(attempt, number)
    winners = [number for number, reply in replies.items() if reply.status == 200]
    assert len(winners) == 1
    assert {(r.status, str(r.json)) for n, r in replies.items() if n not in winners} == {(409, str(COMPLETE[1]))}
    assert len(house.thread.calls) == (0 if passwordless else 1)
    client = house.client.with_(token=replies[winners[0]].json["token"])
    [account] = (await client.get("/api/accounts")).json["accounts"]
    assert account["username"] == f"user{winners[0]}"
    if not passwordless:
        assert (await house.login(f"password {winners[0]}")).status == 200


@pytest.mark.req("CLAIM-20", "CLAIM-22")
async def test_a_loser_in_another_process_is_told_by_the_transaction(opening: Opening) -> None:
    """Two daemons on one database, which the lock of the home otherwise forbids: only the store stands between."""
    first, second = await opening(), await opening()
    token = await first.setup_token()
    first.thread.seconds, second.thread.seconds = 0.3, 0.5
    replies: list[Reply] = []

    async def attempt(house: House, name: str) -> None:
        replies.append(await post(house, {"setup_token": token, "username": name, "password": PASSWORD}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(attempt, first, "first")
        nursery.start_soon(attempt, second, "second")
    assert [reply.status for reply in replies] == [200, 409]
    assert len(second.thread.calls) == 1  # it was past all earlier checks
    await second.identity.start()
    assert (await second.login(username="first")).status == 200


@pytest.mark.req("CLAIM-11", "CLAIM-29")
@pytest.mark.parametrize(
    "broken",
    [
        "BEFORE UPDATE OF username ON accounts",
        "BEFORE UPDATE OF password_hash ON accounts",
        "BEFORE UPDATE OF display_name ON actors",
        "BEFORE INSERT ON instance",
        "BEFORE DELETE ON instance",
    ],
)
async def test_a_claim_that_fails_midway_leaves_nothing(house: House, broken: str) -> None:
    """Whichever of its writes fails, the others are undone."""

    def break_it(db: apsw.Connection) -> None:
        db.execute(f"CREATE TRIGGER broken {broken} BEGIN SELECT raise(ABORT, 'broken'); END")

    async def state() -> list[Any]:
        tables = ("actors", "accounts", "instance")
        return [await house.database.read(lambda db, t=t: list(db.execute(f"SELECT * FROM {t}"))) for t in tables]

    before = await state()
    await house.database.write(break_it)
    assert (await house.claim()).status == 500
    house.undeclared.clear()
    assert await state() == before
    await house.database.write(lambda db: db.execute("DROP TRIGGER broken"))
    await assert_unclaimed(house)


@pytest.mark.req("CLAIM-11")
async def test_a_claim_goes_on_when_its_client_leaves(house: House) -> None:
    house.thread.seconds = 0.3
    body = {"setup_token": await house.setup_token(), "username": "alice", "password": PASSWORD}
    async with house.client.open("POST", "/api/setup/claim", json=body):
        await trio.sleep(0.1)
    assert (await house.login(username="alice")).status == 200


@pytest.mark.req("CLAIM-34")
async def test_a_restart_before_the_claim_keeps_the_token(opening: Opening) -> None:
    first = await opening()
    token = await first.setup_token()
    home_id = first.identity.home_id
    second = await opening()
    assert await second.setup_token() == token is not None
    assert second.identity.home_id == home_id != ""
    reply = await post(second, {"setup_token": token, "passwordless": True})
    assert reply.status == 200


@pytest.mark.req("CLAIM-34", "CLAIM-09")
async def test_a_restart_after_the_claim_makes_no_new_token(opening: Opening) -> None:
    first = await opening()
    token = await first.setup_token()
    alice = await first.alice()
    second = await opening()
    assert await second.database.read(fact, SETUP_TOKEN) is None
    reply = await post(second, {"setup_token": token, "passwordless": True})
    assert (reply.status, reply.json) == COMPLETE
    assert (await second.client.with_(token=alice.token).get("/api/auth/check")).status == 200


async def test_bootstrap_makes_one_account_and_two_actors(house: House) -> None:
    owner = house.with_token(sub="user", exp=seconds_now() + 60)
    [account] = (await owner.get("/api/accounts")).json["accounts"]
    assert account | {"created_at": ""} == {
        "id": account["id"],
        "actor_id": account["actor_id"],
        "username": None,
        "display_name": "",
        "enabled": True,
        "has_password": False,
        "created_at": "",
    }
    actors = (await owner.get("/api/actors")).json["actors"]
    assert [(actor["id"], actor["kind"]) for actor in actors] == [
        ("act_system", "system"),
        (account["actor_id"], "human"),
    ]
