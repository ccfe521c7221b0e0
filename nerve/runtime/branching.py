"""Forking and resuming sessions, and telling those who look at them."""

import logging
from pathlib import Path
from typing import Protocol

import trio
from attrs import frozen

from nerve.adapters.protocol import Denied, InteractionReply, InteractionRequest, RuntimeGone, SessionSpec
from nerve.contract.generated.entities import Session
from nerve.contract.generated.frames_server import ServerFrame, SessionForkedFrame, SessionResumedFrame
from nerve.domain.attribution import Attribution
from nerve.errors import NerveError
from nerve.runtime.client import Host
from nerve.runtime.house import House
from nerve.runtime.hub import Subscriber
from nerve.store import forks, resuming, turns
from nerve.store.forks import Copy

log = logging.getLogger("nerve.runtime")


async def _refuse(request: InteractionRequest) -> InteractionReply:
    """For a client that is only opened, never prompted."""
    return Denied("Nobody is asked here.")


class Supervisor(Protocol):
    @property
    def house(self) -> House: ...

    async def resume_queue(self, session_id: str) -> None: ...


@frozen
class Branching:
    """``sender``, wherever given, is the socket that asked: it is told although it may be bound elsewhere.

    Waits for the database only.  Cancelled before the record, nothing happened.
    """

    _supervisor: Supervisor

    async def fork(
        self,
        source_id: str,
        at_message_id: int | None,
        title: str | None,
        by: Attribution,
        *,
        sender: Subscriber | None = None,
    ) -> Session:
        """Raises what ``store.forks.fork`` raises.  The runtime branches its conversation with the first turn."""
        house = self._supervisor.house
        copy = await self._copy_if_needed(source_id) if at_message_id is None else None
        try:
            fork: Session = await house.database.write(
                forks.fork, source_id, at_message_id, title, by, copy, house.effects.new_id, house.effects.now()
            )
        finally:
            if copy is not None:
                await self._forget_unneeded(copy)
        self._tell(source_id, SessionForkedFrame(source_id=source_id, fork_id=fork.id, title=fork.title), sender)
        return fork

    async def _copy_if_needed(self, source_id: str) -> Copy | None:
        """Where the place of a fork has no name that its first turn could branch at, the conversation is copied now."""
        database, backends = self._supervisor.house.database, self._supervisor.house.backends
        turn_id = await database.read(forks.unnamed_end, source_id)
        if turn_id is None:
            return None
        try:
            facts = await database.read(turns.runtime_facts, source_id)
            spec = SessionSpec(
                session_id=source_id,
                cwd=Path(facts.cwd),
                host=Host(source_id, self._supervisor.house, _refuse),
                model=facts.model,
                native_id=facts.sdk_session_id,
                fork=True,
            )
            async with backends.adapter(facts.backend).open(spec) as client:
                return None if client.began_afresh else Copy(facts.backend, client.native_id, turn_id)
        except (RuntimeGone, OSError, NerveError) as error:
            log.warning("the conversation of session %s is branched later than it is forked: %s", source_id, error)
            return None

    async def _forget_unneeded(self, copy: Copy) -> None:
        """When no fork was made after all, or the source has gone on to a place that has a name."""
        house = self._supervisor.house
        with trio.CancelScope(shield=True):
            if await house.database.read(forks.unneeded, copy.native_id) is not None:
                try:
                    await house.backends.adapter(copy.backend).forget(copy.native_id)
                except OSError as error:
                    log.warning("a conversation of the runtime %s can't be removed: %s", copy.backend, error.strerror)

    async def resume(self, session_id: str, by: Attribution, *, sender: Subscriber | None = None) -> Session:
        """Raises what ``store.resuming.resume`` raises.  What waited behind a quarantine goes on."""
        house = self._supervisor.house
        resumed = await house.database.write(resuming.resume, session_id, by, house.effects.now())
        frame = SessionResumedFrame(session_id=session_id)
        if resumed.changed:
            self._tell(session_id, frame, sender)
            await self._supervisor.resume_queue(session_id)
        elif sender is not None:
            house.hub.publish_to(sender, frame)
        return resumed.session

    def _tell(self, session_id: str, frame: ServerFrame, sender: Subscriber | None) -> None:
        hub = self._supervisor.house.hub
        hub.publish(session_id, frame)
        if sender is not None and not hub.is_bound(sender, session_id):
            hub.publish_to(sender, frame)
