"""Rules of scheduled turns: wakeups of an agent and deferred messages of a person (sessions-and-agents.md 11)."""

from datetime import datetime, timedelta
from enum import StrEnum

from attrs import frozen

SHORTEST, LONGEST = 60.0, 3600.0  # seconds that an agent's wakeup is away
SWEEP_SECONDS = 20.0

CONTINUE = (
    "Continue your loop: look at what has changed since your last turn, do what is due now, and schedule another "
    "wakeup if there is more to do later."
)
SENTINELS = frozenset({"<<autonomous-loop>>", "<<autonomous-loop-dynamic>>"})


class WakeupKind(StrEnum):
    WAKEUP = "wakeup"  # a hidden prompt of the agent's own
    MESSAGE = "message"  # a person's message that was put off


LABELS = {WakeupKind.WAKEUP: "Scheduled wakeup", WakeupKind.MESSAGE: "Scheduled run"}

DELAYS = {"30m": timedelta(minutes=30), "1h": timedelta(hours=1), "24h": timedelta(hours=24)}


@frozen
class PendingWakeup:
    """What a session's rows and frames tell of the one that is scheduled."""

    fire_at: datetime
    created_by_actor_id: str | None
    caused_by_actor_id: str | None


def clamped(delay_seconds: float) -> float:
    return min(max(delay_seconds, SHORTEST), LONGEST)


def written(instant: datetime) -> str:
    """For people and models."""
    return instant.strftime("%Y-%m-%d %H:%M:%S UTC")


def replacement(kind: str, fire_at: datetime) -> str:
    """What is said of a pending one whose place was taken."""
    what = "the wakeup" if kind == WakeupKind.WAKEUP else "the deferred message"
    return f"It takes the place of {what} that was scheduled for {written(fire_at)}."


def spoken(prompt: str) -> str:
    """What the runtime is told: the prompt, or for a sentinel the standard text."""
    return CONTINUE if prompt.strip() in SENTINELS else prompt
