"""What a chat makes of events that are not words of a session."""

from nerve.client import (
    CaughtUp,
    Disconnected,
    LiveEvent,
    SessionGone,
    SocketEnded,
    Unanswered,
    Unconfirmed,
)
from nerve.contract.generated.frames_server import ErrorFrame, QueueUpdateFrame, SessionStatusFrame
from nerve.contract.unset import UNSET


def is_aside(event: LiveEvent, *, alone: bool) -> bool:
    """What is not part of the conversation; of a chat about one message that is also the queue before it."""
    if isinstance(event, Disconnected | CaughtUp | Unconfirmed | Unanswered | SessionStatusFrame):
        return True
    return alone and (isinstance(event, QueueUpdateFrame) or (isinstance(event, ErrorFrame) and event.seq is UNSET))


def explained(ended: SocketEnded | SessionGone) -> str:
    """Why a chat is over."""
    if isinstance(ended, SessionGone):
        return str(ended)
    if ended.code == 1008:
        return "your account was disabled"
    return "the server does not accept this sign-in any more; start again to sign in anew"
