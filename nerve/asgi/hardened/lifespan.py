"""The app's lifespan around the server.

Hypercorn 0.18 logs an app that falls in its lifespan and keeps serving it.  Here what falls takes the server down.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from nerve.asgi.hardened.context import Context
from nerve.asgi.protocol import Message, Scope


class LifespanFailed(Exception):
    """The app refused to start or to stop, ended early, or took too long; the message says which."""


@asynccontextmanager
async def lifespan(context: Context) -> AsyncIterator[None]:
    """Started on entry, shut down on exit.  Raises LifespanFailed, or whatever the app raised, also meanwhile."""
    life = _Lifespan(context)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run)
        await life.step("startup", context.config.startup_timeout)
        yield
        await life.step("shutdown", context.config.shutdown_timeout)
        nursery.cancel_scope.cancel()


class _Lifespan:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: dict[str, trio.Event] = {"startup": trio.Event(), "shutdown": trio.Event()}
        self._done: dict[str, trio.Event] = {"startup": trio.Event(), "shutdown": trio.Event()}
        self._steps = iter(self._asked.items())

    async def step(self, name: str, seconds: float) -> None:
        self._asked[name].set()
        with trio.move_on_after(seconds) as patience:
            await self._done[name].wait()
        if patience.cancelled_caught:
            raise LifespanFailed(f"the app's {name} took more than {seconds:g} s")

    async def run(self) -> None:
        scope: Scope = {
            "type": "lifespan",
            "asgi": {"spec_version": "2.0", "version": "3.0"},
            "state": self._context.state,
        }
        await self._context.app(scope, self._receive, self._send)
        if not self._done["shutdown"].is_set():
            raise LifespanFailed("the app's lifespan ended before the server's")

    async def _receive(self) -> Message:
        step = next(self._steps, None)
        if step is None:
            await trio.sleep_forever()
        else:
            name, asked = step
            await asked.wait()
        return {"type": f"lifespan.{name}"}

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        for name, done in self._done.items():
            if kind == f"lifespan.{name}.complete":
                done.set()
                return
            if kind == f"lifespan.{name}.failed":
                raise LifespanFailed(f"the app's {name} failed: {message.get('message', '')}")
        raise LifespanFailed(f"an app may not send {kind!r} here")
