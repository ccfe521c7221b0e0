"""The server with an event log that merges nothing: every delta a frame of its own, published as soon as it comes.

The yardstick of the token stream; otherwise ``nerve start`` to the letter.
"""

from nerve.cli import main
from nerve.runtime import event_log, logs
from nerve.runtime.event_log import Delta, SessionLog


class UnmergedLog(SessionLog):
    def delta(self, frame: Delta) -> None:
        self._pending.append(event_log._Pending(frame, [frame.content]))
        self._stirred.set()


if __name__ == "__main__":
    event_log.TICK_SECONDS = 0.0
    logs.SessionLog = UnmergedLog  # type: ignore[attr-defined]
    main()
