"""Telling the frames of one's own turn from everything else that a session shows.  No I/O."""

from enum import Enum

from attrs import define, field

from nerve.contract.generated.entities import QueueEntry
from nerve.contract.generated.frames_server import (
    AutoTurnFrame,
    DoneFrame,
    ErrorFrame,
    GapFrame,
    QueueUpdateFrame,
    RemovalReason,
    ServerFrame,
    SessionStatusFrame,
    StoppedFrame,
    UserMessageFrame,
    WakeupFrame,
)
from nerve.contract.unset import UNSET


class Phase(Enum):
    SENT = "sent"  # nobody has said that it arrived
    WAITING = "waiting"  # it is in the queue
    RUNNING = "running"
    OVER = "over"


@define(eq=False)
class TurnWatch:
    """What becomes of one message.

    Show it every frame (``see``), and every time that a new connection has caught up (``caught_up``).  ``refusal`` says
    why the message did not become a turn; ``lost``, that its turn's end passed unseen.  Where ``explained`` is False,
    an error with the server's own reason is likely to follow the refusal at once.
    """

    session_id: str
    client_msg_id: str
    phase: Phase = field(default=Phase.SENT, init=False)
    refusal: str | None = field(default=None, init=False)
    lost: bool = field(default=False, init=False)
    queue_id: str | None = field(default=None, init=False)
    explained: bool = field(default=True, init=False)
    _gap: bool = field(default=False, init=False)
    _status: SessionStatusFrame | None = field(default=None, init=False)

    @property
    def over(self) -> bool:
        return self.phase is Phase.OVER

    def see(self, frame: ServerFrame) -> bool:
        """Whether this is a frame of the turn."""
        if isinstance(frame, ErrorFrame) and frame.client_msg_id == self.client_msg_id:
            self._refuse(frame.error)
            self.explained = True
            return False
        if self.over or getattr(frame, "session_id", None) != self.session_id:
            return False
        match frame:
            case QueueUpdateFrame():
                self._queue(frame)
            case UserMessageFrame(client_msg_id=sent) if sent == self.client_msg_id:
                self.phase = Phase.RUNNING
            case UserMessageFrame() | AutoTurnFrame() | WakeupFrame() if self.phase is Phase.RUNNING:
                self._lose()  # another turn has begun, so the end of ours is behind us
            case SessionStatusFrame():
                self._status = frame
                self._in_queue(frame.agents.queue)
            case GapFrame():
                self._gap = True
                return self.phase is Phase.RUNNING
            case _ if self.phase is Phase.RUNNING:
                if isinstance(frame, DoneFrame | StoppedFrame | ErrorFrame) and frame.seq is not UNSET:
                    self.phase = Phase.OVER
                return True
        return False

    def caught_up(self) -> None:
        """Everything up to the last ``session_status`` has been shown."""
        status, self._status = self._status, None
        if status is None:
            return
        if self.phase is Phase.RUNNING and not status.is_running:
            self._lose()
        elif self.phase is Phase.WAITING and self.client_msg_id not in _ids(status.agents.queue):
            if self._gap:
                self._lose()
            else:
                self._refuse("the message has left the queue")

    def give_up(self) -> None:
        """Nobody will send the message again."""
        if self.phase is Phase.SENT:
            self._refuse("it is not known whether the message arrived")

    def _queue(self, frame: QueueUpdateFrame) -> None:
        self._in_queue(frame.queue)
        for entry in frame.removed if isinstance(frame.removed, list) else ():
            if entry.client_msg_id != self.client_msg_id or self.phase is Phase.RUNNING:
                continue
            if entry.reason is RemovalReason.STARTED:
                self.phase = Phase.RUNNING
            elif entry.reason is not RemovalReason.DUPLICATE:
                self._refuse(f"the message was {entry.reason.value}")
                self.explained = entry.reason is not RemovalReason.REFUSED
            elif self.phase is Phase.SENT:
                # A resend, answered after everything was caught up: it ran, and what it said is in the gap.
                self._lose()

    def _in_queue(self, queue: list[QueueEntry]) -> None:
        found = next((entry for entry in queue if entry.client_msg_id == self.client_msg_id), None)
        if found is not None and self.phase is Phase.SENT:
            self.phase = Phase.WAITING
        if found is not None:
            self.queue_id = found.queue_id

    def _refuse(self, why: str) -> None:
        self.refusal, self.phase = why, Phase.OVER

    def _lose(self) -> None:
        self.lost, self.phase = True, Phase.OVER


def _ids(queue: list[QueueEntry]) -> set[str | None]:
    return {entry.client_msg_id for entry in queue}
