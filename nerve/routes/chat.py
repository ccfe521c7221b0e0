"""``POST /api/chat``: one message in, the complete answer out (contract chapter Chat, decisions D3)."""

from datetime import timedelta

from nerve.contract.caller import Caller
from nerve.contract.generated.chat import CHAT_SEND, ChatMessage, ChatReply
from nerve.contract.generated.entities import SessionSource
from nerve.contract.route import NoParams
from nerve.domain import attribution
from nerve.domain.turns import INTERRUPTED_REASON, TurnState
from nerve.errors import ErrorCode, NerveError
from nerve.routes.binding import bind
from nerve.routes.making import session_maker
from nerve.runtime.reception import NewMessage
from nerve.runtime.turn import TurnOutcome
from nerve.services import Services

CHANNEL = "api:default"
QUARANTINED = "The session is quarantined; the message waits in its queue until somebody stops or unarchives it."
KILLED = "The turn was cancelled, because it did not end when it was asked to."


async def send(services: Services, caller: Caller, params: NoParams, chat: ChatMessage) -> ChatReply:
    """Replies once the turn has ended; the turn goes on if the caller leaves before."""
    session_id = chat.session_id
    if session_id is None:
        session_id = await _default_session(services, caller)
    message = NewMessage(
        content=chat.message,
        source="api",
        actor_id=caller.actor_id,
        cause_id=caller.cause_id,
        client_msg_id=chat.client_msg_id,
        model=chat.model,
    )
    submission = await services.supervisor.reception.submit(session_id, message)
    if submission.duplicate:
        return ChatReply(response="", session_id=session_id)
    if submission.set_aside:
        raise NerveError(ErrorCode.CHAT_FAILED, message=QUARANTINED)
    return ChatReply(response=_answer(await services.supervisor.reception.outcome(submission)), session_id=session_id)


async def _default_session(services: Services, caller: Caller) -> str:
    maker = session_maker(services)
    sticky = timedelta(minutes=services.config.sessions.sticky_period_minutes)
    return await maker.for_channel(CHANNEL, SessionSource.API, sticky, attribution.of(caller))


def _answer(outcome: TurnOutcome) -> str:
    """The stored text of a turn that completed or was stopped.

    Raises SHUTTING_DOWN for a message that was refused while it waited, CHAT_FAILED with the reason of any other end.
    """
    if outcome.refused:
        raise NerveError(ErrorCode.SHUTTING_DOWN)
    match outcome.state:
        case TurnState.STOPPED if outcome.killed:
            raise NerveError(ErrorCode.CHAT_FAILED, message=KILLED)
        case TurnState.COMPLETED | TurnState.STOPPED:
            return outcome.text
        case TurnState.INTERRUPTED:
            raise NerveError(ErrorCode.CHAT_FAILED, message=INTERRUPTED_REASON)
        case _:
            raise NerveError(ErrorCode.CHAT_FAILED, message=outcome.reason)


ENDPOINTS = (bind(CHAT_SEND, send),)
