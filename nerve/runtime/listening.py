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
    ModelObserved,
    PlanUpdated,
    TurnEnded,
)
from nerve.contract.generated.frames_server import PlanUpdateFrame
from nerve.errors import NerveError
from nerve.runtime import scribe
from nerve.runtime.event_log import SessionLog
from nerve.runtime.turn import RunningTurn

log = logging.getLogger("nerve.runtime")


@define(eq=False)
class Listener:
    """``model`` is the one that serves; ``capabilities`` are None until the runtime has said them.

    ``silence`` is around the wait for the turn's end: cancelled when nothing was heard for ``_silence_seconds``.
    """

    session_id: str
    _silence_seconds: float
    _turn: Callable[[], RunningTurn | None]
    _waits_for_person: Callable[[], bool]
    log: SessionLog = field(init=False)
    model: str = ""
    capabilities: Capabilities | None = None
    silence: trio.CancelScope = field(factory=trio.CancelScope)

    def listen(self, session_log: SessionLog) -> None:
        """What is said from here on is recorded in ``session_log``."""
        self.log = session_log
        session_log.refused = self._on_refusal

    def heard(self) -> None:
        """Something happened: the time of silence begins anew, or stands still while a person is asked."""
        patience = inf if self._waits_for_person() else self._silence_seconds
        self.silence.deadline = trio.current_time() + patience

    async def on_event(self, event: AgentEvent) -> None:
        self.heard()
        if isinstance(event, CapabilitiesChanged):
            self.capabilities = event.capabilities
            return
        if isinstance(event, PlanUpdated):  # also by a sub-agent between turns
            await self.log.record([PlanUpdateFrame(session_id=self.session_id, content=event.content)])
            return
        turn = self._turn()
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
        frame = scribe.frame(self.session_id, event, self.model)
        if frame is not None:
            await self.log.record([frame])
        scribe.fold(turn.transcript, event, self.model)
        if isinstance(event, ModelObserved):
            self.model = event.model

    def on_lost(self, cause: BaseException) -> None:
        """The runtime is gone, whoever ended it."""
        turn = self._turn()
        if turn is None or turn.finished.is_set():
            return
        if isinstance(cause, NerveError):
            turn.fail(cause.message)
        turn.lose(cause)

    def _on_refusal(self, refusal: NerveError) -> None:
        turn = self._turn()
        if turn is not None:
            turn.fail(refusal.message)
