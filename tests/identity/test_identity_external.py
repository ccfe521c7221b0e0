"""External mode: a gateway says who somebody is (gaps.md 2)."""

from typing import Any

import pytest
import trio
from attrs import evolve

from nerve.contract.route import AuthMode
from nerve.identity.service import IdentityUnusable, Readiness
from nerve.identity.tokens import mint_mcp, mint_session, mint_system
from tests.asgi_client import AsgiClient, Reply
from tests.identity.identity_house import (
    GATEWAY_SECRET,
    LOCAL,
    PASSWORD,
    SECRET,
    House,
    Opening,
    now,
    seconds_now,
    signed,
)

EXTERNAL = evolve(LOCAL, mode=AuthMode.EXTERNAL, external_secret=GATEWAY_SECRET)
HEADER = "x-nerve-actor-context"


@pytest.fixture
async def external(opening: Opening) -> House:
    return await opening(EXTERNAL)


def context(secret: bytes = GATEWAY_SECRET, algorithm: str = "HS256", **claims: Any) -> dict[str, str]:
    payload = {"sub": "gw|1", "name": "Alice", "exp": seconds_now() + 300, **claims}
    return {HEADER: signed({k: v for k, v in payload.items() if v is not ...}, secret, algorithm)}


async def me(house: House, **claims: Any) -> Reply:
    return await house.client.get("/api/auth/me", headers=context(**claims))


@pytest.mark.req("AUTH-10", "AUTH-45")
async def test_the_person_comes_from_the_header(external: House) -> None:
    reply = await me(external)
    assert reply.status == 200
    actor = reply.json["actor"]
    assert reply.json == {
        "actor": {"id": actor["id"], "kind": "human", "display_name": "Alice", "username": None},
        "account": None,
    }
    assert actor["id"].startswith("act_")
    assert "x-nerve-token" not in reply.headers
    assert (await me(external)).json == reply.json
    actors = (await external.client.get("/api/actors", headers=context())).json["actors"]
    assert [(a["id"], a["display_name"]) for a in actors] == [("act_system", "Nerve"), (actor["id"], "Alice")]


@pytest.mark.req("AUTH-10")
async def test_session_tokens_are_refused(opening: Opening) -> None:
    """Also from loopback, and also those of an account from before the mode was switched."""
    alice = await (await opening()).alice()
    external = await opening(EXTERNAL)
    legacy = signed({"sub": "user", "exp": seconds_now() + 300})
    for token in (alice.token, legacy):
        for peer in ("127.0.0.1", "192.0.2.1"):
            client = external.client.with_(token=token, peer=peer)
            assert (await client.get("/api/auth/check")).status == 401
            assert (await client.with_(token=None).get("/api/auth/check", query={"token": token})).status == 401
    assert (await external.client.get("/api/auth/check", headers=context())).status == 200


@pytest.mark.req("AUTH-10")
@pytest.mark.parametrize(
    "claims",
    [
        {"secret": SECRET},
        {"secret": b"y" * 64},
        {"secret": GATEWAY_SECRET * 2, "algorithm": "HS512"},
        {"exp": ...},
        {"exp": 0},
        {"exp": "soon"},
        {"sub": ...},
        {"sub": ""},
        {"sub": 7},
        {"name": 7},
    ],
)
async def test_a_bad_context_is_401(external: House, claims: dict[str, Any]) -> None:
    assert (await me(external, **claims)).status == 401
    assert len((await external.client.get("/api/actors", headers=context())).json["actors"]) == 2


async def test_a_context_lives_at_most_five_minutes(external: House) -> None:
    begun = seconds_now()
    assert (await me(external, exp=begun + 301)).status == 401
    assert (await me(external, exp=begun + 300, iat=begun - 1)).status == 401
    assert (await me(external, exp=begun + 361, iat=begun + 61)).status == 401
    assert (await me(external, exp=begun + 360, iat=begun + 60)).status == 200
    headers = context(exp=begun + 300)
    assert (await external.client.get("/api/auth/check", headers=headers)).status == 200
    await trio.sleep(300)
    assert (await external.client.get("/api/auth/check", headers=headers)).status == 401


async def test_a_bad_context_is_not_made_good_by_a_token(external: House) -> None:
    client = external.client.with_(token=mint_system(SECRET, now()), peer="127.0.0.1")
    assert (await client.get("/api/auth/check")).status == 200
    assert (await client.get("/api/auth/check", headers={HEADER: "junk"})).status == 401


