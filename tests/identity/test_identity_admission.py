"""On whose behalf a token acts, and how much of it is remembered."""

import pytest
import trio
import trio.lowlevel
from attrs import evolve

from nerve.contract.caller import Caller, CredentialKind, Credentials
from nerve.errors import ErrorCode, NerveError
from nerve.identity.token_cache import TokenCache
from nerve.identity.tokens import Claims, mint_mcp, mint_session, mint_system, read_token
from nerve.store.rows import insert
from tests.identity.identity_house import LOCAL, PASSWORD, SECRET, START, House, Opening, now, seconds_now, signed

HOUR = 3600


async def admitted(house: House, token: str, peer: str = "127.0.0.1") -> Caller:
    return await house.identity.admit(Credentials(bearer=token, peer=peer))


async def with_session(house: House, cause: str | None) -> None:
    moment = "2026-03-01T12:00:00.000Z"
    await house.database.write(
        lambda db: insert(
            db,
            "sessions",
            id="a1b2c3d4",
            title="A",
            source="web",
            status="idle",
            backend="scripted",
            cwd="/",
            caused_by_actor_id=cause,
            created_at=moment,
            updated_at=moment,
        )
    )


@pytest.mark.req("AUTH-06", "AUTH-46")
async def test_a_session_acts_as_its_actor_on_its_own_behalf(house: House) -> None:
    alice = await house.alice()
    me = (await alice.get("/api/auth/me")).json
    caller = await admitted(house, alice.token or "", peer="192.0.2.7")
    assert caller == Caller(
        actor_id=me["actor"]["id"],
        kind=CredentialKind.SESSION,
        account_id=me["account"]["id"],
        cause_id=me["actor"]["id"],
        peer="192.0.2.7",
    )
    assert caller.is_person
    assert house.identity.is_live(caller)


@pytest.mark.req("AUTH-06", "AUTH-45")
async def test_a_system_token_acts_as_the_system(house: House) -> None:
    caller = await admitted(house, mint_system(SECRET, now()))
    assert (caller.actor_id, caller.cause_id, caller.account_id) == ("act_system", "act_system", None)
    assert (caller.kind, caller.is_person) == (CredentialKind.SYSTEM, False)
    assert house.identity.is_live(caller)


async def test_an_mcp_token_acts_as_the_system_on_behalf_of_its_sessions_cause(house: House) -> None:
    alice = await house.alice()
    actor_id = (await alice.get("/api/auth/me")).json["actor"]["id"]
    await with_session(house, actor_id)
    caller = await admitted(house, mint_mcp(SECRET, "a1b2c3d4", now(), 24))
    assert (caller.actor_id, caller.cause_id) == ("act_system", actor_id)
    assert (caller.kind, caller.bound_session_id, caller.is_person) == (CredentialKind.MCP, "a1b2c3d4", False)
    free = await admitted(house, mint_mcp(SECRET, None, now(), 24))
    assert (free.cause_id, free.bound_session_id) == ("act_system", None)


async def test_an_mcp_token_ends_with_its_session(house: House) -> None:
    await with_session(house, None)
    token = mint_mcp(SECRET, "a1b2c3d4", now(), 24)
    assert (await admitted(house, token)).cause_id is None
    await house.database.write(lambda db: db.execute("DELETE FROM sessions"))
    with pytest.raises(NerveError) as refused:
        await admitted(house, token)
    assert refused.value.code is ErrorCode.UNAUTHENTICATED


async def test_only_people_get_replacements(house: House) -> None:
    await house.claim()
    await trio.lowlevel.checkpoint()
    begun = seconds_now()
    old_mcp = signed({"aud": "nerve-mcp", "iat": begun - 100, "exp": begun + 10})
    old_system = signed({"typ": "system", "iat": begun - 280, "exp": begun + 10})
    assert [(await admitted(house, token)).refreshed for token in (old_mcp, old_system)] == [None, None]


async def test_a_caller_is_live_until_the_account_is_disabled(house: House) -> None:
    """For a socket that was admitted just before."""
    alice = await house.alice()
    bob_id = (await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD})).json["id"]
    bob = await house.signed_in("bob")
    caller = await admitted(house, bob.token or "")
    assert house.identity.is_live(caller)
    await alice.post(f"/api/accounts/{bob_id}/disable")
    assert not house.identity.is_live(caller)


async def test_a_rotated_secret_ends_every_token(opening: Opening) -> None:
    alice = await (await opening()).alice()
    restarted = await opening(evolve(LOCAL, jwt_secret=b"z" * 64))
    assert (await restarted.client.with_(token=alice.token).get("/api/auth/check")).status == 401


async def test_a_short_or_odd_secret_works(opening: Opening) -> None:
    """The configuration warns of it; refusing it would lock out who set it."""
    for number, secret in enumerate((b"short", b"-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----")):
        house = await opening(evolve(LOCAL, jwt_secret=secret))
        reply = await house.claim() if number == 0 else await house.login()
        client = house.client.with_(token=reply.json["token"])
        assert (await client.get("/api/auth/check")).status == 200


# --- the cache of checked signatures


class Reader:
    """Counts how often a signature had to be checked."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self, token: str) -> Claims | None:
        self.reads += 1
        return read_token(SECRET, token)


def test_a_signature_is_checked_once() -> None:
    reader = Reader()
    cache = TokenCache(reader)
    token, begun = mint_session(SECRET, "acc_1", START, 1), START.timestamp()
    for _ in range(3):
        claims = cache.valid(token, begun)
        assert claims is not None
        assert claims.subject == "acc_1"
    assert reader.reads == 1


def test_time_is_not_cached() -> None:
    cache = TokenCache(Reader())
    token, begun = mint_session(SECRET, "acc_1", START, 1), START.timestamp()
    assert cache.valid(token, begun + HOUR - 1) is not None
    assert cache.valid(token, begun + HOUR) is None
    assert cache.valid(token, begun - 61) is None
    assert cache.valid(token, begun) is not None


def test_bad_tokens_take_no_place() -> None:
    reader = Reader()
    cache = TokenCache(reader, places=2)
    tokens = [mint_session(SECRET, f"acc_{number}", START, 1) for number in range(2)]
    for token in [*tokens, *(f"junk {number}" for number in range(10)), "\ud800", *tokens]:
        cache.valid(token, START.timestamp())
    assert reader.reads == 2 + 11


def test_the_least_recently_used_falls_out() -> None:
    reader = Reader()
    cache = TokenCache(reader, places=2)
    one, two, three = (mint_session(SECRET, f"acc_{number}", START, 1) for number in range(3))
    for token in (one, two, one, three, one):
        assert cache.valid(token, START.timestamp()) is not None
    assert reader.reads == 3
    cache.valid(two, START.timestamp())
    assert reader.reads == 4
