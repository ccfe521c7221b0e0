"""The bounds of the runtime as one value; the composition root fills it from the configuration."""

from datetime import timedelta

from attrs import frozen


@frozen
class Limits:
    """``client_idle_seconds`` and ``silence_seconds`` may be infinite."""

    max_concurrent: int = 32  # turns at once, over all sessions
    queue_max: int = 50  # entries waiting per session
    log_frames: int = 10_000
    log_age: timedelta = timedelta(hours=24)
    buffer_bytes: int = 4 * 1024 * 1024  # of one buffered_events
    client_idle_seconds: float = 3600.0  # a client without a turn is closed after that
    silence_seconds: float = 900.0  # a turn without any event fails after that
    drain_seconds: float = 2.0  # how long an interrupted turn may take at shutdown before it is cancelled
    quiet_after_minutes: int = 10
    ended_agents_kept: timedelta = timedelta(days=30)  # an agent that ended longer ago is dropped, transcript and all
    transcript_item_bytes: int = 16_384  # of a tool's input or result in an agent's transcript
