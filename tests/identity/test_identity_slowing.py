"""How failures are slowed and waiting checks bounded (decisions D20, D21)."""

import pytest
import trio

from nerve.identity.passwords import WAITING_IN_ALL
from tests.asgi_client import Reply
from tests.identity.identity_house import PASSWORD, House
from tests.identity.sign_ins import fail, timed, with_bob

BUSY = (503, {"detail": "Too many passwords wait to be checked; try again."})
PEER = "192.0.2.1"


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
