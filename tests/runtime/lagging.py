"""Databases whose writers hear of their commit later than readers could, as with a writing thread."""

import random
from collections.abc import Callable
from typing import Any

import trio
from attrs import define, field

from nerve.errors import ErrorCode, NerveError
from nerve.store.inline import InlineDatabase

LONGEST = 6  # checkpoints


@define(eq=False)
class LaggingDatabase:
    """Cancelled before its transaction a write did not happen; after it, its outcome is delivered all the same."""

    _inner: InlineDatabase
    _rng: random.Random = field(factory=lambda: random.Random(1))

    async def read(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        return await self._inner.read(fn, *args)

    async def read_large(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Waits for its place on the pool, and for its result."""
        await self._lag()
        found = await self._inner.read(fn, *args)
        await self._lag()
        return found

    async def write(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        try:
            return await self._inner.write(fn, *args)
        finally:
            await self._lag()

    async def _lag(self) -> None:
        for _ in range(self._rng.randrange(LONGEST)):
            await trio.lowlevel.cancel_shielded_checkpoint()


@define(eq=False)
class HeldDatabase:
    """While ``held``, whoever writes hears of the commit only at its release.

    A call of a function named in ``gated`` does not begin before the gate is opened, and can be cancelled; one named
    in ``busy`` is refused.
    """

    _inner: InlineDatabase
    held: bool = False
    gated: frozenset[str] = frozenset()
    gate: trio.Event = field(factory=trio.Event)
    busy: frozenset[str] = frozenset()
    committed: trio.Event = field(factory=trio.Event)
    _release: trio.Event = field(factory=trio.Event)

    async def read(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        await self._may_begin(fn.__name__)
        return await self._inner.read(fn, *args)

    read_large = read

    async def _may_begin(self, name: str) -> None:
        if name in self.gated:
            await self.gate.wait()
        if name in self.busy:
            await trio.lowlevel.checkpoint()
            raise NerveError(ErrorCode.STORE_BUSY)

    async def write(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        await self._may_begin(fn.__name__)
        value = await self._inner.write(fn, *args)
        if self.held:
            self.committed.set()
            with trio.CancelScope(shield=True):
                await self._release.wait()
        return value

    def hold(self) -> None:
        self.held, self.committed, self._release = True, trio.Event(), trio.Event()

    def release(self) -> None:
        self.held = False
        self._release.set()
