"""The loop breaker as decisions D8 words it, counted from outside: which sessions must be set aside by now."""

from collections.abc import Set

from attrs import define, field

LIMIT = 3


@define(eq=False)
class LoopBreaker:
    """Told of every death and of whom it cut off.  All deaths here are quick: no server lives for a minute."""

    set_aside: set[str] = field(factory=set)
    _in_a_row: dict[str, int] = field(factory=dict)

    def died(self, cut_off: Set[str], set_aside: Set[str], *, idle_deaths: int) -> None:
        """After a restart: whose turns were cut off, and who is set aside by what the server says.

        ``idle_deaths``: starts that died before they served anybody, since the last one that did.  They end every row;
        whether it had grown before that depends on how far they came, so then the server is believed.
        """
        if idle_deaths:
            self._in_a_row.clear()
            assert self.set_aside <= set_aside <= self.set_aside | cut_off
            self.set_aside = set(set_aside)
            return
        self._in_a_row = {session: self._in_a_row.get(session, 0) + 1 for session in cut_off}
        self.set_aside |= {session for session, count in self._in_a_row.items() if count >= LIMIT}
        assert set_aside == self.set_aside, f"set aside are {set(set_aside)}, not {self.set_aside}: {self._in_a_row}"

    def lifted(self, session_id: str) -> None:
        """The row goes on: one more death is enough."""
        self.set_aside.discard(session_id)
