"""When a session's changed agents are told: soon after what matters, now and then while they only make progress."""

import math
from collections.abc import Iterable

import trio
from attrs import define, field

URGENT_SECONDS = 0.05
PROGRESS_SECONDS, CROWDED_PROGRESS_SECONDS = 1.0, 2.0
CROWD = 20  # live agents; above, progress is told more rarely
COUNT_SECONDS = 1.0


@define
class Announcements:
    """Pure but for trio's clock.  ``due`` and ``count_due`` are instants of it; infinite: nothing to tell."""

    dirty: dict[str, None] = field(factory=dict)  # ids of changed agents, in order
    settled: bool = False  # whether a status is among the changes
    due: float = math.inf
    count_due: float = math.inf
    _last: float = -math.inf

    def changed(self, agent_id: str, live: int, *, urgent: bool) -> None:
        """``urgent``: it was created, or its status or attention changed."""
        self.dirty[agent_id] = None
        now = trio.current_time()
        if urgent:
            self.settled = True
            self.due = min(self.due, now + URGENT_SECONDS)
        else:
            pause = CROWDED_PROGRESS_SECONDS if live > CROWD else PROGRESS_SECONDS
            self.due = min(self.due, max(now + URGENT_SECONDS, self._last + pause))

    def count_changed(self) -> None:
        self.count_due = min(self.count_due, trio.current_time() + COUNT_SECONDS)

    def put_back(self, agent_ids: Iterable[str], settled: bool) -> None:
        """What was taken could not be told yet."""
        self.dirty = {**dict.fromkeys(agent_ids), **self.dirty}
        self.settled, self.due = self.settled or settled, trio.current_time()

    def take(self) -> tuple[list[str], bool]:
        """What is to be told now, and whether a status is among it."""
        taken, settled = list(self.dirty), self.settled
        self.dirty.clear()
        self.settled, self.due, self._last = False, math.inf, trio.current_time()
        return taken, settled
