"""Scenarios of signing in, the claim and accounts, one for each of their own documented errors."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from tests.conformance.recipes import example_of, valid
from tests.conformance.subject import PASSWORD, Local, Play, Scenario, Start, Subject, new_account, new_person
from tests.contract.spec_reader import ERRORS
from tests.spec_client import Answer, SpecClient
from tests.spec_replies import BY_ID, Documented

TOO_LONG = "ü" * 36 + "x"  # 73 bytes, 37 characters
CROWD = 8  # more than may wait for a password check of one peer


def on(operation_id: str, code: str) -> Documented:
    return Documented(operation_id, ERRORS[code]["status"], code)


def changed(operation_id: str, start: Start = Start.CLAIMED, **fields: Any) -> Scenario:
    """A request that succeeds but for these fields of its body."""

    async def play(subject: Subject) -> Answer:
        request = await valid(subject, operation_id)
        return await request.client.call(operation_id, {**request.body, **fields}, path=request.path)

    return Scenario(play, start)


# --- auth ---------------------------------------------------------------------------------------------------------


async def sign_in_before_the_claim(subject: Subject) -> Answer:
    return await subject.anyone.call("auth.login", {"password": PASSWORD})


# --- the claim ----------------------------------------------------------------------------------------------------


async def claim_twice(subject: Subject) -> Answer:
    return await subject.anyone.call("setup.claim", example_of(BY_ID["setup.claim"]))


async def claim_without_a_name(subject: Subject) -> Answer:
    body = {"setup_token": await subject.setup_token(), "password": PASSWORD}
    return await subject.anyone.call("setup.claim", body)


# --- accounts -----------------------------------------------------------------------------------------------------


def unclaimed(operation_id: str) -> Scenario:
    """What an account may not do before the claim; the account is there, and somebody has a token for it."""

    async def play(subject: Subject) -> Answer:
        me = await subject.owner.ok("accounts.me")
        path = {"account_id": me["id"]} if "{account_id}" in BY_ID[operation_id].path else {}
        return await subject.owner.call(operation_id, example_of(BY_ID[operation_id]), path=path)

    return Scenario(play, Start.UNCLAIMED, local=Local.KEYS)


async def create_with_a_taken_name(subject: Subject) -> Answer:
    taken = (await subject.owner.ok("accounts.me"))["username"].upper()
    return await subject.owner.call("accounts.create", {"username": f" {taken} ", "password": PASSWORD})


async def rename_to_a_taken_name(subject: Subject) -> Answer:
    taken = (await subject.owner.ok("accounts.me"))["username"].capitalize()
    account = await new_account(subject)
    return await subject.owner.call("accounts.update", {"username": taken}, path={"account_id": account["id"]})


async def create_beside_an_unnamed_account(subject: Subject) -> Answer:
    return await subject.owner.call("accounts.create", {"username": "bob", "password": PASSWORD})


async def create_beside_a_passwordless_account(subject: Subject) -> Answer:
    me = await subject.owner.ok("accounts.me")
    await subject.owner.ok("accounts.update", {"username": "alice"}, path={"account_id": me["id"]})
    return await subject.owner.call("accounts.create", {"username": "bob", "password": PASSWORD})


async def change_a_password_without_the_old_one(subject: Subject) -> Answer:
    person, _ = await new_person(subject)
    return await person.call("accounts.change_password", {"new_password": "battery staple"})


async def disable_the_last_account(subject: Subject) -> Answer:
    me = await subject.owner.ok("accounts.me")
    return await subject.owner.call("accounts.disable", path={"account_id": me["id"]})


async def enable_a_passwordless_account_among_others(subject: Subject) -> Answer:
    account = await new_account(subject)
    path = {"account_id": account["id"]}
    await subject.owner.ok("accounts.disable", path=path)
    await subject.faults.forget_password(account["id"])
    return await subject.owner.call("accounts.enable", path=path)


# --- too many passwords at once -----------------------------------------------------------------------------------


def crowded(call: Callable[[Subject], Awaitable[Answer]]) -> Play:
    """Many calls at once."""

    async def play(subject: Subject) -> Answer:
        return await turned_away(lambda: call(subject))

    return play


async def turned_away(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Of many calls at once one that found no place; if all did, any."""
    answers: list[Answer] = []

    async def one() -> None:
        answers.append(await call())

    async with trio.open_nursery() as nursery:
        for _ in range(CROWD):
            nursery.start_soon(one)
    return next((answer for answer in answers if answer.code == "login_busy"), answers[0])


