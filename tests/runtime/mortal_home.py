"""A home whose process can be killed at any write, and started again on what is on disk."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import trio
from attrs import define, field

from nerve.runtime.limits import Limits
from nerve.runtime.recovery import Recovered, recover
from nerve.store import starts
from nerve.store.inline import InlineDatabase
from tests.runtime.tabs import Frame
from tests.sessions.session_house import House, now, open_house


class Killed(Exception):
    """The process is no more."""


@define(eq=False)
class MortalDatabase:
    """``fatal`` more writes are committed; the last one's outcome is never heard of.

    ``last`` is called at the moment of death, and has to leave its caller alone.
    """

    _inner: InlineDatabase
    fatal: int | None = None
    writes: int = 0
    died_at: float | None = None
    last: Callable[[], None] = lambda: None

    @property
    def dead(self) -> bool:
        return self.died_at is not None

    def die(self) -> None:
        if self.died_at is None:
            self.died_at = trio.current_time()
            self.last()

    def _live(self) -> None:
        if self.dead:
            raise Killed

    async def read(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        self._live()
        found = await self._inner.read(fn, *args)
        self._live()
        return found

    read_large = read

    async def write(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        self._live()
        if self.fatal == 0:
            self.die()
        self._live()

        def counted(db: Any) -> Any:
            self._live()
            value = fn(db, *args)
            self.writes += 1
            return value

        value = await self._inner.write(counted)
        if self.fatal is not None and self.writes >= self.fatal:
            self.die()
        self._live()
        return value


@define(eq=False)
class Witness:
    """A socket's place at the hub: what was sent while the process lived."""

    _lives: Callable[[], bool]
    frames: list[Frame] = field(factory=list)
    account_id: str | None = None
    told: Callable[[Frame], None] = lambda frame: None

    def deliver(self, data: bytes, seq: int | None = None) -> None:
        if self._lives():
            self.frames.append(orjson.loads(data))
            self.told(self.frames[-1])

    def close(self, code: int, reason: str = "") -> None:
        raise AssertionError("nothing here closes a socket")


@define(eq=False)
class Life:
    house: House
    recovered: Recovered
    mortal: MortalDatabase

    def kill(self) -> None:
        """From here on nothing is written or heard of; leave the block next."""
        self.mortal.die()

    async def kill_within(self, writes: int, seconds: float) -> None:
        """Kill it after so many more writes, or after so long."""
        self.mortal.fatal = self.mortal.writes + writes if writes else 0
        await trio.sleep(seconds)
        self.kill()

    def witness(self, *session_ids: str) -> Witness:
        witness = Witness(lambda: not self.mortal.dead)
        hub = self.house.services.hub
        hub.add(witness)
        for session_id in session_ids:
            hub.bind(witness, session_id)
        return witness


@define(eq=False)
class Home:
    """Starts one process after the other; only what is in the database and below ``path`` goes from one to the next."""

    database: InlineDatabase
    path: Path
    lives: int = 0
    limits: Limits = field(factory=Limits)

    @asynccontextmanager
    async def life(self, *, fatal: int | None = None, survived: bool = False) -> AsyncIterator[Life]:
        """One process, which ends in order unless it was killed.  ``survived``: it has lived for a minute."""
        self.lives += 1
        generation = f"generation-{self.lives}"
        mortal = MortalDatabase(self.database, fatal)
        try:
            await mortal.write(starts.begin, generation, now())
            async with open_house(mortal, self.path, born=self.lives, limits=self.limits, recovered=False) as house:
                recovered = await recover(house.supervisor.house, generation)
                await house.supervisor.go_on(recovered.waiting)
                if survived:
                    await mortal.write(starts.survived, generation)
                yield Life(house, recovered, mortal)
                if mortal.dead:
                    raise Killed
                await house.supervisor.drain()
                await mortal.write(starts.end, generation, now())
        except* Killed:
            mortal.die()

    async def run_for(self, seconds: float, *, fatal: int, survived: bool = False) -> bool:
        """A process that is killed at a write, maybe while it starts, or after so many seconds; True if at a write."""
        with suppress(RuntimeError):  # what a context manager says that has nothing to give
            async with self.life(fatal=fatal, survived=survived) as life:
                await trio.sleep(seconds)
                at_a_write = life.mortal.dead
                life.kill()
            return at_a_write
        return True

    async def sql(self, text: str, *bindings: Any) -> list[tuple[Any, ...]]:
        return await self.database.read(lambda db: list(db.execute(text, bindings)))
