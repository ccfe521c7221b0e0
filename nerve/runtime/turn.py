"""One turn while it runs: what it has said so far, and how it is going to end."""

from typing import Any

import trio
from attrs import define, field, frozen

from nerve.adapters.protocol import TurnEnded, TurnStatus
from nerve.domain.transcript import Transcript
from nerve.domain.turns import INTERRUPTED_REASON, RUNTIME_DIED, TurnState
from nerve.store.queue import QueuedMessage


@frozen
class TurnOutcome:
    """How a submitted message ended; ``text`` is the stored text, its mark included.

    ``state`` None: the message was cancelled or refused while it waited and never became a turn.
    """

    state: TurnState | None
    text: str
    reason: str | None = None
    killed: bool = False  # it was cancelled because it did not end when asked
    refused: bool = False  # while it waited, the house began to shut down


@define(eq=False)
class Waiter:
    """Lets the sender of a message wait for what becomes of it."""

    outcome: TurnOutcome | None = None
    settled: trio.Event = field(factory=trio.Event)

    def settle(self, outcome: TurnOutcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.settled.set()


@define(eq=False)
class RunningTurn:
    """Lives from the transaction that began it to the one that records its end.

    ``scope`` covers what waits for the runtime; ``ended`` is set when the runtime said how the turn ended, or is gone;
    ``finished`` once the outcome is recorded and published.
    """

    id: str
    entry: QueuedMessage
    first_seq: int
    transcript: Transcript = field(factory=Transcript)
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    ended: trio.Event = field(factory=trio.Event)
    finished: trio.Event = field(factory=trio.Event)
    end: TurnEnded | None = None
    gone: BaseException | None = None
    failure: str | None = None  # why the house itself ended it
    interrupted: bool = False  # by a shutdown
    stop_requested: bool = False
    killed: bool = False
    outcome: TurnOutcome | None = None

    def settle(self, end: TurnEnded) -> None:
        if self.end is None:
            self.end = end
            self.ended.set()

    def lose(self, cause: BaseException) -> None:
        """The runtime is gone before it said how the turn ended."""
        self.gone = cause
        self.ended.set()

    def fail(self, reason: str) -> None:
        """The house ends the turn: the disk is full, the runtime fell silent."""
        self.failure = self.failure or reason
        self.scope.cancel()

    def state(self) -> tuple[TurnState, str | None]:
        """What the turn became, and why if somebody has to be told."""
        if self.failure is not None:
            return TurnState.FAILED, self.failure
        if self.end is not None and self.end.status is TurnStatus.COMPLETED:
            return TurnState.COMPLETED, None
        if self.end is not None and self.end.status is TurnStatus.FAILED:
            return TurnState.FAILED, self.end.error or RUNTIME_DIED
        if self.stop_requested:
            return TurnState.STOPPED, None
        if self.interrupted:
            return TurnState.INTERRUPTED, INTERRUPTED_REASON
        if self.end is not None:
            return TurnState.STOPPED, None
        return TurnState.FAILED, str(self.gone) if self.gone is not None and str(self.gone) else RUNTIME_DIED

    def facts(self) -> dict[str, Any]:
        """For the log of the server; holds no text of the conversation."""
        return {"turn": self.id, "session": self.entry.session_id, "source": self.entry.source}
