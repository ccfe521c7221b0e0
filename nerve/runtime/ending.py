"""How a turn's end is recorded and told: one transaction, then the last frames of the turn."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

import apsw
import trio

from nerve.contract.generated.frames_server import (
    DoneFrame,
    ErrorFrame,
    LoggedFrame,
    StoppedFrame,
    ToolResultFrame,
)
from nerve.contract.unset import UNSET
from nerve.domain.turns import INTERRUPTED_REASON, OPEN_TOOL_RESULT, TurnState, mark, session_status
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.event_log import SessionLog
from nerve.runtime.house import House
from nerve.runtime.interactions import Interactions
from nerve.runtime.turn import RunningTurn, TurnOutcome
from nerve.runtime.views import frame_usage, usage_row
from nerve.store import event_log, interactions, turns
from nerve.store.turns import TurnEnd

log = logging.getLogger("nerve.runtime")

RETRY_SECONDS = 0.5
LATE_SECONDS = 10.0  # then whoever waits for the turn is told why they get no answer
GIVE_UP_SECONDS = 5.0  # once the house closes; the next start's recovery settles the turn then
LONGEST_EVENT_ERROR = 500


async def record_end(
    house: House,
    session_log: SessionLog,
    turn: RunningTurn,
    model: str,
    asked: Interactions,
    late: Callable[[TurnOutcome], None],
) -> TurnOutcome:
    """Record the outcome, and keep trying while the disk is full or the database busy.

    Each try is shielded, the pauses between them are not.  A turn that the house interrupts at its end may stay
    unrecorded when the disk refuses it for ``GIVE_UP_SECONDS``; recovery finds it at the next start.
    """
    state, reason = turn.state()
    unsettled = list(asked.unsettled)
    frames = [*asked.resolved(unsettled), *closing_frames(turn, state, reason)]
    turn.transcript.close_tools()
    message = turn.transcript.stored(mark(state, reason))
    end = TurnEnd(
        turn_id=turn.id,
        session_id=turn.entry.session_id,
        state=state,
        message=message,
        status=session_status(state),
        reason=reason,
        native_turn_id=turn.end.native_turn_id if turn.end is not None else None,
        model=model or None,
        usage=usage_row(turn.end.usage) if turn.end is not None and turn.end.usage is not None else None,
        events=session_events(turn, state, reason),
    )
    waited = 0.0
    while True:
        try:
            with trio.CancelScope(shield=True):
                await session_log.record(
                    frames, _write_end, house, end, unsettled, at_end=partial(_trim, house, end.session_id)
                )
            asked.unsettled = [each for each in asked.unsettled if each not in unsettled]
            return TurnOutcome(state, message.content, reason, turn.killed)
        except NerveError as refusal:
            if refusal.code not in (ErrorCode.STORE_FULL, ErrorCode.STORE_BUSY):
                raise
            if waited == LATE_SECONDS:
                late(TurnOutcome(TurnState.FAILED, "", refusal.message))
            if turn.interrupted and waited >= GIVE_UP_SECONDS:
                log.error("the end of a turn could not be recorded: %s: %s", refusal.message, turn.facts())
                return TurnOutcome(TurnState.INTERRUPTED, message.content, reason)
        await trio.sleep(RETRY_SECONDS)
        waited += RETRY_SECONDS


def _write_end(db: apsw.Connection, house: House, end: TurnEnd, unsettled: Sequence[str]) -> None:
    interactions.end(db, unsettled)
    turns.end(db, end, house.effects.now())


def _trim(house: House, session_id: str, db: apsw.Connection) -> None:
    event_log.trim(db, session_id, house.limits.log_frames, house.effects.now() - house.limits.log_age)


def closing_frames(turn: RunningTurn, state: TurnState, reason: str | None) -> list[LoggedFrame]:
    """A result for every tool call that was cut off, then the one frame that ends the turn."""
    session_id = turn.entry.session_id
    frames: list[LoggedFrame] = [
        ToolResultFrame(session_id=session_id, tool_use_id=tool_use_id, result=OPEN_TOOL_RESULT, is_error=True)
        for tool_use_id in turn.transcript.open_tools
    ]
    match state:
        case TurnState.COMPLETED:
            frames.append(_done(turn))
        case TurnState.STOPPED:
            frames.append(StoppedFrame(session_id=session_id))
        case TurnState.INTERRUPTED:
            frames.append(ErrorFrame(session_id=session_id, error=INTERRUPTED_REASON))
        case _:
            frames.append(ErrorFrame(session_id=session_id, error=reason or ""))
    return frames


def _done(turn: RunningTurn) -> DoneFrame:
    usage = turn.end.usage if turn.end is not None else None
    if usage is None:
        return DoneFrame(session_id=turn.entry.session_id)
    return DoneFrame(
        session_id=turn.entry.session_id,
        usage=frame_usage(usage),
        max_context_tokens=UNSET if usage.max_context_tokens is None else usage.max_context_tokens,
        num_turns=UNSET if usage.num_turns is None else usage.num_turns,
    )


def session_events(turn: RunningTurn, state: TurnState, reason: str | None) -> list[tuple[str, dict[str, object]]]:
    match state:
        case TurnState.STOPPED:
            return [("stopped", {})]
        case TurnState.FAILED:
            return [("error", {"error": (reason or "")[:LONGEST_EVENT_ERROR]})]
        case TurnState.INTERRUPTED:
            return [("interrupted", {"turn_id": turn.id})]
        case _:
            return []
