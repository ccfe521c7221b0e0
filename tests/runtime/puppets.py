"""A runtime whose strings the test pulls: what it says, when it dies, and how it takes a prompt."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import trio
from attrs import define, field

from nerve.adapters.protocol import (
    AgentClient,
    AgentEvent,
    Availability,
    Capabilities,
    SessionSpec,
    TurnEnded,
    TurnPrompt,
    TurnStatus,
)
from nerve.adapters.subagents import AgentEnded, AgentOutcome
from tests.sessions.session_house import House

COMPLETED = TurnEnded(TurnStatus.COMPLETED)
INTERRUPTED = TurnEnded(TurnStatus.INTERRUPTED)


async def _at_once() -> None:
    await trio.lowlevel.checkpoint()


@define(eq=False)
class Puppet:
    """An open client."""

    native_id: str
    spec: SessionSpec
    _prompted: Callable[[], None]
    prompts: list[TurnPrompt] = field(factory=list)
    interrupts: int = 0
    stopped: list[str] = field(factory=list)  # refs, in the order in which their stops came
    known: frozenset[str] | None = None  # what ``live_agents`` answers
    closed: bool = False
    began_afresh: bool = False
    obedient: bool = True  # ends the turn as interrupted when asked
    refusal: Exception | None = None  # what ``prompt`` raises
    deaf: Exception | None = None  # what ``interrupt`` raises
    answering: Callable[[], Awaitable[None]] = _at_once  # waited for within ``prompt``
    stopping: Callable[[str], Awaitable[None]] = lambda ref: _at_once()  # and within ``stop_agent``
    capabilities: Capabilities = field(factory=Capabilities)
    _send: trio.MemorySendChannel[AgentEvent | Exception] = field(init=False)
    _receive: trio.MemoryReceiveChannel[AgentEvent | Exception] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[AgentEvent | Exception](1000)

    @property
    def events(self) -> AsyncIterator[AgentEvent]:
        return self

    def __aiter__(self) -> "Puppet":
        return self

    async def __anext__(self) -> AgentEvent:
        event = await self._receive.__anext__()
        if isinstance(event, Exception):
            raise event
        return event

    async def prompt(self, turn: TurnPrompt) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.prompts.append(turn)
        self._prompted()
        await self.answering()

    async def interrupt(self) -> None:
        self.interrupts += 1
        if self.deaf is not None:
            raise self.deaf
        if self.obedient:
            self.say(INTERRUPTED)

    async def stop_agent(self, ref: str, *, spare_children: bool = False) -> None:
        if self.deaf is not None:
            raise self.deaf
        self.stopped.append(ref)
        await self.stopping(ref)
        if self.obedient:
            self.say(AgentEnded(ref=ref, outcome=AgentOutcome.STOPPED))

    async def live_agents(self) -> frozenset[str] | None:
        return self.known

    def say(self, *events: AgentEvent) -> None:
        for event in events:
            self._send.send_nowait(event)

    def die(self, cause: Exception | None = None) -> None:
        """Without a cause the events just end."""
        if cause is None:
            self._send.close()
        else:
            self._send.send_nowait(cause)


@define(eq=False)
class PuppetAdapter:
    """``opening`` and ``closing`` are waited for around the life of a client; ``prepare`` sees each new one first."""

    clients: list[Puppet] = field(factory=list)
    opening: Callable[[], Awaitable[None]] = _at_once
    closing: Callable[[], Awaitable[None]] = _at_once
    prepare: Callable[[Puppet], None] = lambda puppet: None
    name: str = "scripted"
    default_model: str = "puppet"
    forgotten: list[str] = field(factory=list)
    stirred: trio.Event = field(factory=trio.Event)

    async def availability(self) -> Availability:
        return Availability(True)

    @asynccontextmanager
    async def open(self, session: SessionSpec) -> AsyncIterator[AgentClient]:
        await self.opening()
        puppet = Puppet(session.native_id or f"native-{len(self.clients) + 1}", session, lambda: self.stirred.set())
        puppet.began_afresh = session.native_id is None
        self.prepare(puppet)
        self.clients.append(puppet)
        try:
            yield puppet
        finally:
            with trio.CancelScope(shield=True):
                await self.closing()
            puppet.closed = True

    async def forget_session(self, session_id: str) -> None:
        pass

    async def forget(self, native_id: str) -> None:
        self.forgotten.append(native_id)

    @property
    def newest(self) -> Puppet:
        return self.clients[-1]

    async def prompted(self, times: int = 1) -> Puppet:
        """The client that got the prompt of so many."""
        with trio.fail_after(30):
            while sum(len(client.prompts) for client in self.clients) < times:
                self.stirred = trio.Event()
                await self.stirred.wait()
        return self.newest


def puppets(house: House) -> PuppetAdapter:
    """Puts puppets in the place of the scripted runtime."""
    adapter = PuppetAdapter()
    cast("dict[str, Any]", house.supervisor.house.backends.adapters)["scripted"] = adapter
    return adapter
