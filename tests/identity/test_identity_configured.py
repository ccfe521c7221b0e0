"""A password that the configuration carries: when it counts, and that its absence opens nothing."""

from collections.abc import Callable

import bcrypt
import pytest
from attrs import evolve

from tests.identity.identity_house import LOCAL, PASSWORD, Opening


@pytest.fixture
def configured() -> Callable[[str], str]:
    """A hash as an operator writes it into the configuration."""
    return lambda password: bcrypt.hashpw(password.encode(), bcrypt.gensalt(5)).decode()


@pytest.mark.req("AUTH-34", "CLAIM-23", "ACCT-36")
async def test_a_configured_password(opening: Opening, configured: Callable[[str], str]) -> None:
    """It completes the setup; a password set through the API replaces it for good."""
    settings = evolve(LOCAL, password_hash=configured("from the file"))
    house = await opening(settings)
    assert (await house.client.get("/api/auth/status")).json["login"] == "password"
    assert await house.setup_token() is None
    assert (await house.login("wrong")).status == 401
    owner = house.client.with_(token=(await house.login("from the file")).json["token"])
    assert (await owner.get("/api/accounts/me")).json["has_password"] is True
    claim = await house.client.post("/api/setup/claim", json={"setup_token": "x", "passwordless": True})
    assert (claim.status, claim.json) == (409, {"detail": "Setup of this instance is complete already."})
    change = {"current_password": "from the file", "new_password": PASSWORD}
    assert (await owner.put("/api/accounts/me/password", json=change)).status == 200
    for again in (house, await opening(settings), await opening(LOCAL)):
        assert (await again.login(PASSWORD)).status == 200
        assert (await again.login("from the file")).status == 401


async def test_unknown_names_cost_what_a_configured_password_costs(
    opening: Opening, configured: Callable[[str], str]
) -> None:
    house = await opening(evolve(LOCAL, password_hash=configured("from the file")))
    await house.login("wrong", username="nobody")
    assert house.thread.calls[0][1].startswith(b"$2b$05$")


async def test_a_configured_password_that_is_taken_away_opens_nothing(
    opening: Opening, configured: Callable[[str], str]
) -> None:
    """Nobody ever claimed: the claim is open again, not the account."""
    await opening(evolve(LOCAL, password_hash=configured("from the file")))
    house = await opening(LOCAL)
    assert (await house.client.get("/api/auth/status")).json["login"] == "setup"
    assert (await house.login("")).status == 409
    assert (await house.claim()).status == 200


async def test_nor_after_others_were_let_in(opening: Opening, configured: Callable[[str], str]) -> None:
    house = await opening(evolve(LOCAL, password_hash=configured("from the file")))
    owner = house.client.with_(token=(await house.login("from the file")).json["token"])
    own_id = (await owner.get("/api/accounts/me")).json["id"]
    await owner.patch(f"/api/accounts/{own_id}", json={"username": "alice"})
    await owner.post("/api/accounts", json={"username": "bob", "password": PASSWORD})
    house = await opening(LOCAL)
    assert (await house.client.get("/api/auth/status")).json["login"] == "username_password"
    assert [(await house.login(word, username="alice")).status for word in ("", "from the file")] == [401, 401]
    assert (await house.login(username="bob")).status == 200


async def test_nor_where_the_instance_was_passwordless_before(
    opening: Opening, configured: Callable[[str], str]
) -> None:
    await (await opening(LOCAL)).passwordless()
    await opening(evolve(LOCAL, password_hash=configured("from the file")))
    house = await opening(LOCAL)
    assert (await house.client.get("/api/auth/status")).json["login"] == "password"
    assert [(await house.login(word)).status for word in ("", "anything", "from the file")] == [401] * 3


async def test_a_password_configured_later_counts_on_a_new_and_on_a_passwordless_instance(
    opening: Opening, configured: Callable[[str], str]
) -> None:
    await (await opening(LOCAL)).passwordless()
    house = await opening(evolve(LOCAL, password_hash=configured("from the file")))
    assert (await house.login("anything")).status == 401
    assert (await house.login("from the file")).status == 200


async def test_a_password_configured_beside_a_claimed_one_does_not_count(
    opening: Opening, configured: Callable[[str], str]
) -> None:
    await (await opening(LOCAL)).alice()
    house = await opening(evolve(LOCAL, password_hash=configured("from the file")))
    assert (await house.login("from the file")).status == 401
    assert (await house.login(PASSWORD)).status == 200
