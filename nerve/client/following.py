"""Following one session over any number of connections: what to show, what to ask for, what to send again.  No I/O."""

from collections.abc import Iterable

from attrs import define, evolve, field, frozen

from nerve.client.asking import Asked
from nerve.client.errors import SessionGone
from nerve.client.sending import Outgoing
from nerve.client.socket import read_frame
from nerve.client.subscribing import Subscriptions
from nerve.contract.generated.frames_client import AnswerInteractionFrame, ClientFrame
from nerve.contract.generated.frames_server import (
    ErrorFrame,
    GapFrame,
    InteractionFrame,
    InteractionResolvedFrame,
    PongFrame,
    QueueUpdateFrame,
    ServerFrame,
    SessionStatusFrame,
    UserMessageFrame,
)
from nerve.contract.unset import UNSET

SESSION_NOT_FOUND = "session_not_found"
INTERACTION_NOT_FOUND = "interaction_not_found"


@frozen(kw_only=True)
class Disconnected:
    """The line is lost; it is tried again after so many seconds."""

    reason: str
    code: int | None = None
    retry_seconds: float


@frozen(kw_only=True)
class CaughtUp:
    """A connection stands and everything that was missed has been shown; ``first``: nothing was shown before it."""

    first: bool


@frozen(kw_only=True)
class Unconfirmed:
    """A message was sent, perhaps more than once, and nobody knows whether it arrived.  It is not sent again."""

    client_msg_id: str


@frozen(kw_only=True)
class Unanswered:
    """An answer was sent and sent again, and no connection has outlived it.  It is not sent again."""

    interaction_id: str


LineEvent = Disconnected | CaughtUp | Unconfirmed | Unanswered
LiveEvent = ServerFrame | LineEvent


@define(eq=False)
class Follower:
    """``cursor`` is the number of the last frame shown, None before the first connection has told it."""

    session_id: str
    cursor: int | None = None
    _target: int | None = field(default=None, init=False)  # what this connection has to show before it is caught up
    _reset_due: bool = field(default=False, init=False)
    _caught_up: bool = field(default=False, init=False)
    _behind: bool = field(default=False, init=False)  # no numbered frame has come since the line was lost
    _before: bool = field(default=False, init=False)
    _outgoing: Outgoing = field(factory=Outgoing, init=False)
    _asked: Asked = field(factory=Asked, init=False)
    agents: Subscriptions = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.agents = Subscriptions(self.session_id)

    @property
    def caught_up(self) -> bool:
        return self._caught_up

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Ids of the messages that the server has not acknowledged."""
        return self._outgoing.messages

    def disconnected(self) -> None:
        self._target, self._reset_due, self._caught_up = None, False, False
        self._behind = True
        self.agents.disconnected()
        self._outgoing.disconnected()

    def submit(self, frame: ClientFrame) -> None:
        """Add a frame, to be sent once a connection has caught up.  Raises ValueError when too many wait."""
        self._outgoing.add(frame)

    def due(self, now: float) -> list[ClientFrame]:
        """What has to go out now, in order; it counts as sent.  Nothing before the connection has caught up: a replay
        may show that a message arrived."""
        return [*self.agents.due(), *self._outgoing.due(now)] if self._caught_up else []

    def receive(self, frame: ServerFrame, now: float) -> list[LiveEvent]:
        """What there is to show of it.  Raises SessionGone, or codec.Invalid for broken buffered events."""
        shown: list[LiveEvent] = []
        if isinstance(frame, PongFrame) or not self._ours(frame):
            return shown
        match frame:
            case ErrorFrame(error=error, seq=seq) if error == SESSION_NOT_FOUND and seq is UNSET:
                raise SessionGone(self.session_id)
            case ErrorFrame(error=error, seq=seq) if error == INTERACTION_NOT_FOUND and seq is UNSET:
                self._outgoing.answer_refused()
            case ErrorFrame(client_msg_id=str(sent)):
                self._outgoing.confirm_message(sent)
            case SessionStatusFrame():
                shown += self._bound(frame)
            case GapFrame():
                self._gap(frame)
            case QueueUpdateFrame():
                self._confirm(entry.client_msg_id for entry in frame.queue)
                self._confirm(entry.client_msg_id for entry in frame.removed or ())
        if not isinstance(frame, SessionStatusFrame) and self._is_new(frame):
            shown.append(frame)
        if not self._caught_up and self._arrived():
            shown += self._begin(now)
        return shown

    def _ours(self, frame: ServerFrame) -> bool:
        return self.session_id in (getattr(frame, "session_id", None), getattr(frame, "source_id", None))

    def _bound(self, status: SessionStatusFrame) -> list[ServerFrame]:
        self._target = status.last_seq
        self._confirm(entry.client_msg_id for entry in status.agents.queue)
        shown: list[ServerFrame] = [evolve(status, buffered_events=UNSET)]
        if isinstance(status.buffered_events, list):
            buffered = [read_frame(found) for found in status.buffered_events]
            shown += [frame for frame in buffered if frame is not None and self._is_new(frame)]
        if self.cursor is None or isinstance(status.buffered_events, list):
            self.cursor = status.last_seq
        self._reset_due = self.cursor > status.last_seq
        return shown

    def _gap(self, gap: GapFrame) -> None:
        if self._behind or gap.reset is True:
            self._asked.forget()
        if gap.reset is True:
            # The log is another one; what it has kept follows, from its first number on.
            self.cursor, self._reset_due = min(gap.from_seq - 1, gap.to_seq), False
        else:
            self.cursor = max(self.cursor or 0, gap.to_seq)

    def _is_new(self, frame: ServerFrame) -> bool:
        """Move the cursor over a numbered frame; False for one that was shown already."""
        seq = getattr(frame, "seq", UNSET)
        if not isinstance(seq, int):
            return True
        self._behind = False
        if self.cursor is not None and seq <= self.cursor:
            # What still waits for an answer follows a status with the number that it has had from the beginning.
            return isinstance(frame, InteractionFrame) and self._asked.shown(frame.interaction_id)
        self.cursor = seq
        match frame:
            case UserMessageFrame(client_msg_id=sent):
                self._confirm([sent])
            case InteractionFrame(interaction_id=interaction_id):
                self._asked.shown(interaction_id)
            case InteractionResolvedFrame(interaction_id=interaction_id):
                self._outgoing.confirm_answer(interaction_id)
        return True

    def _confirm(self, sent: Iterable[str | None]) -> None:
        for client_msg_id in sent:
            if client_msg_id is not None:
                self._outgoing.confirm_message(client_msg_id)

    def _arrived(self) -> bool:
        return self._target is not None and not self._reset_due and (self.cursor or 0) >= self._target

    def _begin(self, now: float) -> list[LiveEvent]:
        self._caught_up = True
        first, self._before = not self._before, True
        given_up = (
            Unanswered(interaction_id=frame.interaction_id)
            if isinstance(frame, AnswerInteractionFrame)
            else Unconfirmed(client_msg_id=str(frame.client_msg_id))
            for frame in self._outgoing.give_up(now)
        )
        return [CaughtUp(first=first), *given_up]
