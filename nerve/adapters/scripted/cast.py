"""The agents and background tasks of one open scripted runtime: a tree of scopes below the nursery of its session.

Each one runs in a task of its own and ends after everything that it started has ended, so no scope outlives its parent;
only where the documents say that children go on do they get the session itself for a parent (decisions D16, D34).
"""

from collections.abc import Awaitable, Callable
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

    def enter(self, member: Member) -> None:
        """From here on it can be stopped; one that a stop reaches before ``start`` plays nothing."""
        self.members[member.ref] = member
        if member.parent is not None:
            member.parent.children[member.ref] = member

    def start(self, member: Member, work: Callable[[], Awaitable[Outcome]]) -> None:
        """``work`` is cancelled by a stop; it says how the member ended otherwise."""
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
                    await self._until_childless(member)
            if member.interruption.scope.cancelled_caught:
                member.outcome = member.when_stopped
            await self._leave(member)
        finally:
            member.ended.set()

    async def _leave(self, member: Member) -> None:
        """End what it started, or hand it to the session, and tell the end."""
        for child in list(member.children.values()):
            if member.spared is Spared.ALL or (member.spared is Spared.BACKGROUND and child.background):
                child.parent = None
                del member.children[child.ref]
            elif member.silent:
                child.silent = True
                child.interruption.kill()
            else:
                self.stop(child, member.spared)
        await self._until_childless(member)
        self.members.pop(member.ref, None)
        if member.parent is not None:
            member.parent.children.pop(member.ref, None)
        outcome = member.outcome
        if not member.silent and not self._dead:
            ended = AgentEnded(ref=member.ref, outcome=outcome.outcome, result=outcome.result, error=outcome.error)
            await self.emit(ended)

    async def _until_childless(self, member: Member) -> None:
        while member.children:
            await next(iter(member.children.values())).ended.wait()
