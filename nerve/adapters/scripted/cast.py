"""The agents and background tasks of one open scripted runtime: a tree of scopes below the nursery of its session.

Each one runs in a task of its own and ends after everything that it started has ended, so no scope outlives its parent;
only where the documents say that children go on do they get the session itself for a parent (decisions D16, D34).
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto

import trio
from attrs import define, field, frozen

from nerve.adapters.protocol import AgentEvent
from nerve.adapters.scripted.interruption import Interruption
from nerve.adapters.subagents import AgentEnded, AgentOutcome


class Spared(Enum):
    """Which children go on when one is stopped."""

    NONE = auto()
    BACKGROUND = auto()  # the turn was stopped
    ALL = auto()  # only this one was to be stopped


@frozen
class Outcome:
    """How one came to its end, as ``AgentEnded`` tells it."""

    outcome: AgentOutcome
    result: str | None = None
    error: str | None = None


STOPPED = Outcome(AgentOutcome.STOPPED)


@define(eq=False)
class Member:
    """``ended`` is set once nothing of it runs any more; ``outcome`` is then how, ``when_stopped`` if a stop did it."""

    ref: str
    parent: "Member | None"
    background: bool
    obeys: bool = True  # a stop is confirmed, after ``stop_seconds``
    stop_seconds: float = 0.0
    interruption: Interruption = field(factory=Interruption)
    children: dict[str, "Member"] = field(factory=dict)
    ended: trio.Event = field(factory=trio.Event)
    outcome: Outcome = STOPPED
    when_stopped: Outcome = STOPPED
    spared: Spared = Spared.NONE
    stopping: bool = False
    silent: bool = False  # it vanished: nobody is told of its end


@define(eq=False)
class Cast:
    """``members`` are those that the runtime knows as live.  ``_crashed`` is told whether nobody is to notice."""

    _nursery: trio.Nursery
    emit: Callable[[AgentEvent], Awaitable[None]]
    _crashed: Callable[[bool], None]
    members: dict[str, Member] = field(factory=dict)
    _dead: bool = False

    @contextmanager
    def entering(self, member: Member, work: Callable[[], Awaitable[Outcome]]) -> Iterator[None]:
        """What tells that the member is there stands in the block; left in order, it runs.

        From the block's beginning it can be stopped; one that a stop reaches before it runs plays nothing.  ``work`` is
        cancelled by a stop; it says how the member ended otherwise.
        """
        self.members[member.ref] = member
        if member.parent is not None:
            member.parent.children[member.ref] = member
        try:
            yield
        except BaseException:
            self._gone(member)  # nobody waits for what never began
            raise
        self._nursery.start_soon(self._run, member, work, name=f"scripted agent {member.ref}")

    def stop(self, member: Member, spared: Spared = Spared.NONE) -> None:
        """Ask it to end.  The first request counts."""
        if member.stopping:
            return
        member.stopping, member.spared = True, spared
        if member.obeys:
            self._nursery.start_soon(self._confirm, member, name=f"stopping {member.ref}")

    async def _confirm(self, member: Member) -> None:
        with trio.move_on_after(member.stop_seconds):
            await member.ended.wait()
        member.interruption.request()

    def stop_all(self) -> None:
        for member in list(self.members.values()):
            self.stop(member)

    async def crash(self, silent: bool) -> None:
        """One of them takes the runtime down, itself included."""
        self._crashed(silent)
        await trio.sleep_forever()

    def die(self) -> None:
        """The runtime is dead: everybody in it ends at once, and nobody is told."""
        self._dead = True
        for member in list(self.members.values()):
            member.interruption.kill()

    async def _run(self, member: Member, work: Callable[[], Awaitable[Outcome]]) -> None:
        try:
            with member.interruption.scope:
                member.outcome = await work()
                if member.outcome.outcome is AgentOutcome.COMPLETED:
                    await _until_childless(member)
            if member.interruption.scope.cancelled_caught:
                member.outcome = member.when_stopped
            self._part_with_children(member)
            await _until_childless(member)
            await self._tell_end(member)
        finally:
            # Cancelled with the whole runtime, so are those that it started: none of them outlives it.
            with trio.CancelScope(shield=True):
                await _until_childless(member)
            self._gone(member)

    def _part_with_children(self, member: Member) -> None:
        """End what it started, or hand it to the session.  When the runtime dies nothing is spared."""
        spared = Spared.NONE if self._dead else member.spared
        for child in list(member.children.values()):
            if spared is Spared.ALL or (spared is Spared.BACKGROUND and child.background):
                child.parent = None
                del member.children[child.ref]
            elif member.silent:
                child.silent = True
                child.interruption.kill()
            else:
                self.stop(child, spared)

    async def _tell_end(self, member: Member) -> None:
        self.members.pop(member.ref, None)
        outcome = member.outcome
        if not member.silent and not self._dead:
            await self.emit(
                AgentEnded(ref=member.ref, outcome=outcome.outcome, result=outcome.result, error=outcome.error)
            )

    def _gone(self, member: Member) -> None:
        self.members.pop(member.ref, None)
        if member.parent is not None:
            member.parent.children.pop(member.ref, None)
        member.ended.set()


async def _until_childless(member: Member) -> None:
    while member.children:
        await next(iter(member.children.values())).ended.wait()
