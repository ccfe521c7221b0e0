"""Sign-in: who gets a token, who gets the one sentence, and how failures are slowed (decisions D20, D21)."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from attrs import evolve

from nerve.identity.passwords import WAITING_IN_ALL
from tests.asgi_client import Reply
from tests.identity.identity_house import LOCAL, PASSWORD, House, Opening

BAD = (401, {"detail": "Invalid username or password"})
BUSY = (503, {"detail": "Too many passwords wait to be checked; try again."})
PEER = "192.0.2.1"


async def timed(house: House, password: str = "wrong", **more: str) -> tuple[int, float]:
    """The status, and the seconds it took."""
    begun = trio.current_time()
    reply = await house.login(password, **more)
    return reply.status, round(trio.current_time() - begun, 3)


async def fail(house: House, times: int, **more: str) -> None:
    for _ in range(times):
        assert (await house.login("wrong", **more)).status == 401


async def with_bob(house: House) -> str:
    """alice and bob, both with ``PASSWORD``; bob's id."""
    alice = await house.alice()
    reply = await alice.post("/api/accounts", json={"username": "bob", "password": PASSWORD})
    return str(reply.json["id"])


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


# --- failures are slowed


async def test_from_the_fifth_failure_every_answer_takes_two_seconds(house: House) -> None:
    await house.alice()
    assert [await timed(house) for _ in range(6)] == [(401, 0.0)] * 4 + [(401, 2.0)] * 2
    assert await timed(house, PASSWORD) == (200, 2.0)
    assert await timed(house, PASSWORD) == (200, 0.0)  # a success clears the pair


async def test_an_unknown_name_is_slowed_just_as_well(house: House) -> None:
    await house.alice()
    taken = [(await timed(house, username="nobody"))[1] for _ in range(6)]
    assert taken == [0.0] * 4 + [2.0] * 2


async def test_left_out_and_named_are_the_same_account(house: House) -> None:
    await house.alice()
    await fail(house, 2)
    await fail(house, 2, username="alice")
    assert await timed(house, username="Alice ") == (401, 2.0)


async def test_failures_older_than_a_quarter_of_an_hour_are_forgotten(house: House) -> None:
    await house.alice()
    await fail(house, 1)
    await trio.sleep(1)
    await fail(house, 3)
    await trio.sleep(15 * 60 - 1)
    assert await timed(house) == (401, 0.0)  # the first is out of the window: this is the fourth
    assert (await timed(house))[1] == 2.0


async def test_slowed_answers_stand_in_one_line_per_peer(house: House) -> None:
    await house.alice()
    await fail(house, 5)
    begun = trio.current_time()
    ended: list[float] = []

    async def attempt() -> None:
        await house.login("wrong")
        ended.append(round(trio.current_time() - begun, 3))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(attempt)
    assert ended == [2.0, 4.0, 6.0, 8.0]


async def test_attempts_in_parallel_do_not_slip_through(house: House) -> None:
    """Four at a time all begin before any has failed, and yet only four answers are fast."""
    await house.alice()
    await fail(house, 3)
    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(house.login, "wrong")
    assert trio.current_time() - begun == pytest.approx(6.0)  # the fifth to the seventh


async def test_twenty_failures_of_a_peer_slow_its_other_names(house: House) -> None:
    await house.alice()
    for number in range(19):
        assert await timed(house, username=f"guess{number}") == (401, 0.0)
    assert await timed(house, PASSWORD, username="alice") == (200, 0.0)
    assert await timed(house, username="guess19") == (401, 2.0)
    assert await timed(house, PASSWORD, username="alice") == (200, 2.0)
    assert await timed(house, PASSWORD, username="alice") == (200, 2.0)  # a success does not clear the peer


async def test_a_success_clears_only_its_own_pair(house: House) -> None:
    await with_bob(house)
    await fail(house, 5, username="alice")
    assert (await house.login(username="bob")).status == 200
    assert await timed(house, username="alice") == (401, 2.0)


async def test_other_peers_are_never_slowed_or_locked_out(house: House) -> None:
    await house.alice()
    await fail(house, 25)
    assert await timed(house, PASSWORD, peer="192.0.2.2") == (200, 0.0)
    async with trio.open_nursery() as nursery:  # also while slowed answers wait for twenty peers
        for number in range(100, 120):
            nursery.start_soon(slowed_attempts, house, f"192.0.2.{number}")
            await trio.sleep(0.01)
        await trio.sleep(5)
        assert await timed(house, PASSWORD, peer="192.0.2.2") == (200, 0.0)


async def slowed_attempts(house: House, peer: str) -> None:
    await fail(house, 5, peer=peer)
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(house.login, "wrong", peer)


async def test_an_ipv6_network_is_one_peer(house: House) -> None:
    """Whoever has one address of a /64 has them all."""
    await house.alice()
    for number in range(5):
        await fail(house, 1, peer=f"2001:db8::{number + 1:x}")
    assert await timed(house, peer="2001:db8::ffff:1") == (401, 2.0)
    assert await timed(house, peer="2001:db8:0:1::1") == (401, 0.0)


# --- waiting checks are bounded


async def flood(house: House, peers: list[str]) -> list[Reply]:
    """One sign-in of each peer named, all at once."""
    replies: list[Reply] = []

    async def attempt(peer: str) -> None:
        replies.append(await house.login(PASSWORD, peer))

    async with trio.open_nursery() as nursery:
        for peer in peers:
            nursery.start_soon(attempt, peer)
    return replies


async def test_four_wait_per_peer(house: House) -> None:
    await house.alice()
    house.thread.seconds = 0.3
    begun = trio.current_time()
    replies = await flood(house, [PEER] * 6)
    assert sorted(reply.status for reply in replies) == [200] * 4 + [503] * 2
    assert trio.current_time() - begun == pytest.approx(4 * 0.3)  # one computation at a time
    for reply in replies[:2]:  # refused at once
        assert (reply.status, reply.json) == BUSY
        assert reply.headers["retry-after"] == "2"
    assert (await house.login()).status == 200


async def test_sixteen_wait_in_all(house: House) -> None:
    await house.alice()
    house.thread.seconds = 0.3
    replies = await flood(house, [f"192.0.2.{number}" for number in range(WAITING_IN_ALL + 3)])
    assert sorted(reply.status for reply in replies) == [200] * WAITING_IN_ALL + [503] * 3
    assert (await house.login()).status == 200


async def test_nothing_is_kept_of_a_peer_once_its_answers_are_out(house: House) -> None:
    await house.alice()
    await flood(house, [f"192.0.2.{number}" for number in range(10)] * 2)
    assert house.identity._sign_in._lines == {}


@pytest.mark.parametrize("left", [0, 1])
async def test_who_leaves_while_waiting_keeps_no_place(house: House, left: int) -> None:
    """The line is empty again once the checks are through, whoever still wants the answers."""
    await house.alice()
    house.thread.seconds = 0.3
    for _ in range(3):
        with trio.move_on_after(0.1 * left + 0.01):
            await flood(house, [PEER] * 4)
    await trio.sleep(5)
    assert [reply.status for reply in await flood(house, [PEER] * 4)] == [200] * 4


async def test_a_flood_of_sign_ins_leaves_reads_alone(house: House) -> None:
    alice = await house.alice()
    house.thread.seconds = 0.3
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood, house, [PEER] * 4)
        await trio.sleep(0.1)
        begun = trio.current_time()
        assert (await alice.get("/api/auth/check")).status == 200
        assert trio.current_time() == begun


@pytest.fixture
def configured() -> Callable[[str], str]:
    """A hash as an operator writes it into the configuration."""
    import bcrypt

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
