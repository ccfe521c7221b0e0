"""Messages in: what is accepted waits in its session's queue, on disk; whoever sent it can wait for its outcome.

Nothing here knows a socket: a message is accepted for a session, and its turn never depends on who sent it.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import groupby
from operator import attrgetter

import apsw
import trio
from attrs import define, evolve, field, frozen

from nerve.contract.caller import Caller
from nerve.contract.generated.entities import QueueEntry
from nerve.contract.generated.errors import ERRORS
from nerve.contract.generated.frames_server import ErrorFrame, RemovalReason, RemovedEntry
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.announce import gone, publish_queue
from nerve.runtime.house import House
from nerve.runtime.hub import Subscriber
from nerve.runtime.turn import TurnOutcome, Waiter
from nerve.runtime.views import queue_entries
from nerve.store import intake, queue, waiting
from nerve.store.intake import Accepted
from nerve.store.queue import QueuedMessage
from nerve.store.wakeups import ScheduledEntry

log = logging.getLogger("nerve.runtime")


@frozen
class NewMessage:
    """What a person or channel sends to a session.  ``source`` is a TurnSource value."""

    content: str
    source: str
    actor_id: str | None
    cause_id: str | None = None
    client_msg_id: str | None = None
    model: str | None = None
    file_ids: tuple[str, ...] = ()


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
class Reception:
    """``_set_going`` has a session work its queue off; True: it starts now, so that it waits need not be told."""

    _house: House
    _set_going: Callable[[str], bool]
    _senders: dict[str, Subscriber] = field(factory=dict)
    _waiters: dict[str, tuple[str, Waiter]] = field(factory=dict)  # queue id -> session id and waiter
    _door: Door = Door.OPEN

    @property
    def is_open(self) -> bool:
        """Whether messages are accepted and queues worked off: until the house begins to close."""
        return self._door is Door.OPEN

    def close(self) -> None:
        """From here on every message is refused; what runs goes on."""
        self._door = Door.CLOSING

    async def submit(self, session_id: str, message: NewMessage, *, sender: Subscriber | None = None) -> Submission:
        """Put a message into the session's queue; it is on disk when this returns.

        Raises SESSION_NOT_FOUND, QUEUE_FULL, FILE_NOT_FOUND and SHUTTING_DOWN.  A message to an archived session
        unarchives it.
        """
        if self._door is not Door.OPEN:
            raise NerveError(ErrorCode.SHUTTING_DOWN)
        effects = self._house.effects
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
            accepted = await self._house.database.write(self._accept, entry, message)
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
                await publish_queue(self._house, session_id)
        return evolve(submission, set_aside=accepted is Accepted.WAITS)

    def _accept(self, db: apsw.Connection, entry: QueuedMessage, message: NewMessage) -> Accepted:
        # Asked within the transaction: what comes in before the queues are emptied is refused there, all else here.
        if self._door is not Door.OPEN:
            raise NerveError(ErrorCode.SHUTTING_DOWN)
        return intake.accept(db, entry, self._house.limits.queue_max, message.cause_id, message.file_ids)

    async def _tell_duplicate(self, entry: QueuedMessage, sender: Subscriber | None) -> None:
        left = RemovedEntry(queue_id=None, client_msg_id=entry.client_msg_id, reason=RemovalReason.DUPLICATE)
        await publish_queue(self._house, entry.session_id, left, also=sender)

    def _forget(self, queue_id: str) -> None:
        self._waiters.pop(queue_id, None)
        self._senders.pop(queue_id, None)

    def take_sender(self, queue_id: str) -> Subscriber | None:
        return self._senders.pop(queue_id, None)

    def take_waiter(self, queue_id: str) -> Waiter | None:
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
        return queue_entries(await self._house.database.read(waiting.listed, session_id))

    async def cancel_queued(self, session_id: str, queue_id: str, by: Caller) -> str:
        """Remove one's own waiting message; its text.  Raises what ``store.waiting.cancel`` raises."""
        entry = await self._house.database.write(waiting.cancel, session_id, queue_id, by.actor_id)
        self._settle_unrun(entry.id, "The message was cancelled before it ran.")
        if isinstance(entry, ScheduledEntry):
            await self._house.schedule.refresh(session_id)
        await publish_queue(self._house, session_id, gone(entry, RemovalReason.CANCELLED))
        return entry.content

    def _settle_unrun(self, queue_id: str, reason: str, *, refused: bool = False) -> None:
        waiter = self.take_waiter(queue_id)
        if waiter is not None:
            waiter.settle(TurnOutcome(None, "", reason, refused=refused))
        self._senders.pop(queue_id, None)

    async def abandoned(self, session_id: str, entries: Sequence[QueuedMessage], reason: str) -> None:
        """After what waited was dropped with a change of the session: whoever waits for it is told ``reason``."""
        for entry in entries:
            self._settle_unrun(entry.id, reason)
        if entries:
            await publish_queue(self._house, session_id, *(gone(entry, RemovalReason.CANCELLED) for entry in entries))

    def deleted(self, session_id: str) -> None:
        """After a session's rows are gone: whoever waited for a queued message is told."""
        for queue_id in [q for q, (owner, _) in self._waiters.items() if owner == session_id]:
            self._settle_unrun(queue_id, "The session was deleted.")

    async def refuse_waiting(self) -> None:
        try:
            entries = await self._house.database.write(queue.refuse_everything)
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
        hub = self._house.hub
        await publish_queue(self._house, session_id, *left)
        # Who sent something and is bound elsewhere by now is told as well.
        strangers = dict.fromkeys(s for _, s in senders if s is not None and not hub.is_bound(s, session_id))
        for stranger in strangers:
            await publish_queue(self._house, session_id, *left, only=stranger)
        for entry, sender in senders:
            if sender is not None:
                hub.publish_to(sender, refusal(session_id, ErrorCode.SHUTTING_DOWN, entry.client_msg_id))


def refusal(session_id: str, code: ErrorCode, client_msg_id: str | None) -> ErrorFrame:
    """What the sender of a refused message is told after its removal by ``queue_update``."""
    return ErrorFrame(session_id=session_id, error=ERRORS[code].message, client_msg_id=client_msg_id)
