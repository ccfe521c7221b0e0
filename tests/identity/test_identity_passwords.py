"""Changing one's own password."""

from typing import Any

import pytest
import trio

from tests.asgi_client import Reply
from tests.identity.identity_house import PASSWORD, House
from tests.identity.two_people import Pair, change, create, told


@pytest.mark.req("ACCT-19", "ACCT-20", "ACCT-03")
async def test_a_new_password(pair: Pair) -> None:
    before = (await pair.bob.get("/api/accounts/me")).json
    reply = await change(pair.bob, current_password=PASSWORD, new_password="battery staple")
    assert (reply.status, reply.json) == (200, before)
    assert (await pair.house.login(PASSWORD, username="bob")).status == 401
    assert (await pair.house.login("battery staple", username="bob")).status == 200
    assert (await pair.house.login(PASSWORD, username="alice")).status == 200
    assert (await pair.bob.get("/api/auth/check")).status == 200  # sessions stay


@pytest.mark.req("ACCT-21", "ACCT-22")
@pytest.mark.parametrize(
    ("current", "sentence"),
    [
        ({}, "The current password is needed to change it."),
        ({"current_password": None}, "The current password is needed to change it."),
        ({"current_password": ""}, "The current password is not correct."),
        ({"current_password": "wrong"}, "The current password is not correct."),
        ({"current_password": PASSWORD + "x" * 72}, "The current password is not correct."),
    ],
)
async def test_the_current_password_is_needed(pair: Pair, current: dict[str, Any], sentence: str) -> None:
    assert told(await change(pair.bob, **current, new_password="battery staple")) == (403, sentence)
    assert (await pair.house.login(PASSWORD, username="bob")).status == 200


@pytest.mark.req("ACCT-35", "ACCT-36")
async def test_a_passwordless_account_gets_a_password(house: House) -> None:
    owner = await house.passwordless()
    assert (await owner.get("/api/accounts/me")).json["has_password"] is False
    reply = await change(owner, new_password=PASSWORD)
    assert (reply.status, reply.json["has_password"]) == (200, True)
    assert (await house.client.get("/api/auth/status")).json["login"] == "password"
    assert [(await house.login(word)).status for word in ("anything", PASSWORD)] == [401, 200]


async def test_guessing_the_current_password_is_slowed_like_a_sign_in(pair: Pair) -> None:
    for _ in range(4):
        await change(pair.bob, current_password="wrong", new_password="battery staple")
    begun = trio.current_time()
    await change(pair.bob, current_password="wrong", new_password="battery staple")
    assert trio.current_time() - begun == 2.0
    assert (await pair.house.login(username="alice")).status == 200
    assert trio.current_time() - begun == 2.0


async def test_of_two_password_changes_at_once_one_counts(pair: Pair) -> None:
    """Both knew the current password, but the second one's was no longer current."""
    pair.house.thread.seconds = 0.3
    replies: dict[str, Reply] = {}

    async def attempt(word: str) -> None:
        replies[word] = await change(pair.bob, current_password=PASSWORD, new_password=word)

    async with trio.open_nursery() as nursery:
        for word in ("one", "two"):
            nursery.start_soon(attempt, word)
    assert sorted(reply.status for reply in replies.values()) == [200, 403]
    for word, reply in replies.items():
        assert (await pair.house.login(word, username="bob")).status == (200 if reply.status == 200 else 401)


@pytest.mark.parametrize("operation", ["create", "change_password"])
async def test_hashing_waits_in_the_same_bounded_line(pair: Pair, operation: str) -> None:
    pair.house.thread.seconds = 0.3
    replies: list[Reply] = []

    async def attempt(number: int) -> None:
        if operation == "create":
            replies.append(await create(pair.alice, f"user{number}"))
        else:
            replies.append(await change(pair.bob, current_password="wrong", new_password="battery staple"))

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(attempt, number)
    good = 200 if operation == "create" else 403
    assert sorted(reply.status for reply in replies) == [good] * 4 + [503] * 2
