"""Contract chapter Accounts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio

from tests.asgi_client import AsgiClient, Reply
from tests.identity.identity_house import PASSWORD, START, House, seconds_now
from tests.identity.two_people import Pair, change, create, told

KEYS = {"id", "actor_id", "username", "display_name", "enabled", "has_password", "created_at"}
BAD_USERNAMES = ["", " ", "a b", ".a", "-a", "_a", "a" * 33, "a/b", "a@b", "ä", "a\0", "a\nb", "ＡＢ", "\u212a"]
RESERVED = ["system", "nerve", "agent", "assistant", "me", "none", "null", "anonymous", "NERVE", " Me "]
CREDENTIAL_WORDS = ("hash", "$2b$", "origin", "config", "bcrypt")


@pytest.mark.req("ACCT-04", "ACCT-06", "ACCT-36", "ACCT-37", "ACCT-03")
async def test_the_list(house: House) -> None:
    alice = await house.alice()
    for seconds, name in enumerate(["zoe", "bob", "mia"]):
        await trio.sleep(1)
        assert (await create(alice, name, display_name=name.title())).status == 200, seconds
    reply = await alice.get("/api/accounts")
    assert list(reply.json) == ["accounts"]
    accounts = reply.json["accounts"]
    assert [account["username"] for account in accounts] == ["alice", "zoe", "bob", "mia"]
    for number, account in enumerate(accounts):
        assert set(account) == KEYS
        assert account["id"].startswith("acc_")
        assert account["actor_id"].startswith("act_")
        assert account["enabled"] is True
        assert account["has_password"] is True
        assert account["created_at"].endswith("Z")
        assert datetime.fromisoformat(account["created_at"]) == START + timedelta(seconds=number)
    assert not any(word in reply.text.replace("has_password", "") for word in CREDENTIAL_WORDS)


@pytest.mark.req("ACCT-07")
async def test_the_list_has_disabled_accounts(pair: Pair) -> None:
    await pair.on_bob("disable")
    accounts = (await pair.alice.get("/api/accounts")).json["accounts"]
    assert [(account["username"], account["enabled"]) for account in accounts] == [("alice", True), ("bob", False)]


@pytest.mark.req("ACCT-08")
async def test_me(pair: Pair) -> None:
    assert (await pair.alice.get("/api/accounts/me")).json["id"] == pair.alice_id
    assert (await pair.bob.get("/api/accounts/me")).json["id"] == pair.bob_id


@pytest.mark.req("ACCT-02")
@pytest.mark.parametrize("kind", ["system", "mcp"])
async def test_system_credentials_are_403_on_every_route(pair: Pair, kind: str) -> None:
    begun = seconds_now()
    claims = {"typ": "system"} if kind == "system" else {"aud": "nerve-mcp"}
    client = pair.house.with_token(**claims, iat=begun, exp=begun + 300)
    for method, path, body in (
        ("GET", "/api/accounts", None),
        ("GET", "/api/accounts/me", None),
        ("POST", "/api/accounts", {"username": "eve", "password": PASSWORD}),
        ("PATCH", f"/api/accounts/{pair.bob_id}", {"username": "eve"}),
        ("PATCH", "/api/accounts/nobody", {}),
        ("POST", f"/api/accounts/{pair.bob_id}/disable", None),
        ("POST", f"/api/accounts/{pair.bob_id}/enable", None),
        ("PUT", "/api/accounts/me/password", {"new_password": PASSWORD}),
    ):
        reply = await client.request(method, path, **({} if body is None else {"json": body}))
        assert told(reply) == (403, "Accounts are managed by a signed-in person."), path
    assert (await client.get("/api/auth/me")).status == 200
    accounts = (await pair.alice.get("/api/accounts")).json["accounts"]
    assert [account["username"] for account in accounts] == ["alice", "bob"]


@pytest.mark.req("ACCT-09", "ACCT-10", "ACCT-03")
async def test_a_new_account_can_sign_in(house: House) -> None:
    alice = await house.alice()
    reply = await create(alice, " Bob.Smith-1_x ", "a secret of bob", display_name="Bob Smith")
    assert reply.status == 200
    account = reply.json
    assert set(account) == KEYS
    assert (account["username"], account["display_name"]) == ("bob.smith-1_x", "Bob Smith")
    assert (account["enabled"], account["has_password"]) == (True, True)
    bob = await house.signed_in("bob.smith-1_x", "a secret of bob")
    assert (await bob.get("/api/auth/me")).json["account"] == account
    assert account in (await alice.get("/api/accounts")).json["accounts"]


@pytest.mark.req("ACCT-11")
async def test_the_display_name_may_be_left_out(house: House) -> None:
    reply = await create(await house.alice())
    assert (reply.status, reply.json["display_name"]) == (200, "")


@pytest.mark.req("ACCT-26")
@pytest.mark.parametrize("username", [*BAD_USERNAMES, *RESERVED])
async def test_a_bad_username_is_400(pair: Pair, username: str) -> None:
    replies = [
        await create(pair.alice, username),
        await pair.alice.patch(f"/api/accounts/{pair.bob_id}", json={"username": username}),
    ]
    for reply in replies:
        assert told(reply)[0] == 400
        assert told(reply)[1].startswith("A username has 1 to 32 characters")
    assert (await pair.bob.get("/api/accounts/me")).json["username"] == "bob"


@pytest.mark.parametrize("username", ["b", "0", "a" * 32, "a.-_", "007", "mein", "nerves"])
async def test_an_odd_but_good_username(house: House, username: str) -> None:
    assert (await create(await house.alice(), username)).json["username"] == username


@pytest.mark.req("ACCT-23", "ACCT-24", "ACCT-25", "ACCT-38")
async def test_passwords_have_at_most_72_bytes(pair: Pair) -> None:
    too_long = (400, "A password has at most 72 bytes in UTF-8.")
    for password in ("x" * 73, "é" * 37, "\U0001f600" * 19, "x" * 10_000):
        assert told(await create(pair.alice, "mia", password)) == too_long
        reply = await change(pair.bob, current_password=PASSWORD, new_password=password)
        assert told(reply) == too_long
    for name, password in (("mia", "x" * 72), ("zoe", "é" * 36), ("kim", "\U0001f600" * 18)):
        assert (await create(pair.alice, name, password)).status == 200
        await pair.house.signed_in(name, password)
        assert (await pair.house.login(password[:-1], username=name)).status == 401
    assert (await change(pair.bob, current_password=PASSWORD, new_password="y" * 72)).status == 200


async def test_an_empty_password_is_400(pair: Pair) -> None:
    assert told(await create(pair.alice, "mia", "")) == (400, "The password is empty.")
    reply = await change(pair.bob, current_password=PASSWORD, new_password="")
    assert told(reply) == (400, "The password is empty.")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/accounts", {"username": "mia"}),
        ("POST", "/api/accounts", {"username": None, "password": "p"}),
        ("POST", "/api/accounts", {"username": "mia", "password": "p", "display_name": 7}),
        ("POST", "/api/accounts", {"username": "mia", "password": "p", "display_name": "x" * 201}),
        ("PATCH", "/api/accounts/{bob}", {"username": None}),
        ("PATCH", "/api/accounts/{bob}", {"display_name": None}),
        ("PUT", "/api/accounts/me/password", {"current_password": PASSWORD}),
        ("PUT", "/api/accounts/me/password", {"current_password": 7, "new_password": "p"}),
    ],
)
async def test_a_malformed_body_is_422(pair: Pair, method: str, path: str, body: dict[str, Any]) -> None:
    reply = await pair.alice.request(method, path.format(bob=pair.bob_id), json=body)
    assert reply.status == 422


@pytest.mark.req("ACCT-28", "ACCT-29", "ACCT-30")
async def test_a_taken_username_is_409(pair: Pair) -> None:
    taken = (409, "Another account has this username.")
    pair.house.thread.calls.clear()
    assert told(await create(pair.alice, "Alice")) == taken
    assert told(await create(pair.alice, "bob")) == taken
    assert told(await pair.alice.patch(f"/api/accounts/{pair.bob_id}", json={"username": " ALICE"})) == taken
    assert pair.house.thread.calls == []  # a name that is taken is not worth a hash
    assert (await pair.bob.get("/api/accounts/me")).json["username"] == "bob"
    own = await pair.alice.patch(f"/api/accounts/{pair.bob_id}", json={"username": "BOB", "display_name": "B"})
    assert (own.status, own.json["username"], own.json["display_name"]) == (200, "bob", "B")


@pytest.mark.req("ACCT-28")
async def test_of_two_with_one_name_at_once_one_is_made(house: House) -> None:
    alice = await house.alice()
    house.thread.seconds = 0.3
    replies: list[Reply] = []

    async def attempt() -> None:
        replies.append(await create(alice))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(attempt)
    assert sorted(reply.status for reply in replies) == [200, 409, 409]
    assert len((await alice.get("/api/accounts")).json["accounts"]) == 2


@pytest.mark.req("ACCT-30", "ACCT-31")
async def test_a_second_account_needs_a_first_with_name_and_password(house: House) -> None:
    owner = await house.passwordless()
    own_id = (await owner.get("/api/accounts/me")).json["id"]
    unnamed = "The first account has no username; give it one before adding another account."
    passwordless = "The first account has no password; set one before adding another account."
    assert told(await create(owner)) == (409, unnamed)
    await owner.patch(f"/api/accounts/{own_id}", json={"username": "alice"})
    assert told(await create(owner)) == (409, passwordless)
    await change(owner, new_password=PASSWORD)
    assert (await create(owner)).status == 200


@pytest.mark.req("ACCT-30", "ACCT-31")
async def test_a_password_without_a_name_is_not_enough(house: House) -> None:
    owner = await house.passwordless()
    await change(owner, new_password=PASSWORD)
    unnamed = "The first account has no username; give it one before adding another account."
    assert told(await create(owner)) == (409, unnamed)


@pytest.mark.req("ACCT-30", "ACCT-31")
async def test_the_last_enabled_account_can_not_be_disabled(pair: Pair) -> None:
    sentence = "This is the last enabled account; without it nobody could sign in."
    await pair.on_bob("disable")
    reply = await pair.alice.post(f"/api/accounts/{pair.alice_id}/disable")
    assert told(reply) == (409, sentence)
    assert (await pair.alice.get("/api/auth/check")).status == 200
    await pair.on_bob("enable")
    assert (await pair.alice.post(f"/api/accounts/{pair.alice_id}/disable")).status == 200
    assert (await pair.alice.get("/api/auth/check")).status == 401
    bob = await pair.house.signed_in("bob")
    assert told(await bob.post(f"/api/accounts/{pair.bob_id}/disable")) == (409, sentence)


@pytest.mark.req("ACCT-31")
async def test_of_two_who_disable_each_other_one_stays(pair: Pair) -> None:
    replies: list[Reply] = []

    async def attempt(client: AsgiClient, other: str) -> None:
        replies.append(await client.post(f"/api/accounts/{other}/disable"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(attempt, pair.alice, pair.bob_id)
        nursery.start_soon(attempt, pair.bob, pair.alice_id)
    assert sorted(reply.status for reply in replies) in ([200, 409], [200, 401])
    checks = [(await client.get("/api/auth/check")).status for client in (pair.alice, pair.bob)]
    assert sorted(checks) == [200, 401]


@pytest.mark.req("ACCT-30", "ACCT-31")
async def test_a_passwordless_account_is_not_enabled_among_others(pair: Pair) -> None:
    """Such a row can only come from elsewhere; enabled it would let anybody in."""
    await pair.on_bob("disable")
    await pair.house.database.write(
        lambda db: db.execute("UPDATE accounts SET password_hash = NULL WHERE id = ?", (pair.bob_id,))
    )
    sentence = "An account without a password can't be enabled while other accounts exist."
    assert told(await pair.on_bob("enable")) == (409, sentence)
    for password in ("", PASSWORD):
        assert (await pair.house.login(password, username="bob")).status == 401


@pytest.mark.req("ACCT-12", "ACCT-05", "ACTOR-08", "ACCT-14")
async def test_a_new_username_signs_in_and_the_actor_stays(pair: Pair) -> None:
    before = (await pair.bob.get("/api/accounts/me")).json
    reply = await pair.alice.patch(f"/api/accounts/{pair.bob_id}", json={"username": "Robert"})
    assert reply.json == before | {"username": "robert"}
    assert (await pair.bob.get("/api/auth/me")).json["actor"] == {
        "id": before["actor_id"],
        "kind": "human",
        "display_name": "",
        "username": "robert",
    }
    assert (await pair.house.login(username="bob")).status == 401
    assert (await pair.house.login(username="robert")).status == 200


@pytest.mark.req("ACCT-13", "ACCT-14", "ACTOR-08")
async def test_the_display_name_changes(pair: Pair) -> None:
    before = (await pair.bob.get("/api/accounts/me")).json
    reply = await pair.alice.patch(f"/api/accounts/{pair.bob_id}", json={"display_name": "Bob ünï\U0001f600"})
    assert reply.json == before | {"display_name": "Bob ünï\U0001f600"}
    cleared = await pair.alice.patch(f"/api/accounts/{pair.bob_id}", json={"display_name": ""})
    assert cleared.json == before


@pytest.mark.req("ACCT-14")
async def test_nothing_sent_changes_nothing(pair: Pair) -> None:
    before = (await pair.bob.get("/api/accounts/me")).json
    reply = await pair.alice.patch(f"/api/accounts/{pair.bob_id}", json={"enabled": False, "id": "x"})
    assert (reply.status, reply.json) == (200, before)


@pytest.mark.req("ACCT-27")
async def test_an_unknown_account_is_404(pair: Pair) -> None:
    for reply in (
        await pair.alice.patch("/api/accounts/acc_0000000000000000", json={"display_name": "x"}),
        await pair.alice.post("/api/accounts/acc_0000000000000000/disable"),
        await pair.alice.post("/api/accounts/bob/enable"),
    ):
        assert told(reply) == (404, "Account not found")


@pytest.mark.req("ACCT-15", "ACCT-16", "ACCT-17", "ACCT-18", "ACCT-34")
async def test_disable_and_enable_may_be_repeated(pair: Pair) -> None:
    before = (await pair.bob.get("/api/accounts/me")).json
    for _ in range(2):
        reply = await pair.on_bob("disable")
        assert (reply.status, reply.json) == (200, before | {"enabled": False})
    assert (await pair.house.login(username="bob")).status == 401
    for _ in range(2):
        reply = await pair.on_bob("enable")
        assert (reply.status, reply.json) == (200, before)
    assert (await pair.bob.get("/api/auth/check")).status == 200
    await pair.house.signed_in("bob")


@pytest.mark.req("ACCT-32", "ACCT-34", "AUTH-08")
async def test_the_next_request_of_a_disabled_account_fails(pair: Pair) -> None:
    assert (await pair.bob.get("/api/accounts")).status == 200
    await pair.on_bob("disable")
    for path in ("/api/accounts", "/api/auth/check", "/api/auth/me", "/api/actors"):
        assert (await pair.bob.get(path)).status == 401
    await pair.on_bob("enable")
    assert (await pair.bob.get("/api/accounts")).status == 200


async def test_listeners_hear_of_a_disabling_before_its_reply(pair: Pair) -> None:
    """This is how sockets get closed."""
    heard: list[str] = []
    forget = pair.house.identity.on_disabled(heard.append)
    await pair.on_bob("disable")
    assert heard == [pair.bob_id]
    await pair.on_bob("disable")
    await pair.on_bob("enable")
    assert heard == [pair.bob_id]
    forget()
    await pair.on_bob("disable")
    assert heard == [pair.bob_id]


@pytest.mark.req("ACCT-01")
async def test_anybody_manages_anybody(pair: Pair) -> None:
    """The newest account changes the oldest one."""
    reply = await pair.bob.patch(f"/api/accounts/{pair.alice_id}", json={"display_name": "A."})
    assert (reply.status, reply.json["display_name"]) == (200, "A.")
    assert (await create(pair.bob, "mia")).status == 200
    assert (await pair.bob.post(f"/api/accounts/{pair.alice_id}/disable")).status == 200
    assert (await pair.alice.get("/api/auth/check")).status == 401


async def test_created_at_is_when_it_was_made(pair: Pair) -> None:
    """And a change does not move it."""
    made = datetime.fromisoformat((await pair.bob.get("/api/accounts/me")).json["created_at"])
    assert made.tzinfo is not None
    await trio.sleep(100)
    reply = await pair.alice.patch(f"/api/accounts/{pair.bob_id}", json={"username": "robert"})
    assert datetime.fromisoformat(reply.json["created_at"]) == made == START.astimezone(UTC)
