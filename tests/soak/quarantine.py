"""The loop breaker as decisions D8 words it, counted from outside: which sessions must be set aside by now."""

from attrs import define, field

from tests.soak.records import Records

LIMIT = 3


@define(eq=False)
class LoopBreaker:
    """All deaths here are quick and unclean: no server lives for a minute before it is killed."""

    set_aside: set[str] = field(factory=set)
    _served: int = 1  # the number of the last start that anybody was served by

    def restarted(self, now: Records) -> None:
        """Look at the sessions that are set aside, right after a start that has begun to serve."""
        deaths = now.cut_off_by_start()
        newest = len(now.starts)
        due = {session for session in deaths[-1] if _in_a_row(deaths, session) >= LIMIT} if deaths else set()
        if newest == self._served + 1:
            expected = self.set_aside | due
            assert now.quarantined == expected, f"set aside are {set(now.quarantined)}, not {expected}: {deaths[-5:]}"
        else:
            # A start that died within its recovery may have judged a session earlier, and by a shorter row.
            judged = set().union(*deaths[self._served - 1 :])
            assert self.set_aside <= now.quarantined <= self.set_aside | judged
        self.set_aside = set(now.quarantined)
        self._served = newest

    def lifted(self, session_id: str) -> None:
        """The row goes on: one more death is enough."""
        self.set_aside.discard(session_id)


def _in_a_row(deaths: list[set[str]], session_id: str) -> int:
    """How many of the newest deaths, without a break, had a turn of the session running."""
    count = 0
    for cut_off in reversed(deaths):
        if session_id not in cut_off:
            break
        count += 1
    return count
