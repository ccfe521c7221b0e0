"""The event logs in use: at most one object per session, because two would give out the same numbers."""

import trio
from attrs import define, field

from nerve.effects import Effects
from nerve.runtime.event_log import SessionLog
from nerve.runtime.hub import Hub
from nerve.store import event_log
from nerve.store.database import Database


@define(eq=False)
class LogBook:
    """A log is held while a runner works on its session or a socket is bound to it."""

    _database: Database
    _hub: Hub
    _effects: Effects
    _open: dict[str, SessionLog] = field(factory=dict)
    _holds: dict[str, int] = field(factory=dict)
    _opening: trio.Lock = field(factory=trio.Lock)

    async def hold(self, session_id: str) -> SessionLog:
        """The session's log, until ``drop``.  Raises SESSION_NOT_FOUND; cancelled, nothing is held."""
        log = self._open.get(session_id)
        if log is None:
            async with self._opening:
                log = self._open.get(session_id)
                if log is None:
                    last = await self._database.read(event_log.reserved, session_id)
                    log = SessionLog(session_id, self._database, self._hub, self._effects, last, last)
                    self._open[session_id] = log
        self._holds[session_id] = self._holds.get(session_id, 0) + 1
        return log

    def last_seq(self, session_id: str) -> int | None:
        log = self._open.get(session_id)
        return None if log is None else log.last_seq

    def drop(self, session_id: str) -> None:
        left = self._holds[session_id] - 1
        if left:
            self._holds[session_id] = left
        else:
            del self._holds[session_id]
            self._open.pop(session_id, None)

    def forget(self, session_id: str) -> None:
        """The session was deleted: whoever holds its log keeps an object that nothing is added to any more."""
        self._open.pop(session_id, None)
