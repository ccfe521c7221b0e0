"""Going down: who still takes something is told everything first, who doesn't is not waited for (decisions D18)."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
import trio
import trio.testing
from attrs import define, evolve, field

from nerve.app import FLUSH_SECONDS, PATIENCE_SECONDS, OpenHouse
from nerve.asgi.protocol import PROGRESS, Receive, Scope, Send
from tests.asgi_client import AsgiClient, Closed
from tests.runtime.tabs import Tab, numbers, tab
from tests.sessions.session_house import House, play

FRAMES = play(*[f"- tool: T{n}" for n in range(10)])


async def close_down(house: House) -> float:
    """How many seconds it took."""
    services = house.services
    whole = OpenHouse(house.alice.app, services, services.supervisor, services.hub, services.generation)  # type: ignore[arg-type]
    before = trio.current_time()
    await whole.close_down()
    return trio.current_time() - before


async def read_every(seconds: float, reader: Tab, found: list[Any]) -> None:
    while not isinstance(found[-1] if found else None, Closed):
        await trio.sleep(seconds)
        frame = await reader.socket.receive()
        found.append(frame)


@pytest.mark.parametrize("every", [0.1, 0.2])
async def test_a_slow_reader_has_everything_before_the_close(house: House, every: float) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id, window=1) as slow:
        await alice.say(session_id, FRAMES)
        await alice.turn()
        found: list[Any] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_every, every, slow, found)
            took = await close_down(house)
        assert found.pop() == Closed(1012, "restarting")
        first = 1  # is her own message, which is not told to her again
        assert numbers([orjson.loads(frame) for frame in found]) == [first, *numbers(alice.frames)]
        assert took == pytest.approx(every * len(found), abs=2 * every)
        assert PATIENCE_SECONDS < took < FLUSH_SECONDS


async def test_a_reader_that_is_too_slow_for_the_grace_is_cut_off_at_its_end(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id, window=1) as slow:
        await alice.say(session_id, FRAMES)
        await alice.turn()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_every, PATIENCE_SECONDS - 0.1, slow, [])
            assert await close_down(house) == FLUSH_SECONDS
            nursery.cancel_scope.cancel()
        assert await alice.socket.expect_close() == Closed(1012, "restarting")
        slow.socket.disconnect()


async def test_one_that_reads_nothing_is_not_waited_for_long(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id, window=1) as deaf:
        await alice.say(session_id, FRAMES)
        await alice.turn()
        assert await close_down(house) == pytest.approx(PATIENCE_SECONDS, abs=0.1)
        assert await alice.socket.expect_close() == Closed(1012, "restarting")
        deaf.socket.disconnect()


async def test_sockets_that_read_are_no_reason_to_wait(house: House) -> None:
    async with tab(house.alice) as alice:
        assert await close_down(house) == 0
        assert await alice.socket.expect_close() == Closed(1012, "restarting")


# --- one great message, of which the server tells how it goes on ------------------------------------------------------


@define
class ServerWithProgress:
    """As ours: whoever asks for it hears that a part of what it sends was taken."""

    app: Callable[[Scope, Receive, Send], Any]
    told: list[Callable[[], None]] = field(factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, "extensions": {PROGRESS: self.told.append}}, receive, send)

    async def trickle(self, every: float) -> None:
        while True:
            await trio.sleep(every)
            for moved in self.told:
                moved()


async def end_of(house: House, client: AsgiClient, every: float | None) -> Any:
    """What a reader that does not take its first message for a minute is told, if parts of it go out all the time."""
    server = ServerWithProgress(client.app)
    session_id = await house.create()
    async with tab(evolve(client, app=server), session_id, window=1) as slow, trio.open_nursery() as nursery:
        if every is not None:
            nursery.start_soon(server.trickle, every)
        await house.run(session_id, FRAMES)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
        return len(house.services.hub), slow.socket.disconnect()


@pytest.mark.parametrize(("every", "open_after"), [(9.0, 1), (11.0, 0), (None, 0)])
async def test_a_message_that_goes_out_slowly_is_no_stall(house: House, every: float | None, open_after: int) -> None:
    assert await end_of(house, house.bob, every) == (open_after, None)


@pytest.mark.parametrize(("every", "took"), [(1.5, FLUSH_SECONDS), (4.5, PATIENCE_SECONDS)])
async def test_nor_is_it_a_reason_to_cut_it_off(house: House, every: float, took: float) -> None:
    server = ServerWithProgress(house.bob.app)
    session_id = await house.create()
    async with tab(evolve(house.bob, app=server), session_id, window=1) as slow, trio.open_nursery() as nursery:
        await house.run(session_id, FRAMES)
        nursery.start_soon(server.trickle, every)
        assert await close_down(house) == pytest.approx(took, abs=0.1)
        nursery.cancel_scope.cancel()
        slow.socket.disconnect()
        assert numbers(slow.frames) == []