@pytest.mark.parametrize("mint", [lambda: mint_system(SECRET, now()), lambda: mint_mcp(SECRET, None, now(), 1)])
async def test_the_command_line_works_from_loopback_only(external: House, mint: Any) -> None:
    statuses = {}
    for peer in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "192.0.2.1", "::2", "localhost", ""):
        statuses[peer] = (await external.client.with_(token=mint(), peer=peer).get("/api/auth/check")).status
    good = {peer for peer, status in statuses.items() if status == 200}
    assert good == {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}
    assert set(statuses.values()) == {200, 401}


async def test_a_name_follows_the_gateway(external: House) -> None:
    first = (await me(external)).json["actor"]
    assert (await me(external, name="Alice Liddell")).json["actor"] == first | {"display_name": "Alice Liddell"}
    assert (await me(external, name=...)).json["actor"]["display_name"] == "Alice Liddell"
    odd = await me(external, name=" \x00 A\r\nB\u2028C\u00a0D " + "x" * 300)
    assert odd.json["actor"]["display_name"].startswith("A B C D xxx")
    assert len(odd.json["actor"]["display_name"]) == 200


async def test_somebody_without_a_name(external: House) -> None:
    assert (await me(external, sub="gw|2", name=...)).json["actor"]["display_name"] == ""


async def test_two_first_sights_at_once_are_one_person(external: House) -> None:
    seen: list[str] = []

    async def look(name: str) -> None:
        seen.append((await me(external, name=name)).json["actor"]["id"])

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(look, f"Alice {number}")
    assert len(set(seen)) == 1
    assert len(external.identity.actors()) == 2


async def test_people_are_known_again_after_a_restart(opening: Opening) -> None:
    first = (await me(await opening(EXTERNAL))).json
    assert (await me(await opening(EXTERNAL))).json == first


@pytest.mark.req("AUTH-40")
async def test_status_reads_no_local_state(opening: Opening) -> None:
    await (await opening()).passwordless()
    external = await opening(EXTERNAL)
    expected = {"mode": "external", "auth_required": True, "login": "username_password"}
    assert (await external.client.get("/api/auth/status")).json == expected
    assert not external.identity.open_to_anyone
    external.identity.require_claimed()


@pytest.mark.req("AUTH-27", "CLAIM-01")
async def test_local_routes_are_404(external: House) -> None:
    body = {"username": "bob", "password": PASSWORD}
    for method, path in (
        ("POST", "/api/auth/login"),
        ("POST", "/api/setup/claim"),
        ("GET", "/api/accounts"),
        ("POST", "/api/accounts"),
        ("GET", "/api/accounts/me"),
        ("PUT", "/api/accounts/me/password"),
        ("PATCH", "/api/accounts/acc_1"),
        ("POST", "/api/accounts/acc_1/disable"),
        ("POST", "/api/accounts/acc_1/enable"),
    ):
        options: dict[str, Any] = {} if method == "GET" else {"json": body}
        reply = await external.client.request(method, path, headers=context(), **options)
        assert (reply.status, reply.json) == (404, {"detail": "Not Found"}), path
        assert (await external.client.request(method, path, **options)).status == 404


@pytest.mark.req("AUTH-10")
async def test_in_local_mode_the_header_means_nothing(house: House) -> None:
    await house.claim()
    assert (await house.client.get("/api/auth/check", headers=context())).status == 401


async def test_it_does_not_start_without_its_secret(opening: Opening) -> None:
    house = await opening(evolve(EXTERNAL, external_secret=None), start=False)
    with pytest.raises(IdentityUnusable, match=r"auth\.external\.secret"):
        await house.identity.start()
    assert house.identity.state.readiness is Readiness.LOADING


async def test_a_password_of_the_configuration_means_nothing(opening: Opening) -> None:
    house = await opening(evolve(EXTERNAL, password_hash="junk"))
    assert house.identity.state.readiness is Readiness.READY
    local = await opening()
    assert (await local.client.get("/api/auth/status")).json["login"] == "setup"


async def test_switching_back_opens_the_claim(opening: Opening) -> None:
    external = await opening(EXTERNAL)
    await me(external)
    assert await external.setup_token() is None
    local = await opening()
    owner: AsgiClient = await local.alice()
    actors = (await owner.get("/api/actors")).json["actors"]
    assert [actor["username"] for actor in actors] == [None, None, "alice"]
    gone = local.client.with_(token=mint_session(SECRET, "acc_x", now(), 1))
    assert (await gone.get("/api/auth/check")).status == 401
