"""Contract chapter Auth, without sign-in: carriers of a credential, status, check, me, renewal."""

import base64

import pytest
import trio
from attrs import evolve

from nerve.store.instance import fact
from tests.identity.identity_house import LOCAL, PASSWORD, START, House, Opening, claims_of, seconds_now, signed

HOUR = 3600
AUTHENTICATED_ROUTES = ("/api/auth/check", "/api/auth/me", "/api/accounts", "/api/accounts/me", "/api/actors")


@pytest.mark.req("AUTH-01", "AUTH-42")
@pytest.mark.parametrize("path", AUTHENTICATED_ROUTES)
async def test_no_credential_is_401(house: House, path: str) -> None:
    await house.claim()
    reply = await house.client.get(path)
    assert (reply.status, reply.json) == (401, {"detail": "Not authenticated"})


@pytest.mark.req("AUTH-02", "AUTH-41")
async def test_bearer_header(house: House) -> None:
    reply = await (await house.alice()).get("/api/auth/check")
    assert (reply.status, reply.json) == (200, {"authenticated": True})


@pytest.mark.req("AUTH-03")
async def test_cookie(house: House) -> None:
    token = (await house.claim()).json["token"]
    reply = await house.client.get("/api/auth/check", headers={"cookie": f"other=1; nerve_token={token}"})
    assert reply.status == 200


@pytest.mark.req("AUTH-04")
async def test_query_parameter(house: House) -> None:
    token = (await house.claim()).json["token"]
    assert (await house.client.get("/api/auth/check", query={"token": token})).status == 200


@pytest.mark.req("AUTH-05")
async def test_the_first_carrier_decides(house: House) -> None:
    """Header before cookie before query; a bad one is not made good by the next."""
    token = (await house.claim()).json["token"]
    good, bad = {"cookie": f"nerve_token={token}"}, {"cookie": "nerve_token=junk"}
    assert (await house.client.get("/api/auth/check", headers={"authorization": "Bearer junk", **good})).status == 401
    assert (await house.client.get("/api/auth/check", headers=bad, query={"token": token})).status == 401
    assert (await house.client.with_(token=token).get("/api/auth/check", headers=bad)).status == 200


@pytest.mark.req("AUTH-05", "AUTH-42")
async def test_garbage_truncated_and_re_signed_tokens_are_401(house: House) -> None:
    token = (await house.claim()).json["token"]
    head, payload, signature = token.split(".")
    re_signed = signed(claims_of(token), secret=b"another secret, also long enough....")
    nested = base64.urlsafe_b64encode(b"[" * 2900).decode().rstrip("=")
    for bad in (
        "junk",
        "a.b.c",
        "...",
        token[:-1] if token[-1] != "A" else token[:-2],
        f"{head}.{payload}.",
        f"{head}.{payload}",
        re_signed,
        signed(claims_of(token), algorithm="HS512"),
        f"eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}.",
        f"eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}.{signature}",
        f"{nested}.{payload}.{signature}",
        "x" * 5000,
        "é.é.é",
    ):
        reply = await house.client.with_(token=bad).get("/api/auth/check")
        assert (reply.status, reply.json) == (401, {"detail": "Not authenticated"}), bad


@pytest.mark.req("AUTH-06", "AUTH-28", "AUTH-43", "AUTH-44", "AUTH-47")
async def test_me_of_a_person(house: House) -> None:
    alice = await house.alice()
    me = (await alice.get("/api/auth/me")).json
    own = (await alice.get("/api/accounts/me")).json
    actors = (await alice.get("/api/actors")).json["actors"]
    assert set(me) == {"actor", "account"}
    assert me["actor"] == {
        "id": own["actor_id"],
        "kind": "human",
        "display_name": "Alice",
        "username": "alice",
    }
    assert me["actor"] in actors
    assert me["account"] == own
    signed_in = await house.signed_in("alice")
    assert (await signed_in.get("/api/auth/me")).json == me


@pytest.mark.req("AUTH-06", "AUTH-45")
async def test_me_of_the_system_principal(house: House) -> None:
    client = house.with_token(typ="system", iat=seconds_now(), exp=seconds_now() + 300)
    assert (await client.get("/api/auth/me")).json == {
        "actor": {"id": "act_system", "kind": "system", "display_name": "Nerve", "username": None},
        "account": None,
    }


