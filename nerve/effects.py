"""The outside world as one value: time, ids, randomness and blocking work are asked for, never grabbed."""

import random
import secrets
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import trio
from attrs import field, frozen

T = TypeVar("T")

UUID_CHARACTERS = 36  # with its dashes

# Forms of sessions-and-agents.md section 1 and gaps.md 1.1, 6.1; the value is (prefix, hex digits), and
# for a UUID its length.
ID_FORMS = {
    "session": ("", 8),
    "fork": ("fork-", 8),
    "actor": ("act_", 16),
    "account": ("acc_", 16),
    "turn": ("turn_", 12),
    "queue": ("q_", 8),
    "agent": ("ag_", 12),
    "request": ("req_", 12),
    "tool_use": ("toolu_", 16),
    "native": ("", 32),
    "upload": ("", 16),
    "task": ("a", 16),
    "generation": ("", 16),
    "interaction": ("", UUID_CHARACTERS),
}


class Blocking(Protocol):
    """Runs blocking work (bcrypt, files, git) off the event loop.

    Cancelled while it waits for a place: nothing happened.  Once begun, the work ends and its result is delivered.
    """

    def __call__(
        self, fn: Callable[..., T], /, *args: Any, limiter: trio.CapacityLimiter | None = None
    ) -> Awaitable[T]: ...


async def in_thread(fn: Callable[..., T], /, *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
    return await trio.to_thread.run_sync(fn, *args, limiter=limiter)


def real_now() -> datetime:
    return datetime.now(UTC)


def real_id(kind: str) -> str:
    """A new random id of one of ``ID_FORMS``."""
    prefix, digits = ID_FORMS[kind]
    if digits == UUID_CHARACTERS:
        return prefix + str(uuid.uuid4())
    return prefix + (uuid.uuid4().hex if digits == 32 else secrets.token_hex(digits // 2))


@frozen
class Effects:
    """``now`` is aware and UTC; timeouts use trio's clock instead.  ``secret`` gives url-safe text of random bytes."""

    now: Callable[[], datetime] = real_now
    new_id: Callable[[str], str] = real_id
    secret: Callable[[int], str] = secrets.token_urlsafe
    rng: random.Random = field(factory=random.Random)
    blocking: Blocking = in_thread
