"""Making sessions: which runtime, which directory, whose (sessions-and-agents.md section 3, decisions D4)."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from attrs import frozen

from nerve.contract.generated.entities import Session, SessionSource
from nerve.contract.generated.sessions import NewSession
from nerve.domain.attribution import Attribution
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.backends import BackendChoice
from nerve.store import channel_sessions, sessions
from nerve.store.database import Database
from nerve.store.sessions import SessionDraft


class BackendChooser(Protocol):
    async def backend_for(self, requested: str | None) -> BackendChoice:
        """Raises UNKNOWN_BACKEND and BACKEND_UNAVAILABLE."""
        ...


@frozen
class SessionMaker:
    """Waits for a runtime's availability, the file system and the database.  Cancelled, no session was made."""

    _database: Database
    _chooser: BackendChooser
    _effects: Effects
    _workspace: Path
    _home: Path | None = None  # the server's own directory, in which no session works

    async def create(self, new: NewSession, by: Attribution) -> Session:
        """Raises UNKNOWN_BACKEND, BACKEND_UNAVAILABLE, EMPTY_MODEL and BAD_CWD."""
        draft = await self._draft(
            title=new.title, source=SessionSource(new.source.value), backend=new.backend, model=new.model, cwd=new.cwd
        )
        return await self._database.write(sessions.create, draft, by, self._effects.new_id, self._effects.now())

    async def for_channel(self, channel_key: str, source: SessionSource, sticky: timedelta, by: Attribution) -> str:
        """The id of the session that a channel talked to within ``sticky``, or of a new one."""
        now = self._effects.now()
        known = await self._database.read(channel_sessions.current, channel_key, now - sticky)
        if known is not None:
            return known
        draft = await self._draft(source=source)
        return await self._database.write(
            channel_sessions.current_or_new, channel_key, now - sticky, draft, by, self._effects.new_id, now
        )

    async def ensure_main(self, system_actor: str) -> bool:
        """Make ``main`` at the first start; False if it was there.  The system actor must exist."""
        draft = await self._draft(source=SessionSource.SYSTEM)
        return await self._database.write(sessions.ensure_main, draft, system_actor, self._effects.now())

    async def _draft(
        self,
        *,
        source: SessionSource,
        title: str | None = None,
        backend: str | None = None,
        model: str | None = None,
        cwd: str | None = None,
    ) -> SessionDraft:
        if model is not None and not model.strip():
            raise NerveError(ErrorCode.EMPTY_MODEL)
        choice = await self._chooser.backend_for(backend)
        directory = cwd if cwd is not None and cwd.strip() else str(self._workspace)
        await self._effects.blocking(_make_directory, directory, self._home)
        return SessionDraft(
            title=(title or "").strip() or None,
            source=source,
            backend=choice.backend,
            backend_reason=choice.reason,
            model=None if model is None else model.strip(),
            cwd=directory,
        )


def _make_directory(path: str, home: Path | None) -> None:
    """Make the directory and its missing parents.  Raises BAD_CWD."""
    if not os.path.isabs(path) or ".." in path.split("/"):  # what such a path leads through would be made, too
        raise NerveError(ErrorCode.BAD_CWD, message="The working directory has to be an absolute path without '..'.")
    try:
        if home is not None and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(home)):
            raise NerveError(ErrorCode.BAD_CWD, message="The working directory can't be in the server's own directory.")
        os.makedirs(path, exist_ok=True)
    except OSError as refused:
        reason = refused.strerror or "unknown reason"
        raise NerveError(ErrorCode.BAD_CWD, message=f"The working directory can't be used: {reason}.") from None
    except ValueError:  # a NUL, or text that no file name can hold
        raise NerveError(ErrorCode.BAD_CWD) from None
