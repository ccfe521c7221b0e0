"""Forking and resuming sessions, and telling those who look at them."""

from typing import Protocol

from attrs import frozen

from nerve.contract.generated.entities import Session
from nerve.contract.generated.frames_server import ServerFrame, SessionForkedFrame, SessionResumedFrame
from nerve.domain.attribution import Attribution
from nerve.runtime.house import House
from nerve.runtime.hub import Subscriber
from nerve.store import forks, resuming


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
        fork: Session = await house.database.write(
            forks.fork, source_id, at_message_id, title, by, house.effects.new_id, house.effects.now()
        )
        self._tell(source_id, SessionForkedFrame(source_id=source_id, fork_id=fork.id, title=fork.title), sender)
        return fork

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
