"""What a turn may become, and the sentences that mark how it ended (sessions-and-agents.md 5, decisions D2)."""

from enum import StrEnum


class TurnState(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"  # by a shutdown, or found running after one


class StopScope(StrEnum):
    TURN = "turn"
    ALL = "all"
    FORCE = "force"


STOPPED_MARK = "[Stopped by user]"
INTERRUPTED_MARK = "[Interrupted by restart]"
INTERRUPTED_REASON = "Interrupted by restart"
OPEN_TOOL_RESULT = "[Interrupted]"
RUNTIME_DIED = "The agent's runtime ended unexpectedly."

# Sources of turns that nobody asked for at that moment: they are led by a block of their type, and move no feed.
UNASKED_SOURCES = frozenset({"wakeup", "auto"})

INTERRUPT_SECONDS = 5.0  # how long a stop waits for the runtime before it may cancel
KILL_SECONDS = 3.0  # after that, how long a cancelled runtime may take to be gone (decisions D11)


def mark(state: TurnState, reason: str | None) -> str | None:
    """What is added to the stored text of a turn that did not complete."""
    match state:
        case TurnState.STOPPED:
            return STOPPED_MARK
        case TurnState.INTERRUPTED:
            return INTERRUPTED_MARK
        case TurnState.FAILED:
            return f"Agent error: {reason or RUNTIME_DIED}"
        case _:
            return None


def bumps(source: str) -> bool:
    """Whether a turn's messages move its session to the front of the feed."""
    return source not in UNASKED_SOURCES


def session_status(state: TurnState) -> str:
    """The session's lifecycle status after a turn ended while its runtime is attached."""
    return {TurnState.STOPPED: "stopped", TurnState.FAILED: "error"}.get(state, "active")
