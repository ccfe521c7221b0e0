"""Who notices, while an app is at work, that its client has left: one task for the whole server.

ASGI has an app wait in ``receive()`` beside its work, which takes a nursery and a task for every request, and nearly
every request is over before anybody could leave.  So work is watched only once it takes long: until then it stands in
one queue, from which finished work is dropped in passing.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType

import trio

from nerve.asgi.hardened.containment import contained

LONG_SECONDS = 0.05

UntilLeft = Callable[[], Awaitable[bool]]


class Patrol:
    """``run`` it beside the connections."""

    def __init__(self) -> None:
        self._fresh: deque[Watch] = deque()
        self._stirred = trio.Event()

    def watch(self, until_left: UntilLeft) -> "Watch":
        return Watch(self, until_left)

    def add(self, watch: "Watch") -> None:
        self._fresh.append(watch)
        self._stirred.set()

    async def run(self) -> None:
        """Never returns."""
        async with trio.open_nursery() as nursery:
            while True:
                if not self._fresh:
                    self._stirred = trio.Event()
                    await self._stirred.wait()
                await trio.sleep(LONG_SECONDS)
                now = trio.current_time()
                while self._fresh and (self._fresh[0].over or self._fresh[0].since + LONG_SECONDS <= now):
                    watch = self._fresh.popleft()
                    if not watch.over:
                        nursery.start_soon(contained, "a watch", watch.stand)


class Watch:
    """A block of work that is cancelled when the client leaves; ``left`` says so afterwards.

    The request has to be complete: meanwhile nobody else may read from the connection.
    """

    def __init__(self, patrol: Patrol, until_left: UntilLeft) -> None:
        self._patrol = patrol
        self._until_left = until_left
        self._work = trio.CancelScope()
        self._standing: trio.CancelScope | None = None
        self._stood_down: trio.Event | None = None
        self.since = 0.0
        self.over = False

    @property
    def left(self) -> bool:
        return self._work.cancelled_caught

    async def stand(self) -> None:
        if self.over:
            return
        self._stood_down = trio.Event()
        try:
            with trio.CancelScope() as self._standing:
                if await self._until_left():
                    self._work.cancel()
        finally:
            self._stood_down.set()  # also when the whole server is cancelled: the work waits for it

    async def __aenter__(self) -> "Watch":
        self.since = trio.current_time()
        self._patrol.add(self)
        self._work.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.over = True
        if self._standing is not None and self._stood_down is not None:
            # The next one to read is the connection itself.
            self._standing.cancel()
            with trio.CancelScope(shield=True):
                await self._stood_down.wait()
        return self._work.__exit__(kind, exc, trace)
