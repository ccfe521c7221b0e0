"""Contract chapter Actors."""

import pytest
import trio

from tests.identity.identity_house import PASSWORD, House, seconds_now


@pytest.mark.req("ACTOR-01", "ACTOR-02", "ACTOR-03", "ACTOR-04", "ACTOR-05", "ACTOR-06", "ACTOR-07", "ACTOR-09")
async def test_one_row_per_person_and_one_for_the_system(house: House) -> None:
    alice = await house.alice()
    for name in ("zoe", "bob"):
        await trio.sleep(1)
        await alice.post("/api/accounts", json={"username": name, "password": PASSWORD, "display_name": name.title()})
    reply = await alice.get("/api/actors")
    ids = {account["username"]: account["actor_id"] for account in (await alice.get("/api/accounts")).json["accounts"]}
    assert reply.json == {
        "actors": [
            {"id": "act_system", "kind": "system", "display_name": "Nerve", "username": None},
            {"id": ids["alice"], "kind": "human", "display_name": "Alice", "username": "alice"},
            {"id": ids["zoe"], "kind": "human", "display_name": "Zoe", "username": "zoe"},
            {"id": ids["bob"], "kind": "human", "display_name": "Bob", "username": "bob"},
        ]
    }


@pytest.mark.req("ACTOR-06")
async def test_an_account_without_a_name_has_an_actor_without_one(house: House) -> None:
    owner = await house.passwordless()
    actors = (await owner.get("/api/actors")).json["actors"]
    assert [(actor["kind"], actor["username"]) for actor in actors] == [("system", None), ("human", None)]


@pytest.mark.req("ACTOR-10", "ACTOR-09")
async def test_a_disabled_persons_actor_stays_listed_as_it_was(house: House) -> None:
    alice = await house.alice()
    bob = (await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD})).json
    before = (await alice.get("/api/actors")).json
    await alice.post(f"/api/accounts/{bob['id']}/disable")
    assert (await alice.get("/api/actors")).json == before


@pytest.mark.req("ACTOR-08")
async def test_a_rename_changes_labels_and_no_id(house: House) -> None:
    alice = await house.alice()
    account = (await alice.get("/api/accounts/me")).json
    before = (await alice.get("/api/actors")).json["actors"]
    change = {"username": "liddell", "display_name": "A. Liddell"}
    await alice.patch(f"/api/accounts/{account['id']}", json=change)
    assert (await alice.get("/api/actors")).json["actors"] == [before[0], before[1] | change]


@pytest.mark.req("ACTOR-01")
async def test_the_system_principal_may_read_them(house: House) -> None:
    client = house.with_token(typ="system", iat=seconds_now(), exp=seconds_now() + 60)
    assert (await client.get("/api/actors")).status == 200
