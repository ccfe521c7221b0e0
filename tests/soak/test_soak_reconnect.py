"""A client that drops in mid-turn, again and again, and returns with ``after_seq``: each frame exactly once."""

import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from tests.soak.daemon import Daemon
from tests.soak.plays import HEAD
from tests.soak.scale import amount
from tests.soak.wire import Wire, WireEnded, open_wire
from tests.soak.witness import Witness

DROPS = amount(sample=10, whole=100)
SECONDS_A_DROP = 0.08
PACE = 0.01


def _play() -> str:
    """Streams for as long as the drops take, and calls tools in between."""
    rounds = DROPS // 2
    words = round(2 * SECONDS_A_DROP / PACE)
    steps: list[dict[str, object]] = []
    for number in range(rounds):
        text = " ".join(f"{number}.{word}" for word in range(words)) + " "
        steps.append({"say": text, "pace": PACE})
        steps.append({"tool": "Bash", "output": ["a\n", "b\n"], "result": "ok", "seconds": 0.05})
        steps.append({"think": "Now the next. "})
    return HEAD + json.dumps([*steps, {"say": "The end."}])


@asynccontextmanager
async def _return(daemon: Daemon, witness: Witness, rng: random.Random) -> AsyncIterator[Wire]:
    """Either way of coming back: with the query of the first bind, or with ``switch_session``."""
    if rng.random() < 0.5:
        async with open_wire(daemon.port, daemon.token, witness.session_id, after_seq=witness.cursor) as wire:
            yield wire
    else:
        async with open_wire(daemon.port, daemon.token) as wire:
            await wire.send({"type": "switch_session", "session_id": witness.session_id, "after_seq": witness.cursor})
            yield wire


async def _read_for(wire: Wire, witness: Witness, seconds: float) -> bool:
    """Read for so long; True once the turn has ended."""
    with trio.move_on_after(seconds):
        while True:
            frame = witness.follow(await wire.receive(), trio.current_time())
            if frame["type"] in ("done", "error") and "seq" in frame:
                return True
    return False


@pytest.mark.soak
@pytest.mark.slow
async def test_each_frame_once_whatever_the_line_does(
    daemon: Daemon, rng: random.Random, say: Callable[[str], None]
) -> None:
    _, session = await trio.to_thread.run_sync(daemon.post, "/api/sessions")
    witness = Witness(session["id"])
    message = {"type": "message", "session_id": witness.session_id, "content": _play(), "client_msg_id": "long"}
    drops = 0
    with trio.fail_after(120):
        async with open_wire(daemon.port, daemon.token, witness.session_id) as sender:
            await sender.send(message)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_watch, sender, Witness(witness.session_id))
                ended = False
                while not ended:
                    async with _return(daemon, witness, rng) as wire:
                        seconds = rng.uniform(0, 2 * SECONDS_A_DROP) if drops < DROPS else 60.0
                        ended = await _read_for(wire, witness, seconds)
                        if not ended:
                            drops += 1
                            wire.drop()
                nursery.cancel_scope.cancel()
    assert drops == DROPS, f"the turn was over after {drops} drops"
    assert not witness.gaps  # nothing was lost, so nothing may be missing
    witness.check_turns()
    _, page = await trio.to_thread.run_sync(daemon.get, f"/api/sessions/{witness.session_id}/messages")
    assert page["messages"][-1]["content"] == witness.text_of_turn(1)
    assert witness.text_of_turn(1).endswith("The end.")
    say(f"{drops} drops in mid-turn: {len(witness.frames)} frames, each once, no gap")


async def _watch(wire: Wire, witness: Witness) -> None:
    try:
        while True:
            witness.glance(await wire.receive(), trio.current_time())
    except WireEnded as ended:
        raise AssertionError("the sender's own socket was closed") from ended
