"""Sign-in: who gets a token, and who gets the one sentence."""

from typing import Any

import pytest
import trio

from tests.asgi_client import Reply
from tests.identity.identity_house import PASSWORD, House
from tests.identity.sign_ins import timed, with_bob

BAD = (401, {"detail": "Invalid username or password"})


@pytest.mark.req("AUTH-17", "AUTH-18", "AUTH-28")
async def test_a_token_for_the_right_password(house: House) -> None:
    await house.alice()
    reply = await house.login(username="alice")
    assert (reply.status, list(reply.json)) == (200, ["token"])
    assert isinstance(reply.json["token"], str)
    assert reply.json["token"]
    assert "set-cookie" not in reply.headers
    client = house.client.with_(token=reply.json["token"])
    assert (await client.get("/api/auth/me")).json["account"]["username"] == "alice"


@pytest.mark.req("AUTH-19")
@pytest.mark.parametrize("body", [{}, {"username": None}, {"username": ""}, {"username": " ALICE "}])
async def test_the_sole_account_need_not_be_named(house: House, body: dict[str, Any]) -> None:
    await house.alice()
    assert (await house.login(**body)).status == 200


@pytest.mark.req("AUTH-20")
@pytest.mark.parametrize("body", [{}, {"username": None}, {"username": ""}])
async def test_among_two_accounts_a_name_is_needed(house: House, body: dict[str, Any]) -> None:
    await with_bob(house)
    reply = await house.login(**body)
    assert (reply.status, reply.json) == BAD


@pytest.mark.req("AUTH-21", "AUTH-22")
@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("alice", "wrong"),
        ("alice", ""),
        ("alice", PASSWORD + "\0"),
        ("alice", PASSWORD.upper()),
        ("nobody", PASSWORD),
        ("no such name at all!", PASSWORD),
        ("x" * 10_000, PASSWORD),
        ("system", PASSWORD),
    ],
)
async def test_one_sentence_for_whatever_is_wrong(house: House, username: str, password: str) -> None:
    await house.alice()
    reply = await house.login(password, username=username)
    assert (reply.status, reply.json) == BAD


@pytest.mark.req("AUTH-22", "AUTH-24")
async def test_unknown_and_disabled_names_take_as_long_as_wrong_passwords(house: House) -> None:
    """Each does one whole bcrypt computation, of the same cost."""
    bob_id = await with_bob(house)
    alice = await house.signed_in("alice")
    await alice.post(f"/api/accounts/{bob_id}/disable")
    house.thread.seconds = 0.3
    house.thread.calls.clear()
    assert await timed(house, "wrong", username="alice") == (401, 0.3)
    assert await timed(house, "wrong", username="nobody") == (401, 0.3)
    assert await timed(house, PASSWORD, username="bob") == (401, 0.3)
    assert await timed(house, "x" * 73, username="alice") == (401, 0.3)
    assert await timed(house) == (401, 0.3)
    assert {hashed[:7] for _, hashed in house.thread.calls} == {b"$2b$04$"}


@pytest.mark.req("AUTH-24")
async def test_the_right_password_of_a_disabled_account(house: House) -> None:
    bob_id = await with_bob(house)
    alice = await house.signed_in("alice")
    await alice.post(f"/api/accounts/{bob_id}/disable")
    reply = await house.login(username="bob")
    assert (reply.status, reply.json) == BAD


@pytest.mark.req("AUTH-23")
@pytest.mark.parametrize(
    "body", [{"password": ""}, {"password": "anything"}, {"password": "x" * 100, "username": "me"}]
)
async def test_a_passwordless_instance_takes_any_password(house: House, body: dict[str, str]) -> None:
    owner = await house.passwordless()
    expected = (await owner.get("/api/auth/me")).json
    reply = await house.login(**body)
    assert reply.status == 200
    client = house.client.with_(token=reply.json["token"])
    assert (await client.get("/api/auth/me")).json == expected
    assert house.thread.calls == []


@pytest.mark.req("AUTH-25", "AUTH-37")
async def test_before_the_claim_it_is_409(house: House) -> None:
    reply = await house.login("", username="alice")
    expected = {"detail": "Setup of this instance is not complete; claim it first."}
    assert (reply.status, reply.json) == (409, expected)


@pytest.mark.parametrize("body", [{}, {"password": 7}, {"password": None}, {"password": "x", "username": 7}, [], "x"])
async def test_a_malformed_sign_in_is_422(house: House, body: object) -> None:
    await house.alice()
    reply = await house.client.post("/api/auth/login", json=body)
    assert reply.status == 422
    assert all(set(problem) == {"type", "loc", "msg"} for problem in reply.json["detail"])


async def test_an_over_long_password_never_reaches_bcrypt(house: House) -> None:
    """bcrypt would cut it after 72 bytes and accept it."""
    alice = await house.alice()
    longest = "é" * 36
    change = {"current_password": PASSWORD, "new_password": longest}
    assert (await alice.put("/api/accounts/me/password", json=change)).status == 200
    assert (await house.login(longest)).status == 200
    assert (await house.login(longest + "x")).status == 401
    assert max(len(call[0]) for call in house.thread.calls) == 72


async def test_a_password_that_changes_during_the_check_does_not_count(house: House) -> None:
    """The check of the old one is in the line behind the change."""
    alice = await house.alice()
    house.thread.seconds = 1.0
    replies: list[Reply] = []

    async def sign_in() -> None:
        await trio.sleep(1.5)  # the new password is being hashed when this one takes its place
        replies.append(await house.login())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sign_in)
        change = {"current_password": PASSWORD, "new_password": "battery staple"}
        assert (await alice.put("/api/accounts/me/password", json=change)).status == 200
        assert replies == []
    assert [reply.status for reply in replies] == [401]


async def test_an_account_disabled_during_the_check_does_not_count(house: House) -> None:
    bob_id = await with_bob(house)
    alice = await house.signed_in("alice")
    house.thread.seconds = 1.0
    replies: list[Reply] = []

    async def sign_in() -> None:
        replies.append(await house.login(username="bob"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sign_in)
        await trio.sleep(0.5)
        await alice.post(f"/api/accounts/{bob_id}/disable")
    assert [reply.status for reply in replies] == [401]


async def test_a_disabled_passwordless_account_is_shut(house: House) -> None:
    """No rule of ours disables the only one; a hand at the database may."""
    await house.passwordless()
    await house.database.write(lambda db: db.execute("UPDATE accounts SET enabled = 0"))
    await house.identity.start()
    assert (await house.login("anything")).status == 401
