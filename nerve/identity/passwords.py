"""bcrypt off the event loop: one computation at a time, few waiting, never a password longer than it can take."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import bcrypt
import trio

from nerve.effects import Blocking
from nerve.errors import ErrorCode, NerveError
from nerve.identity.naming import fits_bcrypt, password_bytes

T = TypeVar("T")

COST = 12
WAITING_IN_ALL = 16
_COSTS = range(4, 17)  # a higher one in the configuration would keep the thread busy for minutes
_HASH = re.compile(r"\$2[aby]\$(?P<cost>\d\d)\$[./A-Za-z0-9]{53}")


def cost_of(hashed: str) -> int | None:
    """The work factor of a bcrypt hash; None if this is none, or one that nobody wants to wait for."""
    found = _HASH.fullmatch(hashed)
    cost = int(found["cost"]) if found else None
    return cost if cost in _COSTS else None


def decoy(cost: int) -> str:
    """A well-formed hash that no password is known for; checking it takes as long as checking a real one."""
    return f"$2b${cost:02d}$" + "." * 21 + "O" + "." * 31


class Passwords:
    """``waiting`` computations, the running one included, are bounded by decisions D21."""

    def __init__(self, blocking: Blocking, cost: int = COST) -> None:
        self.cost = cost
        self._blocking = blocking
        self._one_at_a_time = trio.CapacityLimiter(1)
        self._waiting = 0

    async def matches(self, password: str, hashed: str | None, like: str | None = None) -> bool:
        """Waits for its turn.  Without a hash, or with an over-long password, it takes as long and is False.

        ``like`` is a hash whose cost stands in where there is none.  Raises LOGIN_BUSY.  Cancelled while it waits:
        nothing happened.
        """
        usable = hashed is not None and fits_bcrypt(password)
        secret = password_bytes(password) if usable else b""
        against = hashed or decoy(cost_of(like or "") or self.cost)
        return await self._compute(bcrypt.checkpw, secret, against.encode()) and usable

    async def hashed(self, password: str) -> str:
        """Waits for its turn.  Raises LOGIN_BUSY.  The password has been checked to fit."""
        digest = await self._compute(_hash, password_bytes(password), self.cost)
        return digest.decode()

    async def _compute(self, fn: Callable[..., T], *args: Any) -> T:
        if self._waiting >= WAITING_IN_ALL:
            raise NerveError(ErrorCode.LOGIN_BUSY)
        self._waiting += 1
        try:
            return await self._blocking(fn, *args, limiter=self._one_at_a_time)
        finally:
            self._waiting -= 1


def _hash(password: bytes, cost: int) -> bytes:
    return bcrypt.hashpw(password, bcrypt.gensalt(cost))
