"""Which sessions the clean-up archives, and in which order (sessions-and-agents.md section 2)."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from attrs import define, field, frozen

from nerve.domain.sessions import ArchiveReason

# Where a person talks; what cron, hooks, workflows and outside agents do is not idle, it is over.
INTERACTIVE = frozenset({"web", "telegram", "slack", "api"})
OFF = timedelta(0)


@frozen
class Policy:
    """``OFF`` switches a cutoff off; ``max_sessions`` counts all that are not archived."""

    interactive_after: timedelta
    stale_after: timedelta
    max_sessions: int

    @property
    def interval(self) -> timedelta:
        """How often it is looked."""
        return timedelta(hours=6) if self.interactive_after == OFF else timedelta(hours=1)


@frozen
class Resident:
    """A session that is not archived.

    ``parent_id`` is the nearest ancestor that is not archived either.  ``active_at`` is the newest sign of life,
    ``updated_at`` the newest that a person would have seen.  ``over``: idle, stopped or failed.  ``exempt``: starred,
    with a runtime, with work that waits, or ``main``.
    """

    id: str
    parent_id: str | None
    source: str
    updated_at: datetime
    active_at: datetime
    over: bool
    exempt: bool


@frozen
class Leaving:
    """A session that is to be archived, as it was when that was decided."""

    id: str
    reason: ArchiveReason
    updated_at: datetime


def leaving(residents: Sequence[Resident], policy: Policy, now: datetime, busy: Callable[[str], bool]) -> list[Leaving]:
    """Who is to be archived, children before their parents: a session stays as long as one beneath it stays.

    First what a person left, then what is stale, then the oldest of what is above ``max_sessions``.
    """
    plan = _Plan.of([r for r in residents if not r.exempt and not busy(r.id)], residents)
    if policy.interactive_after != OFF:
        edge = now - policy.interactive_after
        plan.take(ArchiveReason.CLEANUP, lambda r: r.over and r.source in INTERACTIVE and r.active_at < edge)
    if policy.stale_after != OFF:
        oldest = now - policy.stale_after
        plan.take(ArchiveReason.CLEANUP, lambda r: r.over and r.updated_at < oldest)
    plan.take(ArchiveReason.OVERFLOW, lambda r: True, len(residents) - len(plan.taken) - policy.max_sessions)
    return plan.taken


@define
class _Plan:
    _free: dict[str, Resident]  # who may leave at all
    _beneath: Counter[str]  # how many children of a session stay
    taken: list[Leaving] = field(factory=list)

    @classmethod
    def of(cls, free: Sequence[Resident], residents: Sequence[Resident]) -> "_Plan":
        return cls({r.id: r for r in free}, Counter(r.parent_id for r in residents if r.parent_id is not None))

    def take(self, reason: ArchiveReason, due: Callable[[Resident], bool], most: int | None = None) -> None:
        """Take the oldest that is due and has nothing beneath it, again and again; at most ``most``."""
        found = self._oldest_first({r.id: r for r in self._free.values() if due(r)})
        for count, resident in enumerate(found):
            if most is not None and count >= most:
                return
            del self._free[resident.id]
            self.taken.append(Leaving(resident.id, reason, resident.updated_at))
            if resident.parent_id is not None:
                self._beneath[resident.parent_id] -= 1

    def _oldest_first(self, due: dict[str, Resident]) -> Iterator[Resident]:
        ready = [(r.updated_at, r.id) for r in due.values() if not self._beneath[r.id]]
        heapq.heapify(ready)
        while ready:
            resident = due[heapq.heappop(ready)[1]]
            yield resident
            parent = due.get(resident.parent_id or "")
            if parent is not None and not self._beneath[parent.id]:
                heapq.heappush(ready, (parent.updated_at, parent.id))
