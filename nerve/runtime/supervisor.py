"""The supervisor: its nursery holds every live session; what comes in, what is stopped and what closes passes here."""

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial

import trio
from attrs import define, field

from nerve.contract.caller import Caller
from nerve.contract.generated.entities import AgentEndReason
from nerve.contract.generated.frames_server import SessionArchivedFrame
from nerve.domain.answers import PersonsAnswer
from nerve.domain.wakeups import WakeupKind
from nerve.errors import ErrorCode, NerveError, sole_error
from nerve.runtime.agents import Agents
from nerve.runtime.announce import publish_queue
from nerve.runtime.backends import BackendChoice
from nerve.runtime.house import House
from nerve.runtime.interactions import UnknownInteraction
from nerve.runtime.logs import LogBook
from nerve.runtime.reception import NewMessage, Reception
from nerve.runtime.session import SessionRunner
from nerve.runtime.stopping import Stops
from nerve.runtime.views import RESTING, LiveState, session_running
from nerve.runtime.wakeups import Sweep
from nerve.store import waiting
from nerve.store.queue import QueuedMessage
from nerve.store.wakeups import Wakeup

log = logging.getLogger("nerve.runtime")

AFTER_FAILURE_SECONDS = 5.0


@define(eq=False)
class Supervisor:
    """Holds the live sessions: ``reception`` takes messages in and keeps the queues, ``stops`` ends turns, ``agents``
    shows and stops their agents."""

    house: House
    logs: LogBook
    _nursery: trio.Nursery
    reception: Reception = field(init=False)
    stops: Stops = field(init=False)
    agents: Agents = field(init=False)
    _runners: dict[str, SessionRunner] = field(factory=dict)
    _held: dict[str, int] = field(factory=dict)  # sessions that take no turn while they are changed

    def __attrs_post_init__(self) -> None:
        self.reception = Reception(self.house, self._set_going)
        self.agents = Agents(self.house, self._runners.get)
        self.stops = Stops(self.house, self._nursery, self._runners.get, self.resume_queue)

    def _set_going(self, session_id: str) -> bool:
        """Have the session work its queue off.  True if the message starts now: that it waits need not be told."""
        if not self.reception.is_open or session_id in self._held:
            return False
        runner = self._runners.get(session_id)
        at_once = runner is None or runner.resting
        self._wake_or_start(session_id)
        return at_once

    # --- sessions -------------------------------------------------------------------------------------------------

    def live(self, session_id: str) -> LiveState:
        runner = self._runners.get(session_id)
        if runner is not None:
            return runner.live
        wakeup = self.house.schedule.pending(session_id)
        return RESTING if wakeup is None else LiveState(wakeup=wakeup)

    def turn_start(self, session_id: str) -> int | None:
        """The number of the first frame of the running turn; None when none runs."""
        runner = self._runners.get(session_id)
        return None if runner is None or runner.turn is None else runner.turn.first_seq

    def pending_interactions(self, session_id: str) -> list[tuple[int, bytes]]:
        """The frames of what the session asks of people at this moment, each with its number, ascending."""
        runner = self._runners.get(session_id)
        return [] if runner is None else runner.interactions.pending()

    async def answer(self, session_id: str, interaction_id: str, answer: PersonsAnswer, by: Caller) -> None:
        """Raises what ``Interactions.answer`` raises."""
        runner = self._runners.get(session_id)
        if runner is None:
            raise UnknownInteraction
        await runner.interactions.answer(interaction_id, answer, by)

    def last_seq(self, session_id: str) -> int | None:
        """The highest number shown in a session whose log is open; None: the stored one counts."""
        return self.logs.last_seq(session_id)

    async def backend_for(self, requested: str | None) -> BackendChoice:
        return await self.house.backends.choose(requested)

    async def go_on(self, waiting: Iterable[str]) -> None:
        """After recovery: queues that waited are worked off, and from here on scheduled turns begin."""
        for session_id in waiting:
            await self.resume_queue(session_id)
        house = self.house
        sweep = Sweep(house.database, house.effects, house.backends, house.schedule, self)
        self._nursery.start_soon(sweep.run, name="scheduled turns")

    async def resume_queue(self, session_id: str) -> None:
        """Go on with a queue that waited: at start, or when a quarantine was lifted."""
        if await self.house.database.read(waiting.may_run, session_id):
            self._set_going(session_id)

    # --- scheduled turns ------------------------------------------------------------------------------------------

    async def run_scheduled(self, session_id: str, *, announce: bool) -> None:
        """Have the session get to what is due; ``announce``: tell that it waits, unless it starts at once."""
        at_once = self._set_going(session_id)
        if announce and not at_once:
            await publish_queue(self.house, session_id)

    async def put_off(self, session_id: str, message: NewMessage, delay: timedelta) -> tuple[datetime, Wakeup | None]:
        """Send a message later; when, and what it takes the place of.  It is on disk when this returns.

        Raises SESSION_NOT_FOUND, FILE_NOT_FOUND and SHUTTING_DOWN.  An archived session is unarchived.
        """
        if not self.reception.is_open:
            raise NerveError(ErrorCode.SHUTTING_DOWN)
        scheduled = await self.house.schedule.put(
            session_id,
            WakeupKind.MESSAGE,
            message.source,
            message.content,
            delay,
            actor_id=message.actor_id,
            cause_id=message.cause_id,
            file_ids=message.file_ids,
        )
        self._tell_pending(session_id)
        return scheduled

    async def wakeup_changed(self, session_id: str) -> None:
        """After a change of what is pending outside of a turn; a turn's own end tells what is pending then."""
        if await self.house.schedule.refresh(session_id):
            self._tell_pending(session_id)

    def _tell_pending(self, session_id: str) -> None:
        live = self.live(session_id)
        if not live.is_running:
            self.house.hub.publish_global(session_running(session_id, live))

    # --- runners --------------------------------------------------------------------------------------------------

    def _wake_or_start(self, session_id: str) -> None:
        runner = self._runners.get(session_id)
        if runner is None:
            self._start(session_id)
        else:
            runner.wake()

    def _start(self, session_id: str) -> None:
        # The runner stands in the table before its task runs, so that two messages never start two.
        self._runners[session_id] = runner = self._new_runner(session_id)
        self._nursery.start_soon(self._run_session, runner, name=f"session {session_id}")

    def _new_runner(self, session_id: str) -> SessionRunner:
        return SessionRunner(session_id, self.house, self.logs, self.reception.take_sender, self.reception.take_waiter)

    async def _run_session(self, runner: SessionRunner) -> None:
        session_id = runner.session_id
        try:
            while True:
                wanted = await self._run_runner(runner)
                if not wanted or not self.reception.is_open or session_id in self._held:
                    return
                self._runners[session_id] = runner = self._new_runner(session_id)
        finally:
            if self._runners.get(session_id) is runner:
                del self._runners[session_id]

    async def _run_runner(self, runner: SessionRunner) -> bool:
        """True if another one has to go on: something came while this one closed, or waited when it failed."""
        try:
            await runner.run()
        except Exception as exc:
            error = sole_error(exc)
            if error is not None and error.code is ErrorCode.SESSION_NOT_FOUND:
                return False
            log.exception("session %s failed", runner.session_id)
            await trio.sleep(AFTER_FAILURE_SECONDS)  # what fails at once must not fail in a loop
            return True
        return runner.wanted

    @asynccontextmanager
    async def detached(self, session_id: str, reason: str, agents: AgentEndReason) -> AsyncIterator[None]:
        """The session without a runtime, for as long as it takes to archive, delete or change it.

        Its turn is ended first (recorded as failed of ``reason``), its agents of ``agents``, and its runtime is gone
        inside.  Messages that come meanwhile wait in the queue and go on afterwards.
        """
        self._held[session_id] = self._held.get(session_id, 0) + 1
        try:
            runner = self._runners.get(session_id)
            if runner is not None:
                await runner.close(agents, reason=reason)
            yield
        finally:
            self._held[session_id] -= 1
            if not self._held[session_id]:
                del self._held[session_id]
        await self.resume_queue(session_id)

    def archived(self, session_id: str) -> None:
        """Tell those who look at the session."""
        self.house.hub.publish(session_id, SessionArchivedFrame(session_id=session_id))

    async def abandoned(self, session_id: str, entries: Sequence[QueuedMessage], reason: str) -> None:
        """After what waited was dropped with a change of the session: whoever waits for it is told ``reason``."""
        await self.wakeup_changed(session_id)
        await self.reception.abandoned(session_id, entries, reason)

    async def deleted(self, session_id: str, native_id: str | None, backend: str) -> None:
        """After a session's rows are gone: whoever waited for a queued message is told, its runtime forgets."""
        self.logs.forget(session_id)
        self.reception.deleted(session_id)
        adapter = self.house.backends.adapters.get(backend)
        if adapter is None:
            return
        try:
            await adapter.forget_session(session_id)
            if native_id is not None:
                await adapter.forget(native_id)
        except OSError as error:
            log.warning("the runtime %s keeps records of a deleted session: %s", backend, error.strerror)

    # --- closing the house ----------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Refuse what waits, interrupt what runs, record both.  The server still serves while this goes on."""
        self.reception.close()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.reception.refuse_waiting, name="refusing what waits")
            for runner in list(self._runners.values()):
                nursery.start_soon(
                    partial(runner.close, AgentEndReason.GATEWAY_RESTART, interrupted=True),
                    name=f"closing {runner.session_id}",
                )


@asynccontextmanager
async def open_supervisor(house: House) -> AsyncIterator[Supervisor]:
    """The nursery that every session lives in.  Leaving it cancels what ``drain`` has left."""
    await house.schedule.load()
    logs = LogBook(house.database, house.hub, house.effects)
    async with trio.open_nursery() as nursery:
        yield Supervisor(house, logs, nursery)
        nursery.cancel_scope.cancel()
