"""The supervisor: its nursery holds every live session; it takes messages in, stops turns, and closes the house.

Nothing here knows a socket: a turn never depends on one.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import apsw
import trio
from attrs import define, evolve, field, frozen

from nerve.adapters.protocol import Capabilities
from nerve.contract.caller import Caller
from nerve.contract.generated.entities import QueueEntry, TurnStop
from nerve.contract.generated.errors import ERRORS
from nerve.contract.generated.frames_server import ErrorFrame, RemovalReason, RemovedEntry
from nerve.contract.generated.sessions import AllStopped, ForceStopped, TurnStopped
from nerve.domain.turns import StopScope
from nerve.errors import ErrorCode, NerveError, sole_error
from nerve.runtime.announce import gone, publish_queue
from nerve.runtime.backends import BackendChoice
from nerve.runtime.house import House
from nerve.runtime.hub import Subscriber
from nerve.runtime.logs import LogBook
from nerve.runtime.session import SessionRunner
from nerve.runtime.turn import TurnOutcome, Waiter
from nerve.runtime.views import LiveState, queue_entries
from nerve.store import event_log, intake, queue
from nerve.store.intake import Accepted
from nerve.store.queue import QueuedMessage

log = logging.getLogger("nerve.runtime")

AFTER_FAILURE_SECONDS = 5.0


@frozen
class NewMessage:
    """What a person or channel sends to a session.  ``source`` is a TurnSource value."""

    content: str
    source: str
    actor_id: str | None
    cause_id: str | None = None
    client_msg_id: str | None = None
    model: str | None = None


@frozen(eq=False)
class Submission:
    """An accepted message.  ``queue_id`` is None for a duplicate, which runs nothing.

    ``set_aside``: its session is quarantined, and the message waits until somebody lifts that.
    """

    queue_id: str | None
    waiter: Waiter = field(factory=Waiter)
    set_aside: bool = False

    @property
    def duplicate(self) -> bool:
        return self.queue_id is None


class Door(Enum):
    OPEN = "open"
    CLOSING = "closing"


@define(eq=False)
class Supervisor:
    house: House
    logs: LogBook
    _nursery: trio.Nursery
    _runners: dict[str, SessionRunner] = field(factory=dict)
    _senders: dict[str, Subscriber] = field(factory=dict)
    _waiters: dict[str, tuple[str, Waiter]] = field(factory=dict)  # queue id -> session id and waiter
    _held: dict[str, int] = field(factory=dict)  # sessions that take no turn while they are changed
    _door: Door = Door.OPEN

    # --- messages in ----------------------------------------------------------------------------------------------

    async def submit(self, session_id: str, message: NewMessage, *, sender: Subscriber | None = None) -> Submission:
        """Put a message into the session's queue; it is on disk when this returns.

        Raises SESSION_NOT_FOUND, QUEUE_FULL and SHUTTING_DOWN.  A message to an archived session unarchives it.
        """
        if self._door is not Door.OPEN:
            raise NerveError(ErrorCode.SHUTTING_DOWN)
        effects = self.house.effects
        entry = QueuedMessage(
            id=effects.new_id("queue"),
            session_id=session_id,
            content=message.content,
            source=message.source,
            actor_id=message.actor_id,
            client_msg_id=message.client_msg_id,
            model=message.model,
            created_at=effects.now(),
        )
        # Known before the entry can start, because the turn may begin before the write's caller runs again.
        submission = Submission(entry.id)
        self._waiters[entry.id] = (session_id, submission.waiter)
        if sender is not None:
            self._senders[entry.id] = sender
        try:
            accepted = await self.house.database.write(self._accept, entry, message.cause_id)
        except BaseException:
            self._forget(entry.id)
            raise
        if accepted is Accepted.DUPLICATE:
            self._forget(entry.id)
            await self._tell_duplicate(entry, sender)
            return Submission(None)
        # Nothing waits between the record and this: whoever sent it may be gone by now, and it runs all the same.
        at_once = accepted is Accepted.MAY_RUN and self._set_going(session_id)
        if not at_once:
            with trio.CancelScope(shield=True):  # one bounded read
                await publish_queue(self.house, session_id)
        return evolve(submission, set_aside=accepted is Accepted.WAITS)

    def _accept(self, db: apsw.Connection, entry: QueuedMessage, cause_id: str | None) -> Accepted:
        # Asked within the transaction: what comes in before the queues are emptied is refused there, all else here.
        if self._door is not Door.OPEN:
            raise NerveError(ErrorCode.SHUTTING_DOWN)
        return intake.accept(db, entry, self.house.limits.queue_max, cause_id)

    def _set_going(self, session_id: str) -> bool:
        """Have the session work its queue off.  True if the message starts now: that it waits need not be told."""
        if self._door is not Door.OPEN or session_id in self._held:
            return False
        runner = self._runners.get(session_id)
        at_once = runner is None or runner.resting
        self._wake_or_start(session_id)
        return at_once

    async def _tell_duplicate(self, entry: QueuedMessage, sender: Subscriber | None) -> None:
        left = RemovedEntry(queue_id=None, client_msg_id=entry.client_msg_id, reason=RemovalReason.DUPLICATE)
        await publish_queue(self.house, entry.session_id, left, also=sender)

    def _forget(self, queue_id: str) -> None:
        self._waiters.pop(queue_id, None)
        self._senders.pop(queue_id, None)

    def _take_sender(self, queue_id: str) -> Subscriber | None:
        return self._senders.pop(queue_id, None)

    def _take_waiter(self, queue_id: str) -> Waiter | None:
        found = self._waiters.pop(queue_id, None)
        return None if found is None else found[1]

    async def outcome(self, submission: Submission) -> TurnOutcome:
        """Wait for what becomes of a message.  Cancelled, the turn goes on."""
        await submission.waiter.settled.wait()
        assert submission.waiter.outcome is not None
        return submission.waiter.outcome

    # --- the queue ------------------------------------------------------------------------------------------------

    async def queue(self, session_id: str) -> list[QueueEntry]:
        """What waits, in order.  Raises SESSION_NOT_FOUND."""
        return queue_entries(await self.house.database.read(queue.listed, session_id))

    async def cancel_queued(self, session_id: str, queue_id: str, by: Caller) -> str:
        """Remove one's own waiting message; its text.  Raises what ``store.queue.cancel`` raises."""
        entry = await self.house.database.write(queue.cancel, session_id, queue_id, by.actor_id)
        self._settle_unrun(entry.id, "The message was cancelled before it ran.")
        await publish_queue(self.house, session_id, gone(entry, RemovalReason.CANCELLED))
        return entry.content

    def _settle_unrun(self, queue_id: str, reason: str, *, refused: bool = False) -> None:
        waiter = self._take_waiter(queue_id)
        if waiter is not None:
            waiter.settle(TurnOutcome(None, "", reason, refused=refused))
        self._senders.pop(queue_id, None)

    # --- sessions -------------------------------------------------------------------------------------------------

    def live(self, session_id: str) -> LiveState:
        runner = self._runners.get(session_id)
        return LiveState() if runner is None else runner.live

    def turn_start(self, session_id: str) -> int | None:
        """The number of the first frame of the running turn; None when none runs."""
        runner = self._runners.get(session_id)
        return None if runner is None or runner.turn is None else runner.turn.first_seq

    def last_seq(self, session_id: str) -> int | None:
        """The highest number shown in a session whose log is open; None: the stored one counts."""
        return self.logs.last_seq(session_id)

    def capabilities(self, session_id: str) -> Capabilities:
        """What the session's runtime can do: as the open client says, else as its adapter promises."""
        runner = self._runners.get(session_id)
        if runner is not None and runner.capabilities is not None:
            return runner.capabilities
        return Capabilities()

    async def backend_for(self, requested: str | None) -> BackendChoice:
        return await self.house.backends.choose(requested)

    async def resume_queue(self, session_id: str) -> None:
        """Go on with a queue that waited: at start, and when a quarantine was lifted."""
        if await self.house.database.read(intake.may_run, session_id):
            self._set_going(session_id)

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
        return SessionRunner(session_id, self.house, self.logs, self._take_sender, self._take_waiter)

    async def _run_session(self, runner: SessionRunner) -> None:
        session_id = runner.session_id
        try:
            while True:
                wanted = await self._run_runner(runner)
                if not wanted or self._door is not Door.OPEN or session_id in self._held:
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
    async def detached(self, session_id: str, reason: str) -> AsyncIterator[None]:
        """The session without a runtime, for as long as it takes to archive, delete or change it.

        Its turn is ended first (recorded as failed of ``reason``) and its runtime is gone inside.  Messages that come
        meanwhile wait in the queue and go on afterwards.
        """
        self._held[session_id] = self._held.get(session_id, 0) + 1
        try:
            runner = self._runners.get(session_id)
            if runner is not None:
                await runner.close(reason=reason)
            yield
        finally:
            self._held[session_id] -= 1
            if not self._held[session_id]:
                del self._held[session_id]
        await self.resume_queue(session_id)

    async def abandoned(self, session_id: str, entries: Sequence[QueuedMessage], reason: str) -> None:
        """After what waited was dropped with a change of the session: whoever waits for it is told ``reason``."""
        for entry in entries:
            self._settle_unrun(entry.id, reason)
        if entries:
            await publish_queue(self.house, session_id, *(gone(entry, RemovalReason.CANCELLED) for entry in entries))

    async def deleted(self, session_id: str, native_id: str | None, backend: str) -> None:
        """After a session's rows are gone: whoever waited for a queued message is told, its runtime forgets."""
        self.logs.forget(session_id)
        for queue_id in [q for q, (owner, _) in self._waiters.items() if owner == session_id]:
            self._settle_unrun(queue_id, "The session was deleted.")
        adapter = self.house.backends.adapters.get(backend)
        if adapter is not None and native_id is not None:
            await adapter.forget(native_id)

    # --- stops ----------------------------------------------------------------------------------------------------

    async def stop(
        self, session_id: str, scope: StopScope, by: Caller, *, include_shells: bool = True
    ) -> TurnStopped | AllStopped | ForceStopped:
        """Stop by scope; who asked for what is recorded first.

        ``include_shells`` counts for the scope ``all``.  Raises SESSION_NOT_FOUND.  Waits at most about nine seconds.
        A disk that refuses the record does not keep the stop from happening.
        """
        now = self.house.effects.now()
        details: dict[str, Any] = {"scope": scope.value}
        if scope is StopScope.ALL:
            details["include_shells"] = include_shells
        request = (session_id, details, by.actor_id, by.cause_id, now)
        lifted = False
        try:
            lifted = await self.house.database.write(intake.stop_requested, *request)
        except NerveError as refusal:
            if refusal.code not in (ErrorCode.STORE_FULL, ErrorCode.STORE_BUSY):
                raise
            # A full disk is no reason to let an agent run on.
            await self.house.database.read(event_log.reserved, session_id)
            log.warning("who stopped session %s is not recorded (%s): %s", session_id, by.actor_id, refusal.message)
        answer = await self._stop(session_id, scope)
        if lifted:
            await self.resume_queue(session_id)
        return answer

    def stop_soon(self, session_id: str, by: Caller, tell: Callable[[TurnStop | NerveError], None]) -> None:
        """Stop the turn without waiting for it, and ``tell`` what came of it; whoever asked may leave meanwhile."""
        self._nursery.start_soon(self._stop_and_tell, session_id, by, tell, name=f"stop {session_id}")

    async def _stop_and_tell(self, session_id: str, by: Caller, tell: Callable[[TurnStop | NerveError], None]) -> None:
        try:
            answer = await self.stop(session_id, StopScope.TURN, by)
        except NerveError as error:
            tell(error)
        else:
            tell(answer.turn)

    async def _stop(self, session_id: str, scope: StopScope) -> TurnStopped | AllStopped | ForceStopped:
        runner = self._runners.get(session_id)
        if scope is StopScope.FORCE:
            came = TurnStop.NOT_RUNNING if runner is None else TurnStop((await runner.force()).value)
            return ForceStopped(turn=came, ended=[])
        came = TurnStop.NOT_RUNNING if runner is None else TurnStop((await runner.stop_turn()).value)
        if scope is StopScope.ALL:
            return AllStopped(turn=came, stopping=[], unsupported=[])
        return TurnStopped(turn=came, would_end=[], shell_count=0)

    # --- closing the house ----------------------------------------------------------------------------------------

    def refuse_new(self) -> None:
        """From here on every message is refused; what runs goes on."""
        self._door = Door.CLOSING

    async def drain(self) -> None:
        """Refuse what waits, interrupt what runs, record both.  The server still serves while this goes on."""
        self.refuse_new()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._refuse_waiting, name="refusing what waits")
            for runner in list(self._runners.values()):
                nursery.start_soon(partial(runner.close, interrupted=True), name=f"closing {runner.session_id}")

    async def _refuse_waiting(self) -> None:
        try:
            entries = await self.house.database.write(queue.refuse_everything)
        except NerveError as refusal:  # a full disk: nobody is told, and what waits runs at the next start
            log.error("what waits can't be refused: %s", refusal.message)
            return
        for session_id, group in groupby(entries, key=attrgetter("session_id")):
            await self._tell_refused(session_id, list(group))

    async def _tell_refused(self, session_id: str, entries: Sequence[QueuedMessage]) -> None:
        left = [gone(entry, RemovalReason.REFUSED) for entry in entries]
        senders = [(entry, self._senders.get(entry.id)) for entry in entries]
        for entry in entries:
            self._settle_unrun(entry.id, ERRORS[ErrorCode.SHUTTING_DOWN].message, refused=True)
        hub = self.house.hub
        await publish_queue(self.house, session_id, *left)
        # Who sent something and is bound elsewhere by now is told as well.
        strangers = dict.fromkeys(s for _, s in senders if s is not None and not hub.is_bound(s, session_id))
        for stranger in strangers:
            await publish_queue(self.house, session_id, *left, only=stranger)
        for entry, sender in senders:
            if sender is not None:
                hub.publish_to(sender, refusal(session_id, ErrorCode.SHUTTING_DOWN, entry.client_msg_id))


def refusal(session_id: str, code: ErrorCode, client_msg_id: str | None) -> ErrorFrame:
    """What the sender of a refused message is told after its removal by ``queue_update``."""
    return ErrorFrame(session_id=session_id, error=ERRORS[code].message, client_msg_id=client_msg_id)


@asynccontextmanager
async def open_supervisor(house: House) -> AsyncIterator[Supervisor]:
    """The nursery that every session lives in.  Leaving it cancels what ``drain`` has left."""
    logs = LogBook(house.database, house.hub, house.effects)
    async with trio.open_nursery() as nursery:
        yield Supervisor(house, logs, nursery)
        nursery.cancel_scope.cancel()
