"""Hears what a session's runtime says: recorded as frames, folded into the turn, or the turn's end."""

import logging
from collections.abc import Callable
from math import inf

import trio
from attrs import define, field

from nerve.adapters.protocol import (
    AgentEvent,
    Capabilities,
    CapabilitiesChanged,
    FileChanged,
    ModelObserved,
    PlanUpdated,
    TurnEnded,
)
from nerve.adapters.subagents import SubagentEvent
from nerve.contract.generated.entities import AgentEndReason
from nerve.contract.generated.frames_server import PlanUpdateFrame
from nerve.errors import NerveError
from nerve.runtime import scribe
from nerve.runtime.event_log import SessionLog
from nerve.runtime.roster import Roster
from nerve.runtime.turn import RunningTurn

log = logging.getLogger("nerve.runtime")


@define(eq=False)
class Listener:
    """``model`` is the one that serves; ``capabilities`` are None until the runtime has said them.

    ``in_hand`` is the event that is being heard; nothing behind it is known yet.  ``silence`` is around the wait for
    the turn's end: cancelled when nothing was heard for ``_silence_seconds``.
    """

    session_id: str
    _silence_seconds: float
    _turn: Callable[[], RunningTurn | None]
    _waits_for_person: Callable[[], bool]
    log: SessionLog = field(init=False)
    roster: Roster = field(init=False)
    ending: AgentEndReason = AgentEndReason.PROCESS_ENDED  # why agents end with the runtime
    model: str = ""
    capabilities: Capabilities | None = None
    silence: trio.CancelScope = field(factory=trio.CancelScope)
    in_hand: AgentEvent | None = None

    def listen(self, session_log: SessionLog, roster: Roster) -> None:
        """What is said from here on is recorded in ``session_log``, what is said of agents in ``roster``."""
        self.log, self.roster = session_log, roster
        session_log.refused = self._on_refusal

    def heard(self) -> None:
        """Something happened: the time of silence begins anew, or stands still while a person is asked."""
        patience = inf if self._waits_for_person() else self._silence_seconds
        self.silence.deadline = trio.current_time() + patience

    async def on_event(self, event: AgentEvent) -> None:
        self.in_hand = event
        try:
            await self._on_event(event)
        finally:
            self.in_hand = None

    async def _on_event(self, event: AgentEvent) -> None:
        self.heard()
        if isinstance(event, CapabilitiesChanged):
            self.capabilities = event.capabilities
            self.roster.serve(event.capabilities)
            return
        if isinstance(event, SubagentEvent):
            await self._of_agent(event)
            return
        if isinstance(event, PlanUpdated):  # also by a sub-agent between turns
            await self.log.record([PlanUpdateFrame(session_id=self.session_id, content=event.content)])
            return
        turn = self._turn()
        if turn is None and isinstance(event, FileChanged):  # by an agent in the background
            await self._record(event)
            return
        if turn is None:
            log.warning("session %s: the runtime spoke outside a turn: %s", self.session_id, type(event).__name__)
            return
        if isinstance(event, TurnEnded):
            turn.settle(event)
            # What comes next belongs after the record of this end.
            await turn.finished.wait()
            return
        small = scribe.delta(self.session_id, event)
        if small is not None:
            scribe.fold(turn.transcript, event, self.model)
            self.log.delta(small)
            return
        await self._record(event)
        scribe.fold(turn.transcript, event, self.model)
        if isinstance(event, ModelObserved):
            self.model = event.model

    async def _record(self, event: AgentEvent) -> None:
        frame = scribe.frame(self.session_id, event, self.model)
        if frame is not None:
            await self.log.record([frame])

    async def _of_agent(self, event: SubagentEvent) -> None:
        before = self.roster.of_ref(event.ref)
        self.roster.hear(event)
        after = self.roster.of_ref(event.ref)
        if before is not None and after is not None and after.workflow != before.workflow:
            await self._workflow(event.ref)

    async def _workflow(self, ref: str) -> None:
        """The tree of a workflow is shown with the call that started it, and kept in its block."""
        record = self.roster.of_ref(ref)
        if record is None or record.spawn_tool_use_id is None or record.workflow is None:
            return
        await self.log.record([scribe.workflow(self.session_id, record.spawn_tool_use_id, record.workflow)])
        turn = self._turn()
        if turn is not None:
            turn.transcript.workflow(record.spawn_tool_use_id, record.workflow)

    def on_lost(self, cause: BaseException) -> None:
        """The runtime is gone, whoever ended it."""
        self.roster.interrupt_all(self.ending)
        self.ending = AgentEndReason.PROCESS_ENDED
        turn = self._turn()
        if turn is None or turn.finished.is_set():
            return
        if isinstance(cause, NerveError):
            turn.fail(cause.message)
        turn.lose(cause)

    def on_replaced(self) -> None:
        """The runtime made room for one of the session's new model."""
        self.roster.interrupt_all(AgentEndReason.MODEL_SWITCH)

    def _on_refusal(self, refusal: NerveError) -> None:
        turn = self._turn()
        if turn is not None:
            turn.fail(refusal.message)