async def sign_in_wrongly(subject: Subject) -> Answer:
    return await subject.anyone.call("auth.login", {"username": subject.unique("nobody-"), "password": PASSWORD})


async def create_another(subject: Subject) -> Answer:
    return await subject.owner.call("accounts.create", {"username": subject.unique("p"), "password": PASSWORD})


async def change_to_another(person: SpecClient) -> Answer:
    body = {"current_password": PASSWORD, "new_password": PASSWORD}
    return await person.call("accounts.change_password", body)


async def change_one_password_at_once(subject: Subject) -> Answer:
    person, _ = await new_person(subject)
    return await turned_away(lambda: change_to_another(person))


SCENARIOS: Mapping[Documented, Scenario] = {
    on("auth.login", "bad_credentials"): changed("auth.login", password="wrong"),
    on("auth.login", "setup_incomplete"): Scenario(sign_in_before_the_claim, Start.UNCLAIMED),
    on("auth.login", "login_busy"): Scenario(crowded(sign_in_wrongly)),
    on("setup.claim", "setup_complete"): Scenario(claim_twice),
    on("setup.claim", "wrong_setup_token"): changed("setup.claim", Start.UNCLAIMED, setup_token="wrong"),
    on("setup.claim", "password_or_passwordless"): changed("setup.claim", Start.UNCLAIMED, passwordless=True),
    on("setup.claim", "username_required"): Scenario(claim_without_a_name, Start.UNCLAIMED),
    on("setup.claim", "bad_username"): changed("setup.claim", Start.UNCLAIMED, username="system"),
    on("setup.claim", "password_too_long"): changed("setup.claim", Start.UNCLAIMED, password=TOO_LONG),
    on("accounts.create", "bad_username"): changed("accounts.create", username="-x"),
    on("accounts.create", "password_too_long"): changed("accounts.create", password=TOO_LONG),
    on("accounts.create", "empty_password"): changed("accounts.create", password=""),
    on("accounts.create", "setup_incomplete"): unclaimed("accounts.create"),
    on("accounts.create", "username_taken"): Scenario(create_with_a_taken_name),
    on("accounts.create", "first_account_unnamed"): Scenario(create_beside_an_unnamed_account, Start.PASSWORDLESS),
    on("accounts.create", "first_account_passwordless"): Scenario(
        create_beside_a_passwordless_account, Start.PASSWORDLESS
    ),
    on("accounts.create", "login_busy"): Scenario(crowded(create_another)),
    on("accounts.change_password", "password_too_long"): changed("accounts.change_password", new_password=TOO_LONG),
    on("accounts.change_password", "empty_password"): changed("accounts.change_password", new_password=""),
    on("accounts.change_password", "setup_incomplete"): unclaimed("accounts.change_password"),
    on("accounts.change_password", "current_password_required"): Scenario(change_a_password_without_the_old_one),
    on("accounts.change_password", "wrong_current_password"): changed(
        "accounts.change_password", current_password="wrong"
    ),
    on("accounts.change_password", "login_busy"): Scenario(change_one_password_at_once),
    on("accounts.update", "bad_username"): changed("accounts.update", username="two words"),
    on("accounts.update", "setup_incomplete"): unclaimed("accounts.update"),
    on("accounts.update", "username_taken"): Scenario(rename_to_a_taken_name),
    on("accounts.disable", "last_enabled_account"): Scenario(disable_the_last_account, local=Local.ALONE),
    on("accounts.enable", "passwordless_among_others"): Scenario(
        enable_a_passwordless_account_among_others, local=Local.FAULTS
    ),
}
