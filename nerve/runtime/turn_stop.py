"""How a running turn is ended from outside: its runtime is asked, and cancelled when that does not help in time."""

import trio

from nerve.adapters.protocol import RuntimeGone
from nerve.domain.agent_roster import StopOrder
from nerve.domain.turns import INTERRUPT_SECONDS, KILL_SECONDS
from nerve.runtime.client import ClientSlot
from nerve.runtime.interactions import Interactions
from nerve.runtime.roster import Roster
from nerve.runtime.turn import Reach, RunningTurn, TurnStopped

RECORD_SECONDS = 1.0  # how long the answer to a stop waits for the record of it


async def stop(
    slot: ClientSlot, asked: Interactions, turn: RunningTurn, roster: Roster, order: StopOrder
) -> TurnStopped:
    """Interrupt the turn; after five seconds cancel it, which only happens while no agent is live.

    ``order`` reaches the agents that end with it.  Waits at most ``INTERRUPT_SECONDS`` plus ``KILL_SECONDS``.
    """
    turn.stop_requested = True
    roster.obey(order)
    with trio.move_on_after(INTERRUPT_SECONDS):
        await interrupt(slot, asked, turn)
        await turn.over.wait()
        return await _told(turn)
    if roster.count:
        return TurnStopped.NOT_STOPPED
    return await kill(slot, turn)


async def take_down(slot: ClientSlot, asked: Interactions, turn: RunningTurn, patience: float) -> None:
    """The house ends the turn: interrupt it, and cancel it when that does not help in time."""
    with trio.move_on_after(patience):
        await interrupt(slot, asked, turn)
        await turn.finished.wait()
    if not turn.finished.is_set():
        await kill(slot, turn)


async def interrupt(slot: ClientSlot, asked: Interactions, turn: RunningTurn) -> None:
    """What the turn asks of people is settled as interrupted.  Waits as long as the caller lets it."""
    client = slot.client
    if client is None or turn.reach is Reach.UNSENT:
        turn.scope.cancel()  # the runtime does not know of the turn
        return
    try:
        await client.interrupt()
    except RuntimeGone as gone:
        turn.lose(gone)
    # After the interrupt, so that a runtime which lets go of its question by itself doesn't go on with a refusal.
    asked.deny(of_turn_only=True)


async def force(slot: ClientSlot, turn: RunningTurn | None) -> TurnStopped:
    """Cancel the turn, or close the runtime when no turn runs.  Waits at most ``KILL_SECONDS``."""
    if turn is not None:
        turn.stop_requested = True
        return await kill(slot, turn)
    with trio.move_on_after(KILL_SECONDS):
        await slot.close()
    return TurnStopped.NOT_RUNNING


async def kill(slot: ClientSlot, turn: RunningTurn) -> TurnStopped:
    """Waits at most ``KILL_SECONDS``."""
    turn.killed = True
    slot.kill()
    turn.scope.cancel()
    with trio.move_on_after(KILL_SECONDS):
        await slot.close()
        await turn.over.wait()
        return await _told(turn)
    return TurnStopped.NOT_STOPPED


async def _told(turn: RunningTurn) -> TurnStopped:
    """The answer follows the record, but a disk that refuses the record doesn't make the stop untrue."""
    with trio.move_on_after(RECORD_SECONDS):
        await turn.finished.wait()
    return turn.came_of_stop()