@pytest.mark.req("AUTH-07")
@pytest.mark.parametrize("subject", ["acc_0123456789abcdef", "", "user", "act_system", "alice"])
async def test_a_well_signed_token_for_nobody_is_401(house: House, subject: str) -> None:
    await house.claim()
    client = house.with_token(typ="session", sub=subject, iat=seconds_now(), exp=seconds_now() + HOUR)
    assert (await client.get("/api/auth/check")).status == 401


@pytest.mark.req("AUTH-08")
async def test_a_disabled_accounts_live_token_is_401(house: House) -> None:
    alice = await house.alice()
    bob_id = (await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD})).json["id"]
    bob = await house.signed_in("bob")
    assert (await bob.get("/api/auth/check")).status == 200
    await alice.post(f"/api/accounts/{bob_id}/disable")
    reply = await bob.get("/api/auth/check")
    assert (reply.status, reply.json) == (401, {"detail": "Not authenticated"})


@pytest.mark.req("AUTH-09", "AUTH-26", "AUTH-39", "CLAIM-28", "AUTH-29", "AUTH-18")
@pytest.mark.parametrize("why", ["loading", "no secret", "bad hash"])
async def test_everything_but_status_is_503_while_not_ready(opening: Opening, why: str) -> None:
    settings = {
        "loading": LOCAL,
        "no secret": evolve(LOCAL, jwt_secret=None),
        "bad hash": evolve(LOCAL, password_hash="$2b$31$" + "a" * 53),
    }[why]
    house = await opening(settings, start=why != "loading")
    client = house.with_token(typ="system", iat=seconds_now(), exp=seconds_now() + 300)
    status = await house.client.get("/api/auth/status")
    assert status.json == {"mode": "local", "auth_required": True, "login": "username_password"}
    replies = [await client.get(path) for path in AUTHENTICATED_ROUTES]
    replies += [await house.client.get(path) for path in AUTHENTICATED_ROUTES]
    replies.append(await house.login())
    replies.append(await house.client.post("/api/setup/claim", json={"setup_token": "x", "passwordless": True}))
    for reply in replies:
        assert (reply.status, reply.json) == (503, {"detail": "Authentication is not ready"})
        assert int(reply.headers["retry-after"]) > 0


@pytest.mark.req("AUTH-09")
async def test_it_becomes_ready(opening: Opening) -> None:
    house = await opening(start=False)
    await house.identity.start()
    assert (await house.client.get("/api/auth/status")).json["login"] == "setup"
    assert (await house.claim()).status == 200


@pytest.mark.req("AUTH-13")
async def test_a_fresh_token_gets_no_replacement(house: House) -> None:
    alice = await house.alice()
    assert "x-nerve-token" not in (await alice.get("/api/auth/check")).headers
    await trio.sleep(360 * HOUR)  # half of 720 hours, not past it
    assert "x-nerve-token" not in (await alice.get("/api/auth/check")).headers


@pytest.mark.req("AUTH-11", "AUTH-12", "AUTH-16")
async def test_a_token_past_half_of_its_life_is_replaced(house: House) -> None:
    alice = await house.alice()
    await trio.sleep(360 * HOUR + 1)
    fresh = (await alice.get("/api/auth/check")).headers["x-nerve-token"]
    assert fresh != alice.token
    renewed = alice.with_(token=fresh)
    assert "x-nerve-token" not in (await renewed.get("/api/auth/check")).headers
    await trio.sleep(360 * HOUR)
    assert (await alice.get("/api/auth/check")).status == 401  # expired at its own time
    me = (await renewed.get("/api/auth/me")).json
    assert me["account"]["username"] == "alice"


@pytest.mark.req("AUTH-11")
async def test_a_refused_request_carries_no_replacement(house: House) -> None:
    alice = await house.alice()
    await trio.sleep(400 * HOUR)
    missing = await alice.post("/api/accounts/acc_nobody/disable")
    assert (missing.status, "x-nerve-token" in missing.headers) == (404, False)


async def test_the_configured_life_of_a_token(opening: Opening) -> None:
    house = await opening(evolve(LOCAL, jwt_expiry_hours=2))
    alice = await house.alice()
    await trio.sleep(2 * HOUR - 1)
    assert (await alice.get("/api/auth/check")).status == 200
    await trio.sleep(1)
    assert (await alice.get("/api/auth/check")).status == 401


