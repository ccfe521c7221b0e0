"""Frames that a client sends.  Generated from spec/ by `make contract`: do not edit."""

from typing import Any, Literal, TypeAlias

from attrs import field, frozen
from nerve.contract.unset import UNSET, Unset


@frozen(kw_only=True)
class MessageFrame:
    """Send a message; its turn runs at once or waits in the session's queue."""

    type: Literal['message'] = field(default='message')
    session_id: str
    content: str = field(metadata={'min_length': 1})
    file_ids: list[str] | Unset = field(default=UNSET, metadata={'max_items': 20})
    model: str | None | Unset = field(default=UNSET, metadata={'min_length': 1, 'max_length': 200})
    client_msg_id: str | None | Unset = field(default=UNSET, metadata={'min_length': 1, 'max_length': 200})


@frozen(kw_only=True)
class StopFrame:
    """Stop the session's turn; background agents keep running."""

    type: Literal['stop'] = field(default='stop')
    session_id: str


@frozen(kw_only=True)
class SwitchSessionFrame:
    """Bind the socket to another session; agent subscriptions end."""

    type: Literal['switch_session'] = field(default='switch_session')
    session_id: str
    after_seq: int | None | Unset = field(default=UNSET, metadata={'minimum': 0})


@frozen(kw_only=True)
class AgentSubscribeFrame:
    """Follow one agent's live transcript."""

    type: Literal['agent_subscribe'] = field(default='agent_subscribe')
    session_id: str
    agent_id: str


@frozen(kw_only=True)
class AgentUnsubscribeFrame:
    """Stop following an agent."""

    type: Literal['agent_unsubscribe'] = field(default='agent_unsubscribe')
    session_id: str
    agent_id: str


@frozen(kw_only=True)
class ForkFrame:
    """Fork a session, at a message or whole."""

    type: Literal['fork'] = field(default='fork')
    session_id: str
    at_message_id: str | None | Unset = field(default=UNSET)
    title: str | None | Unset = field(default=UNSET, metadata={'max_length': 500})


@frozen(kw_only=True)
class ResumeFrame:
    """Resume a stopped or idle session."""

    type: Literal['resume'] = field(default='resume')
    session_id: str


@frozen(kw_only=True)
class AnswerInteractionFrame:
    """Answer what an interactive tool waits for."""

    type: Literal['answer_interaction'] = field(default='answer_interaction')
    session_id: str
    interaction_id: str
    result: dict[str, Any] | None | Unset = field(default=UNSET)
    denied: bool = field(default=False)
    message: str | None = field(default=None)


@frozen(kw_only=True)
class PingFrame:
    """Ask for a pong."""

    type: Literal['ping'] = field(default='ping')


ClientFrame: TypeAlias = (
    MessageFrame
    | StopFrame
    | SwitchSessionFrame
    | AgentSubscribeFrame
    | AgentUnsubscribeFrame
    | ForkFrame
    | ResumeFrame
    | AnswerInteractionFrame
    | PingFrame
)

CLIENT_FRAMES: dict[str, type[Any]] = {
    'message': MessageFrame,
    'stop': StopFrame,
    'switch_session': SwitchSessionFrame,
    'agent_subscribe': AgentSubscribeFrame,
    'agent_unsubscribe': AgentUnsubscribeFrame,
    'fork': ForkFrame,
    'resume': ResumeFrame,
    'answer_interaction': AnswerInteractionFrame,
    'ping': PingFrame,
}

CLIENT_FRAME_PARTS: dict[str, int | Literal['later']] = {
    'message': 1,
    'stop': 1,
    'switch_session': 1,
    'agent_subscribe': 4,
    'agent_unsubscribe': 4,
    'fork': 3,
    'resume': 3,
    'answer_interaction': 3,
    'ping': 1,
}
