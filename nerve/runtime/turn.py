"""One turn while it runs: what it has said so far, and how it is going to end."""

from enum import Enum
from pathlib import Path
from typing import Any

import trio
from attrs import define, field, frozen

from nerve.adapters.protocol import PromptFile, RuntimeGone, TurnEnded, TurnPrompt, TurnSource, TurnStatus
from nerve.domain.attachments import Attachment
from nerve.domain.transcript import Transcript
from nerve.domain.turns import INTERRUPTED_REASON, RUNTIME_DIED, TurnState
from nerve.runtime.auto_turns import AutoEntry
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


class TurnStopped(Enum):
    """What came of asking a turn to stop."""

    NOT_RUNNING = "not_running"
    STOPPED = "stopped"
    KILLED = "killed"
    NOT_STOPPED = "not_stopped"


@define(eq=False)
class Waiter:
    """Lets the sender of a message wait for what becomes of it."""

    outcome: TurnOutcome | None = None
    settled: trio.Event = field(factory=trio.Event)

    def settle(self, outcome: TurnOutcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.settled.set()


class Reach(Enum):
    """How far the prompt of a turn has come on its way to the runtime."""

    UNSENT = "unsent"
    SENDING = "sending"
    SENT = "sent"


@define(eq=False)
class RunningTurn:
    """Lives from the transaction that began it to the one that records its end.

    ``scope`` covers what waits for the runtime; ``ended`` is set when the runtime said how the turn ended, or is gone;
    ``over`` once nothing of it runs any more; ``finished`` once the outcome is recorded and published.
    """

    id: str
    entry: QueuedMessage
    first_seq: int
    attachments: tuple[Attachment, ...] = ()
    transcript: Transcript = field(init=False)
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    ended: trio.Event = field(factory=trio.Event)
    over: trio.Event = field(factory=trio.Event)
    finished: trio.Event = field(factory=trio.Event)
    end: TurnEnded | None = None
    gone: BaseException | None = None
    failure: str | None = None  # why the house itself ended it
    interrupted: bool = False  # by a shutdown
    stop_requested: bool = False
    killed: bool = False
    reach: Reach = Reach.UNSENT
    outcome: TurnOutcome | None = None

    def __attrs_post_init__(self) -> None:
        self.transcript = Transcript.of(self.entry.source)
        if isinstance(self.entry, AutoEntry):
            self.transcript.lead(self.entry.source, **self.entry.lead())

    def prompt(self, model: str | None) -> TurnPrompt:
        """What its runtime is asked."""
        files = tuple(
            PromptFile(Path(file.directory) / file.path, file.filename, file.media_type) for file in self.attachments
        )
        return TurnPrompt(self.id, self.entry.content, TurnSource(self.entry.source), model, files)

    @property
    def unwanted(self) -> bool:
        """Somebody wants it to end: a person, a shutdown, or the house because of a failure."""
        return self.stop_requested or self.interrupted or self.failure is not None

    def may_retry(self, *, stale: bool) -> bool:
        """Whether the runtime died before it said anything, and nobody wants the turn to end.

        A ``stale`` client, one from an earlier turn, that did not take this prompt any more never saw it: a new one
        may have it, whatever the old one died of.
        """
        if self.end is not None or self.unwanted or not self.transcript.empty or isinstance(self.entry, AutoEntry):
            return False
        return isinstance(self.gone, RuntimeGone) and (self.gone.retryable or (stale and self.reach is not Reach.SENT))

    def retry(self) -> None:
        """Everything as before its prompt; the runtime is going to be a fresh one."""
        self.gone, self.reach = None, Reach.UNSENT
        self.ended, self.scope = trio.Event(), trio.CancelScope()

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
        # Only what a runtime says of its own end is meant for people.
        return TurnState.FAILED, (str(self.gone) if isinstance(self.gone, RuntimeGone) else "") or RUNTIME_DIED

    def came_of_stop(self) -> TurnStopped:
        """What a stop is told once the turn is over; one that had ended by itself was not stopped."""
        became = self.state()[0] if self.outcome is None else self.outcome.state
        if became in (TurnState.COMPLETED, TurnState.FAILED):
            return TurnStopped.NOT_RUNNING
        return TurnStopped.KILLED if self.killed else TurnStopped.STOPPED

    def facts(self) -> dict[str, Any]:
        """For the log of the server; holds no text of the conversation."""
        return {"turn": self.id, "session": self.entry.session_id, "source": self.entry.source}
