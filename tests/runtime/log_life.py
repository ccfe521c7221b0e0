"""One session's event log without its session: processes that come, say something and crash."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import apsw
import orjson
import trio
from attrs import define, field
from trio.testing import MockClock

from nerve.contract.generated.frames_server import (
    ThinkingFrame,
    TokenFrame,
    ToolOutputFrame,
)
from nerve.effects import Effects
from nerve.runtime.backends import Backends
from nerve.runtime.binding import Binding
from nerve.runtime.event_log import SessionLog
from nerve.runtime.house import House
from nerve.runtime.hub import Hub
from nerve.runtime.outbox import Outbox
from nerve.runtime.supervisor import Supervisor, open_supervisor
from nerve.store.inline import InlineDatabase, open_inline
from tests.sessions.session_house import now

SESSION = "s"
LATEST_SAVE = 0.25
SLACK = 0.001


def add_session(db: apsw.Connection) -> None:
    db.execute(
        "INSERT INTO sessions (id, title, source, status, backend, cwd, created_at, updated_at)"
        " VALUES (?1, ?1, 'web', 'idle', 'scripted', '/', 'x', 'x')",
        (SESSION,),
    )


def stored(db: apsw.Connection) -> list[tuple[int, str]]:
    return list(db.execute("SELECT seq, frame FROM frames ORDER BY seq"))


@define(eq=False)
class Witness:
    """Bound to the session; keeps what it is shown and when."""

    account_id: str | None = None
    shown: list[tuple[float, int, dict[str, Any]]] = field(factory=list)

    def deliver(self, data: bytes, seq: int | None = None) -> None:
        assert seq is not None
        frame = orjson.loads(data)
        assert frame["seq"] == seq
        self.shown.append((trio.current_time(), seq, frame))

    def close(self, code: int, reason: str = "") -> None:
        raise AssertionError("nothing here closes a socket")


@define(eq=False)
class Life:
    """One process: what it was given to say, up to its crash."""

    supervisor: Supervisor
    log: SessionLog
    witness: Witness
    said: list[tuple[str, str]] = field(factory=list)  # kind with tool, and the piece


@asynccontextmanager
async def life(database: InlineDatabase, witness: Witness) -> AsyncIterator[Life]:
    """Leaving it is a crash: nothing is flushed."""
    hub = Hub()
    hub.bind(witness, SESSION)
    house = House(database, hub, Effects(now=now), Backends("scripted", {}))
    async with open_supervisor(house) as supervisor, trio.open_nursery() as nursery:
        log = await supervisor.logs.hold(SESSION)
        nursery.start_soon(log.run)
        yield Life(supervisor, log, witness)
        nursery.cancel_scope.cancel()


def piece(kind: str, text: str) -> TokenFrame | ThinkingFrame | ToolOutputFrame:
    match kind:
        case "token":
            return TokenFrame(session_id=SESSION, content=text)
        case "thinking":
            return ThinkingFrame(session_id=SESSION, content=text)
        case _:
            return ToolOutputFrame(session_id=SESSION, tool_use_id=kind, content=text)


def nothing_more(db: apsw.Connection) -> None:
    """No bounds to trim to."""


def kind_of(frame: dict[str, Any]) -> str:
    return str(frame["tool_use_id"]) if frame["type"] == "tool_output" else str(frame["type"])


async def replayed(living: Life, after: int) -> list[dict[str, Any]]:
    outbox = Outbox()
    binding = await Binding.bind(living.supervisor, outbox, SESSION)
    binding.attach()
    await binding.replay(after)
    binding.release()
    outbox.close(1000)
    frames = []
    while (data := await outbox.next()) is not None:
        frames.append(orjson.loads(data))
        outbox.taken()
    return frames


def run_on_a_log(fn: Any) -> None:
    async def main() -> None:
        with open_inline() as database:
            await database.write(add_session)
            async with life(database, Witness()) as living:
                await fn(database, living)

    trio.run(main, clock=MockClock(autojump_threshold=0))
