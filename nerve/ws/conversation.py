"""What one client may say next.  No socket, no clock, no await: a frame comes in, commands come out."""

from collections.abc import Iterator

from attrs import define, frozen

from nerve.contract.codec import Invalid
from nerve.contract.frames import decode_client_frame
from nerve.contract.generated.frames_client import (
    AgentSubscribeFrame,
    AgentUnsubscribeFrame,
    AnswerInteractionFrame,
    ClientFrame,
    ForkFrame,
    MessageFrame,
    PingFrame,
    ResumeFrame,
    StopFrame,
    SwitchSessionFrame,
)
from nerve.contract.generated.frames_server import ErrorFrame, PongFrame, ServerFrame
from nerve.contract.unset import Unset
from nerve.domain.answers import PersonsAnswer

MAX_FRAME_BYTES = 1024 * 1024
ANCHOR_PREFIX = "msg-"
UNSUPPORTED_DATA, TOO_BIG = 1003, 1009


@frozen
class Send:
    frame: ServerFrame


@frozen
class Bind:
    """Tie the socket to a session; ``after_seq`` asks for the missed frames instead of the turn's buffered ones."""

    session_id: str
    after_seq: int | None = None
    client_msg_id: str | None = None  # of the message that asks for it, to be told with a refusal


@frozen
class Submit:
    session_id: str
    content: str
    client_msg_id: str | None
    model: str | None
    file_ids: tuple[str, ...] = ()


@frozen
class Stop:
    session_id: str


@frozen
class Fork:
    """``at_message_id`` is the number of a message, as text; None forks the session as a whole."""

    session_id: str
    at_message_id: str | None
    title: str | None


@frozen
class Resume:
    session_id: str


@frozen
class Answer:
    session_id: str
    interaction_id: str
    answer: PersonsAnswer


@frozen
class Follow:
    """Have the socket hear an agent's transcript."""

    session_id: str
    agent_id: str


@frozen
class Unfollow:
    session_id: str
    agent_id: str


@frozen
class Close:
    code: int
    reason: str


Command = Send | Bind | Submit | Stop | Fork | Resume | Answer | Follow | Unfollow | Close


@define
class Conversation:
    """``bound`` is the session that the socket is tied to; whoever carries out a Bind sets it (``now_bound``)."""

    bound: str

    def now_bound(self, session_id: str) -> None:
        self.bound = session_id

    def receive(self, message: str | bytes) -> Iterator[Command]:
        """What follows from one message.  A command that fails ends the list: the rest is not carried out."""
        if isinstance(message, bytes):
            yield Close(UNSUPPORTED_DATA, "text frames only")
            return
        # Each character has at least one byte, so most frames need no encoding to be measured.
        if len(message) > MAX_FRAME_BYTES or (
            len(message) > MAX_FRAME_BYTES // 4 and len(message.encode("utf-8", "replace")) > MAX_FRAME_BYTES
        ):
            yield Close(TOO_BIG, "frame too big")
            return
        try:
            frame = decode_client_frame(message)
        except Invalid:
            yield self._error("bad_frame")
            return
        if frame is not None:
            yield from self._frame(frame)

    def _frame(self, frame: ClientFrame) -> Iterator[Command]:
        match frame:
            case PingFrame():
                yield Send(PongFrame())
            case SwitchSessionFrame(session_id=session_id, after_seq=after_seq):
                yield Bind(session_id, after_seq if isinstance(after_seq, int) else None)
            case MessageFrame():
                yield from self._message(frame)
            case StopFrame(session_id=session_id):
                yield Stop(session_id)
            case AgentSubscribeFrame(session_id=session_id, agent_id=agent_id):
                # Only agents of the session that the socket is bound to can be followed.
                here = session_id == self.bound
                yield Follow(session_id, agent_id) if here else self._error("agent_not_found", session_id)
            case AgentUnsubscribeFrame(session_id=session_id, agent_id=agent_id):
                yield Unfollow(session_id, agent_id)
            case AnswerInteractionFrame():
                yield Answer(frame.session_id, frame.interaction_id, _answer(frame))
            case ForkFrame(session_id=session_id, at_message_id=anchor, title=title):
                plain = anchor.removeprefix(ANCHOR_PREFIX) if isinstance(anchor, str) else None
                yield Fork(session_id, plain, title or None)
            case ResumeFrame(session_id=session_id):
                yield Resume(session_id)

    def _message(self, frame: MessageFrame) -> Iterator[Command]:
        if frame.session_id != self.bound:
            yield Bind(frame.session_id, client_msg_id=frame.client_msg_id or None)
        file_ids = () if isinstance(frame.file_ids, Unset) else tuple(frame.file_ids)
        yield Submit(frame.session_id, frame.content, frame.client_msg_id or None, frame.model or None, file_ids)

    def _error(self, error: str, session_id: str | None = None, client_msg_id: str | None = None) -> Send:
        session_id = self.bound if session_id is None else session_id
        if client_msg_id is None:
            return Send(ErrorFrame(session_id=session_id, error=error))
        return Send(ErrorFrame(session_id=session_id, error=error, client_msg_id=client_msg_id))


def _answer(frame: AnswerInteractionFrame) -> PersonsAnswer:
    result = frame.result if isinstance(frame.result, dict) else None
    return PersonsAnswer(result, frame.denied, frame.message)
