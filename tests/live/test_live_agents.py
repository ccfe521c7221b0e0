"""Agents over real sockets: followed, stopped, interrupted by a kill, and shown again by the next start."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from tests.agents.plays import agent, ask, play, say, shell, wait
from tests.agents.watching import Watcher
from tests.live.instance import Instance
from tests.remote_wire import Address, RemoteWire
from tests.spec_client import SpecClient, SpecObserver

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0
WORDS = [step for n in range(1000) for step in (say(f"word {n}"), wait(0.05))][:900]
PLAY = play(
    agent("back", agent("deep", *WORDS[:400], background=True), *WORDS[:100], wait(600), background=True),
    agent("asks", ask("colour"), background=True),
    shell("job", 600, output=["a", "b"]),
    agent("front", wait(600)),
)


@asynccontextmanager
async def client(instance: Instance, token: str) -> AsyncIterator[SpecClient]:
    address = Address(instance.address)
    async with address.http() as http:
        yield SpecClient(RemoteWire(address, http, (SpecObserver(),), token))


@asynccontextmanager
async def watching(client: SpecClient, session_id: str, **query: Any) -> AsyncIterator[Watcher]:
    async with client.connect({"session_id": session_id, **query}) as socket, trio.open_nursery() as nursery:
        watcher = Watcher(socket)
        nursery.start_soon(watcher.read)
        await watcher.until(lambda: bool(watcher.of("session_status")), PATIENCE_SECONDS)
        yield watcher
        nursery.cancel_scope.cancel()


def fates(watcher: Watcher) -> dict[str, str]:
    return {view["name"]: f"{view['status']} {view['end_reason']}" for view in watcher.views.values()}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_agents_that_are_followed_stopped_and_interrupted(instance: Instance, how: signal.Signals) -> None:
    child = instance.foreground()
    token = instance.claim()
    with trio.fail_after(PATIENCE_SECONDS):
        async with client(instance, token) as person:
            session_id = (await person.ok("sessions.create", {}))["id"]
            async with watching(person, session_id) as tab:
                at = {"session_id": session_id}
                await tab.socket.send_json({"type": "message", **at, "content": PLAY})
                await tab.until(lambda: len(tab.live) == 5 and bool(tab.of("interaction")), PATIENCE_SECONDS)
                deep = tab.named("deep")["id"]
                await tab.socket.send_json({"type": "agent_subscribe", **at, "agent_id": deep})
                await tab.until(lambda: len(tab.of("agent_event")) >= 5, PATIENCE_SECONDS)
                asks = {**at, "agent_id": tab.named("asks")["id"]}
                assert (await person.ok("agents.stop", {}, path=asks))["stopping"] == [asks["agent_id"]]
                await tab.until(lambda: bool(tab.of("interaction_resolved")), PATIENCE_SECONDS)
                assert (await person.ok("sessions.stop", {"scope": "turn"}, path=at))["turn"] == "stopped"
                await tab.until(lambda: fates(tab)["front"] == "stopped turn_stop", PATIENCE_SECONDS)
                await tab.until(lambda: fates(tab)["asks"] == "stopped user", PATIENCE_SECONDS)
                before = dict(tab.views)
                child.send_signal(how)
                await tab.until(lambda: tab.closed is not None, PATIENCE_SECONDS)
                if how is signal.SIGTERM:
                    assert fates(tab)["deep"] == "interrupted gateway_restart"
            await trio.to_thread.run_sync(child.wait)
    instance.foreground()
    with trio.fail_after(PATIENCE_SECONDS):
        async with client(instance, token) as person, watching(person, session_id) as tab:
            gone = "interrupted gateway_restart"
            expected = {"back": gone, "deep": gone, "job": gone, "asks": "stopped user", "front": "stopped turn_stop"}
            assert fates(tab) == expected
            assert all(view["rev"] >= before[view["id"]]["rev"] for view in tab.views.values())
            page = await person.ok("agents.transcript", path={"session_id": session_id, "agent_id": deep})
            numbers = [item["seq"] for item in page["items"]]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            assert page["items"][-1]["event"] == "interrupted"
