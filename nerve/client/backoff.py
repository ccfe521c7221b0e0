"""How long to wait before connecting again."""

import random

from attrs import frozen


@frozen
class Backoff:
    """Doubles from ``first`` to ``longest`` seconds.

    Of each wait a random share, up to half, is taken off: the clients of a server that is back don't all come at once.

    A connection that lasted ``steady`` seconds is a good one: the next wait is the first again.
    """

    first: float = 0.5
    longest: float = 30.0
    steady: float = 10.0

    def delay(self, attempt: int, rng: random.Random) -> float:
        """Seconds before the attempt with this number, counted from 0."""
        whole = min(self.longest, self.first * 2.0 ** min(attempt, 30))
        return whole * (1 - rng.random() / 2)
