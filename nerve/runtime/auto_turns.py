"""The turn that a session begins by itself because work in the background has settled (decisions D33)."""

from datetime import datetime
from typing import Any

from attrs import frozen

from nerve.contract import codec
from nerve.contract.generated.entities import TurnTrigger
from nerve.contract.generated.frames_server import AutoTurnFrame
from nerve.contract.unset import UNSET
from nerve.domain.agents import AgentRecord
from nerve.store.queue import QueuedMessage

SOURCE = "auto"
SHOWN_TRIGGERS = 5


@frozen(kw_only=True)
class AutoEntry(QueuedMessage):
    """Stands where a message's queue entry does, and never waits in a queue.  ``settled`` are whose ends began it."""

    settled: tuple[AgentRecord, ...] = ()

    @classmethod
    def of(cls, session_id: str, turn_id: str, settled: tuple[AgentRecord, ...], now: datetime) -> "AutoEntry":
        return cls(
            id=turn_id,
            session_id=session_id,
            content="",
            source=SOURCE,
            actor_id=None,
            client_msg_id=None,
            model=None,
            created_at=now,
            settled=settled,
        )

    def lead(self) -> dict[str, Any]:
        """What the block that leads its message says beside its type."""
        plain = codec.unstructure(self.frame())
        return {key: plain[key] for key in ("triggers", "more") if key in plain}

    def frame(self) -> AutoTurnFrame:
        """What the turn begins with."""
        shown = [
            TurnTrigger(agent_id=r.id, label=r.label, kind=r.kind, status=r.status)
            for r in self.settled[:SHOWN_TRIGGERS]
        ]
        more = len(self.settled) - len(shown)
        return AutoTurnFrame(session_id=self.session_id, triggers=shown or UNSET, more=more if shown else UNSET)
