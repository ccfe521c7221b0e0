"""An interrupt of a turn: it takes effect at once, except while the turn is deaf to it."""

from collections.abc import Iterator
from contextlib import contextmanager

import trio
from attrs import define, field


@define(eq=False)
class Interruption:
    """``scope`` is around the turn's work; a cancel from outside of it is never held up."""

    scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _requested: bool = field(default=False, init=False)
    _deaf: bool = field(default=False, init=False)

    def request(self) -> None:
        self._requested = True
        if not self._deaf:
            self.scope.cancel()

    def kill(self) -> None:
        """End it at once, deaf or not."""
        self._requested = True
        self.scope.cancel()

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Hold an interrupt back until the block is left; it then strikes at the next checkpoint."""
        self._deaf = True
        try:
            yield
        finally:
            self._deaf = False
            if self._requested:
                self.scope.cancel()