@pytest.mark.req("AUTH-14")
async def test_the_replacement_header_is_exposed(opening: Opening) -> None:
    house = await opening(allowed_origins=("https://app.example",))
    alice = await house.alice()
    reply = await alice.get("/api/auth/check", headers={"origin": "https://app.example"})
    exposed = {name.strip().lower() for name in reply.headers["access-control-expose-headers"].split(",")}
    assert "x-nerve-token" in exposed


@pytest.mark.req("AUTH-15")
async def test_a_token_from_before_accounts_is_upgraded(house: House) -> None:
    alice = await house.alice()
    own = (await alice.get("/api/auth/me")).json
    await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD})
    old = house.with_token(sub="user", iat=seconds_now(), exp=seconds_now() + HOUR)
    for path in ("/api/auth/check", "/api/accounts"):  # on every reply until it is replaced
        reply = await old.get(path)
        renewed = old.with_(token=reply.headers["x-nerve-token"])
        again = await renewed.get("/api/auth/me")
        assert again.json == own
        assert "x-nerve-token" not in again.headers


@pytest.mark.req("AUTH-15")
async def test_a_legacy_token_of_a_passwordless_instance_is_accepted_but_not_upgraded(house: House) -> None:
    await house.passwordless()
    reply = await house.with_token(sub="user", exp=seconds_now() + HOUR).get("/api/auth/check")
    assert (reply.status, "x-nerve-token" in reply.headers) == (200, False)


@pytest.mark.req("AUTH-16")
async def test_a_token_is_opaque(house: House) -> None:
    """What it carries is enough: the reply holds nothing that a client would have to compute from it."""
    reply = await house.claim()
    assert set(reply.json) == {"token"}
    assert reply.json["token"].isascii()
    assert len(reply.json["token"]) < 1000


@pytest.mark.req("AUTH-29", "AUTH-30", "AUTH-31", "AUTH-32", "AUTH-36")
async def test_status_of_a_new_instance(house: House) -> None:
    reply = await house.client.get("/api/auth/status")
    assert (reply.status, reply.json) == (200, {"mode": "local", "auth_required": True, "login": "setup"})


@pytest.mark.req("AUTH-33", "AUTH-36", "CLAIM-33")
async def test_status_of_a_passwordless_instance(house: House) -> None:
    await house.passwordless()
    assert (await house.client.get("/api/auth/status")).json == {
        "mode": "local",
        "auth_required": False,
        "login": "none",
    }
    assert house.identity.open_to_anyone


@pytest.mark.req("AUTH-34", "AUTH-36", "CLAIM-32")
async def test_status_with_one_password(house: House) -> None:
    await house.claim()
    expected = {"mode": "local", "auth_required": True, "login": "password"}
    assert (await house.client.get("/api/auth/status")).json == expected
    assert not house.identity.open_to_anyone


@pytest.mark.req("AUTH-35", "AUTH-36", "AUTH-38")
async def test_status_with_two_accounts(house: House) -> None:
    """Also when one of them is disabled; and it names nobody."""
    alice = await house.alice()
    bob_id = (await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD})).json["id"]
    expected = {"mode": "local", "auth_required": True, "login": "username_password"}
    assert (await house.client.get("/api/auth/status")).json == expected
    await alice.post(f"/api/accounts/{bob_id}/disable")
    assert (await house.client.get("/api/auth/status")).json == expected


@pytest.mark.req("AUTH-37", "AUTH-25", "ACCT-31")
async def test_nothing_but_the_claim_is_allowed_before_it(house: House) -> None:
    """A token from before accounts is a person's, yet accounts are not written before the claim."""
    assert (await house.login()).status == 409
    old = house.with_token(sub="user", exp=seconds_now() + HOUR)
    account_id = (await old.get("/api/accounts/me")).json["id"]
    sentence = {"detail": "Setup of this instance is not complete; claim it first."}
    for reply in (
        await old.post("/api/accounts", json={"username": "bob", "password": PASSWORD}),
        await old.patch(f"/api/accounts/{account_id}", json={"username": "bob"}),
        await old.put("/api/accounts/me/password", json={"new_password": PASSWORD}),
    ):
        assert (reply.status, reply.json) == (409, sentence)
    assert await house.database.read(fact, "claimed_at") is None
    assert house.thread.calls == []
    assert (await house.claim()).status == 200


