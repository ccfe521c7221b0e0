"""Reaping what a subreaper was left with, and never what somebody else waits for."""

import os
from contextlib import suppress

from attrs import define, field

from nerve.processes.census import Census, Seen

# A dead child that nobody here started and that was not seen with another parent: after so long nobody waits for it.
PATIENCE_SECONDS = 10.0


@define
class Orphans:
    """Remembers who was somebody else's child: dead ones among them can only be waited for here."""

    _strangers: set[tuple[int, float]] = field(factory=set)
    _dead_since: dict[tuple[int, float], float] = field(factory=dict)

    @property
    def expected(self) -> bool:
        """Whether a look is worth its while: one is known that may come, or a dead one is here already."""
        return bool(self._strangers or self._dead_since) or _somebody_is_dead()

    def reap(self, census: Census, own: set[int], now: float) -> None:
        """``own`` are the processes that are waited for elsewhere."""
        here = os.getpid()
        children = {seen.pid for seen in census.processes if seen.parent == here}
        below = {seen.pid for seen in census.family(lambda seen: seen.pid in children)}
        dead = [s for s in census.processes if s.zombie and s.parent == here and s.pid not in own]
        for seen in dead:
            since = self._dead_since.setdefault((seen.pid, seen.born), now)
            if (seen.pid, seen.born) in self._strangers or now - since >= PATIENCE_SECONDS:
                _reap(seen)
        self._dead_since = {key: at for key, at in self._dead_since.items() if key in {(s.pid, s.born) for s in dead}}
        adopted = {(s.pid, s.born) for s in census.processes} & self._strangers
        self._strangers = adopted | {
            (s.pid, s.born) for s in census.processes if s.pid in below and s.parent != here and not s.zombie
        }


def _somebody_is_dead() -> bool:
    """Among the children of this process; nothing is taken from whoever waits for it."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # there are no children
        return False


def _reap(seen: Seen) -> None:
    with suppress(ChildProcessError):  # somebody was quicker
        os.waitpid(seen.pid, os.WNOHANG)
