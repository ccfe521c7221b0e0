"""Settling what a crash or a kill left open, before the port opens.

A turn that had begun is marked interrupted with what is known of its text and never runs again; what waits in a queue
runs once the supervisor goes on.  A session whose turns keep taking the process down is quarantined (decisions D8).
"""

import logging
from datetime import datetime

import apsw
import orjson
from attrs import frozen

from nerve.contract.frames import encode_logged
from nerve.contract.generated.entities import AgentEndReason
from nerve.contract.generated.frames_server import ErrorFrame, InteractionResolvedFrame, LoggedFrame, ToolResultFrame
from nerve.domain.transcript import replay
from nerve.domain.turns import INTERRUPTED_REASON, OPEN_TOOL_RESULT, TurnState, mark
from nerve.runtime.house import House
from nerve.store import agents, event_log, intake, interactions, starts, turns, waiting
from nerve.store.event_log import LogRow
from nerve.store.turns import OpenTurn, TurnEnd

log = logging.getLogger("nerve.runtime")

QUARANTINE_AT = 3


@frozen
class Recovered:
    """What was found: turns that were settled, sessions that were set aside, sessions with work that goes on."""

    interrupted: tuple[str, ...]
    quarantined: tuple[str, ...]
    waiting: tuple[str, ...]


async def recover(house: House, generation: str) -> Recovered:
    """Settle every open record.  ``generation`` is this start's, which counts as no death.

    One transaction per turn, so that a crash within recovery loses nothing and repeats nothing.
    """
    database, now = house.database, house.effects.now
    open_turns: list[OpenTurn] = await database.read_large(turns.all_running)
    quarantined: list[str] = []
    for turn in open_turns:
        if await database.write(_settle, turn, generation, house, now()):
            quarantined.append(turn.session_id)
            log.error(
                "session %s is quarantined: its turns ended with the process %d times", turn.session_id, QUARANTINE_AT
            )
    for session_id in await database.read_large(interactions.sessions_with_any):
        await database.write(_cancel_interactions, session_id, now())
    await database.write(turns.orphans_to_idle, now())
    lost = await database.write(agents.interrupt_live, AgentEndReason.GATEWAY_RESTART, now())
    if lost:
        log.warning("%d agents were interrupted by the end of the last process", lost)
    going_on = await database.read_large(waiting.sessions_waiting)
    return Recovered(tuple(turn.id for turn in open_turns), tuple(quarantined), tuple(going_on))


def _settle(db: apsw.Connection, turn: OpenTurn, generation: str, house: House, now: datetime) -> bool:
    """Record one interrupted turn; True if its session was quarantined over it."""
    _record_interrupted(db, turn, now)
    event_log.trim(db, turn.session_id, house.limits.log_frames, now - house.limits.log_age)
    if _deaths_in_a_row(db, turn.session_id, generation) < QUARANTINE_AT:
        return False
    intake.quarantine(db, turn.session_id, now)
    return True


def _record_interrupted(db: apsw.Connection, turn: OpenTurn, now: datetime) -> None:
    frames = [orjson.loads(text) for text in event_log.of_turn(db, turn.session_id, turn.first_seq)]
    transcript = replay(frames)
    closing: list[LoggedFrame] = _cancelled(db, turn.session_id)
    closing += [
        ToolResultFrame(session_id=turn.session_id, tool_use_id=tool, result=OPEN_TOOL_RESULT, is_error=True)
        for tool in transcript.open_tools
    ]
    closing.append(ErrorFrame(session_id=turn.session_id, error=INTERRUPTED_REASON))
    transcript.close_tools()
    _log_closing(db, turn.session_id, turn.id, closing, now)
    end = TurnEnd(
        turn_id=turn.id,
        session_id=turn.session_id,
        state=TurnState.INTERRUPTED,
        message=transcript.stored(mark(TurnState.INTERRUPTED, None)),
        status="active",
        reason=INTERRUPTED_REASON,
        native_turn_id=None,
        model=None,
        usage=None,
        events=[("interrupted", {"turn_id": turn.id})],
    )
    turns.end(db, end, now)


def _log_closing(
    db: apsw.Connection, session_id: str, turn_id: str | None, closing: list[LoggedFrame], now: datetime
) -> None:
    # Every number up to the reserved one may have been shown; what was lost of them is a gap from here on.
    first = event_log.reserved(db, session_id) + 1
    rows = [LogRow(n, turn_id, encode_logged(frame, n).decode()) for n, frame in enumerate(closing, first)]
    event_log.append(db, session_id, rows, now)
    event_log.release(db, session_id, rows[-1].seq)


def _cancelled(db: apsw.Connection, session_id: str) -> list[LoggedFrame]:
    """What was asked of people is lost with whoever asked."""
    lost = interactions.of_session(db, session_id)
    interactions.end(db, lost)
    return [InteractionResolvedFrame(session_id=session_id, interaction_id=each) for each in lost]


def _cancel_interactions(db: apsw.Connection, session_id: str, now: datetime) -> None:
    """Those of a session in which no turn was running: background agents ask too."""
    _log_closing(db, session_id, None, _cancelled(db, session_id), now)


def _deaths_in_a_row(db: apsw.Connection, session_id: str, generation: str) -> int:
    """How many of the newest quick deaths, without a break, had a turn of this session running."""
    count = 0
    for death in starts.quick_deaths(db, generation):
        if not turns.interrupted_between(db, session_id, death.started_at, death.until):
            break
        count += 1
    return count
