"""Accounts from the command line, on the same file as a running daemon, which notices within a second."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve, frozen

from nerve.errors import NerveError
from nerve.identity.operator import AccountOperator
from nerve.store.inline import InlineDatabase, open_inline
from tests.identity.identity_house import LOCAL, PASSWORD, House, Opening, Thread, counting_effects

LAST = "This is the last enabled account; without it nobody could sign in."


@frozen
class Desk:
    """A daemon that watches, and an operator with a connection of their own to the same file."""

    house: House
    operator: AccountOperator

    async def noticed(self) -> None:
        await trio.sleep(1)


@pytest.fixture
async def desk(opening: Opening, tmp_path: Path) -> AsyncIterator[Desk]:
    path = tmp_path / "nerve.db"
    with open_inline(path) as ours, open_inline(path) as theirs:
        house = await opening(LOCAL, ours)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.identity.watch)
            yield Desk(house, operator_on(theirs))
            nursery.cancel_scope.cancel()


def operator_on(database: InlineDatabase, **options: Any) -> AccountOperator:
    return AccountOperator(database, counting_effects(Thread()), bcrypt_cost=4, **options)


async def refusal(call: Any) -> str:
    with pytest.raises(NerveError) as refused:
        await call
    return str(refused.value)


async def test_the_list_is_that_of_the_api(desk: Desk) -> None:
    alice = await desk.house.alice()
    await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD, "display_name": "Bob"})
    listed = await desk.operator.all()
    assert [(account.username, account.display_name) for account in listed] == [("alice", "Alice"), ("bob", "Bob")]
    assert [account.id for account in listed] == [
        account["id"] for account in (await alice.get("/api/accounts")).json["accounts"]
    ]


async def test_a_new_account_signs_in_at_the_running_daemon(desk: Desk) -> None:
    await desk.house.alice()
    made = await desk.operator.create(" Bob ", "a secret of bob", "Bob")
    assert (made.username, made.display_name, made.enabled) == ("bob", "Bob", True)
    await desk.noticed()
    bob = await desk.house.signed_in("bob", "a secret of bob")
    assert (await bob.get("/api/accounts/me")).json["id"] == made.id


@pytest.mark.req("ACCT-32", "AUTH-08")
async def test_a_disabling_is_noticed_within_a_second(desk: Desk) -> None:
    alice = await desk.house.alice()
    made = await desk.operator.create("bob", PASSWORD)
    await desk.noticed()
    bob = await desk.house.signed_in("bob")
    heard: list[tuple[str, float]] = []
    desk.house.identity.on_disabled(lambda account_id: heard.append((account_id, trio.current_time())))
    begun = trio.current_time()
    assert (await desk.operator.disable("bob")).enabled is False
    await desk.noticed()
    assert (await bob.get("/api/auth/check")).status == 401
    assert [account_id for account_id, _ in heard] == [made.id]
    assert heard[0][1] - begun <= 0.5
    assert (await desk.operator.enable(made.id)).enabled is True
    await desk.noticed()
    assert (await bob.get("/api/auth/check")).status == 200
    assert (await alice.get("/api/auth/check")).status == 200


async def test_a_new_password_needs_no_current_one(desk: Desk) -> None:
    alice = await desk.house.alice()
    await desk.operator.set_password("ALICE", "battery staple")
    await desk.noticed()
    assert [(await desk.house.login(word)).status for word in (PASSWORD, "battery staple")] == [401, 200]
    assert (await alice.get("/api/auth/check")).status == 200


async def test_a_password_for_a_passwordless_instance_by_id(desk: Desk) -> None:
    await desk.house.passwordless()
    [account] = await desk.operator.all()
    assert (await desk.operator.set_password(account.id, PASSWORD)).has_password
    await desk.noticed()
    assert (await desk.house.login("anything")).status == 401
    assert not desk.house.identity.open_to_anyone


async def test_the_rules_and_sentences_are_those_of_the_api(desk: Desk) -> None:
    operator = desk.operator
    incomplete = "Setup of this instance is not complete; claim it first."
    [account] = await operator.all()
    assert await refusal(operator.create("bob", PASSWORD)) == incomplete
    assert await refusal(operator.set_password(account.id, PASSWORD)) == incomplete
    assert await refusal(operator.disable(account.id)) == LAST
    await desk.house.alice()
    assert await refusal(operator.create("bob", "")) == "The password is empty."
    assert await refusal(operator.create("bob", "x" * 73)) == "A password has at most 72 bytes in UTF-8."
    assert await refusal(operator.set_password("alice", "x" * 73)) == "A password has at most 72 bytes in UTF-8."
    assert (await refusal(operator.create("no name", PASSWORD))).startswith("A username has")
    assert await refusal(operator.create("Alice", PASSWORD)) == "Another account has this username."
    assert await refusal(operator.disable("alice")) == LAST
    for call in (operator.enable("bob"), operator.disable("bob"), operator.set_password("bob", PASSWORD)):
        assert await refusal(call) == "Account not found"


async def test_the_last_two_are_not_disabled_from_two_sides(desk: Desk) -> None:
    """The daemon has not noticed yet; the transaction has."""
    alice = await desk.house.alice()
    own_id = (await alice.get("/api/accounts/me")).json["id"]
    await desk.operator.create("bob", PASSWORD)
    await desk.operator.disable("bob")
    reply = await alice.post(f"/api/accounts/{own_id}/disable")
    assert (reply.status, reply.json) == (409, {"detail": LAST})


@pytest.mark.req("CLAIM-35")
async def test_the_setup_token_is_shown_until_the_claim(desk: Desk) -> None:
    assert await desk.operator.setup_token() == await desk.house.setup_token() is not None
    await desk.house.alice()
    assert await desk.operator.setup_token() is None


async def test_a_configured_password_counts_for_the_operator_too(opening: Opening, tmp_path: Path) -> None:
    configured = "$2b$05$" + "a" * 53
    path = tmp_path / "nerve.db"
    with open_inline(path) as ours, open_inline(path) as theirs:
        await opening(evolve(LOCAL, password_hash=configured), ours)
        operator = operator_on(theirs, configured_hash=configured)
        assert await operator.setup_token() is None
        [account] = await operator.all()
        assert account.has_password
        await operator.set_password(account.id, PASSWORD)
        house = await opening(LOCAL, ours)
        assert (await house.login()).status == 200


async def test_undecodable_bytes_of_a_terminal_are_a_password_like_any_other(desk: Desk) -> None:
    await desk.house.alice()
    await desk.operator.set_password("alice", "caf\udce9")
    await desk.noticed()
    assert (await desk.house.login(PASSWORD)).status == 401


async def test_nothing_moved_means_nothing_is_read(desk: Desk) -> None:
    """The watch asks for one number; what it knows stays the same object."""
    await desk.house.alice()
    before = desk.house.identity.actors()[1]
    await trio.sleep(60)
    assert desk.house.identity.actors()[1] is before
    await desk.operator.create("bob", PASSWORD)
    await desk.noticed()
    assert desk.house.identity.actors()[1] is not before