@pytest.mark.req("AUTH-05")
@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"typ": "session", "sub": "{id}", "iat": 0}, id="without exp"),
        pytest.param({"typ": "session", "sub": "{id}", "iat": 0, "exp": None}, id="exp null"),
        pytest.param({"typ": "session", "sub": "{id}", "iat": 0, "exp": True}, id="exp a boolean"),
        pytest.param({"typ": "session", "sub": "{id}", "iat": 0, "exp": "9999999999"}, id="exp a string"),
        pytest.param({"typ": "session", "sub": "{id}", "iat": 0, "exp": 10**400}, id="exp beyond all bounds"),
        pytest.param({"typ": "session", "sub": "{id}", "exp": HOUR}, id="without iat"),
        pytest.param({"typ": "session", "sub": "{id}", "iat": 61, "exp": HOUR}, id="iat more than a minute ahead"),
        pytest.param({"typ": "session", "sub": "{id}", "iat": -HOUR, "exp": 0}, id="expired this second"),
        pytest.param({"typ": "refresh", "sub": "{id}", "iat": 0, "exp": HOUR}, id="unknown typ"),
        pytest.param({"typ": None, "sub": "user", "iat": 0, "exp": HOUR}, id="typ null"),
        pytest.param({"typ": "session", "aud": "nerve-mcp", "sub": "{id}", "iat": 0, "exp": HOUR}, id="two kinds"),
        pytest.param({"aud": "other", "iat": 0, "exp": HOUR}, id="unknown aud"),
        pytest.param({"aud": ["nerve-mcp"], "iat": 0, "exp": HOUR}, id="a list of aud"),
        pytest.param({"aud": "other", "sub": "user", "iat": 0, "exp": HOUR}, id="legacy with aud"),
        pytest.param({"sub": "{id}", "iat": 0, "exp": HOUR}, id="no typ"),
        pytest.param({"sub": "user"}, id="legacy without exp"),
        pytest.param({"typ": "session", "sub": 7, "iat": 0, "exp": HOUR}, id="sub a number"),
        pytest.param({"typ": "system", "iat": 0, "exp": 301}, id="system for more than five minutes"),
        pytest.param({"typ": "system", "exp": 301}, id="system for more than five minutes from now"),
        pytest.param({"typ": "system", "iat": 0, "exp": 300, "aud": "nerve-mcp"}, id="system with aud"),
        pytest.param({"aud": "nerve-mcp", "iat": 0, "exp": HOUR, "nerve_session_id": 7}, id="bound to a number"),
        pytest.param({"aud": "nerve-mcp", "iat": 0, "exp": HOUR, "nerve_session_id": "gone"}, id="bound to nothing"),
    ],
)
async def test_a_token_of_the_wrong_shape_is_401(house: House, claims: dict[str, object]) -> None:
    """Decisions D22.  Numbers are seconds from now."""
    alice = await house.alice()
    account_id = (await alice.get("/api/accounts/me")).json["id"]
    begun = int(START.timestamp())
    made: dict[str, object] = {}
    for name, value in claims.items():
        is_instant = name in ("iat", "exp") and isinstance(value, int) and not isinstance(value, bool)
        made[name] = account_id if value == "{id}" else begun + value if is_instant else value  # type: ignore[operator]
    assert (await house.with_token(**made).get("/api/auth/check")).status == 401


async def test_tokens_that_are_just_good_enough(house: House) -> None:
    alice = await house.alice()
    account_id = (await alice.get("/api/accounts/me")).json["id"]
    begun = seconds_now()
    for claims in (
        {"typ": "session", "sub": account_id, "iat": begun + 60, "exp": begun + HOUR},
        {"typ": "session", "sub": account_id, "iat": begun - HOUR, "exp": begun + 1},
        {"typ": "system", "iat": begun, "exp": begun + 300},
        {"typ": "system", "exp": begun + 300},
        {"aud": "nerve-mcp", "iat": begun, "exp": begun + 1000 * HOUR},
    ):
        assert (await house.with_token(**claims).get("/api/auth/check")).status == 200, claims


async def test_time_is_looked_at_again_for_a_token_seen_before(house: House) -> None:
    client = house.with_token(typ="system", iat=seconds_now(), exp=seconds_now() + 300)
    assert (await client.get("/api/auth/check")).status == 200
    await trio.sleep(299)
    assert (await client.get("/api/auth/check")).status == 200
    await trio.sleep(1)
    assert (await client.get("/api/auth/check")).status == 401
