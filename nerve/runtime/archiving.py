"""Archiving a session with its whole subtree, bringing one back, and deleting one (contract chapter Sessions)."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

import apsw
from attrs import frozen

from nerve.contract.generated.entities import AgentEndReason
from nerve.contract.generated.sessions import ArchiveResult, SkippedSession
from nerve.domain.attribution import Attribution
from nerve.domain.cleanup import Leaving, Policy, leaving
from nerve.domain.sessions import (
    MAIN_ID,
    ArchiveReason,
    ArchiveWalk,
    Hindrance,
    LiveState,
    TreeNode,
    deepest_first,
    hindrance,
    not_archived,
)
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.house import SYSTEM_ACTOR
from nerve.runtime.uploads import remove_stored
from nerve.store import cleanup, deletions, intake, sessions
from nerve.store.database import Database
from nerve.store.deletions import Deletion
from nerve.store.queue import QueuedMessage
from nerve.store.sessions import Archival, Archived

ARCHIVED = "The session was archived."
DELETED = "The session was deleted."


class Runtimes(Protocol):
    """What is asked of the supervisor."""

    def live(self, session_id: str) -> LiveState: ...

    def detached(self, session_id: str, reason: str, agents: AgentEndReason) -> AbstractAsyncContextManager[None]:
        """The session without a runtime; a turn is ended first and recorded as failed of ``reason``."""
        ...

    def archived(self, session_id: str) -> None:
        """Tell those who look at the session."""
        ...

    async def abandoned(self, session_id: str, entries: Sequence[QueuedMessage], reason: str) -> None:
        """After what waited was dropped: whoever waits for it is told ``reason``."""
        ...


@frozen
class Archiver:
    """Waits for runtimes to end and for the database; cancelled, the sessions archived so far stay archived."""

    _database: Database
    _runtimes: Runtimes
    _effects: Effects

    async def archive(
        self, session_id: str, by: Attribution, *, reason: ArchiveReason = ArchiveReason.USER, force: bool = False
    ) -> ArchiveResult:
        """Archive the subtree, deepest first; ``force`` ends turns and background agents and drops what waits.

        Raises SESSION_NOT_FOUND and MAIN_IS_PERMANENT.
        """
        if session_id == MAIN_ID:
            raise NerveError(ErrorCode.MAIN_IS_PERMANENT)
        walk = ArchiveWalk()
        for node in deepest_first(await self._database.read(sessions.subtree, session_id), session_id):
            own_reason = reason if node.id == session_id else ArchiveReason.CASCADE
            await self._visit(walk, node, by, own_reason, force)
        return ArchiveResult(
            archived=bool(walk.archived_ids),
            archived_ids=walk.archived_ids,
            skipped=[SkippedSession(id=skipped_id, reason=why) for skipped_id, why in walk.skipped],
        )

    async def _visit(
        self, walk: ArchiveWalk, node: TreeNode, by: Attribution, reason: ArchiveReason, force: bool
    ) -> None:
        if node.archived:
            walk.pass_by(node)
            return
        obstacle = hindrance(node.id, self._runtimes.live(node.id), force=force) or walk.kept_by(node)
        if obstacle is not None:
            walk.skip(node, obstacle)
            return
        match await self._archive_one(node.id, by, reason, force):
            case Archival(Archived.DONE):
                walk.archive(node)
            case Archival(Archived.BUSY):
                walk.skip(node, Hindrance.RUNNING)
            case Archival(Archived.KEPT, _, str(child)):
                walk.skip(node, not_archived(child))
            case _:
                walk.pass_by(node)

    async def clean_up(self, policy: Policy) -> list[Leaving]:
        """Archive one after the other what is to leave by itself, nobody's doing but the system's; returns what did.

        Whatever comes to life meanwhile stays.
        """
        found = await self._database.read_large(cleanup.residents)
        left = []
        for chosen in leaving(found, policy, self._effects.now(), self._is_busy):
            if await self._database.read(cleanup.still_leaving, chosen) and not self._is_busy(chosen.id):
                archival = await self._carry_out(chosen.id, cleanup.archive, chosen, Attribution(SYSTEM_ACTOR, None))
                left += [chosen] if archival.outcome is Archived.DONE else []
        return left

    def _is_busy(self, session_id: str) -> bool:
        return hindrance(session_id, self._runtimes.live(session_id), force=False) is not None

    async def _archive_one(self, session_id: str, by: Attribution, reason: ArchiveReason, force: bool) -> Archival:
        return await self._carry_out(session_id, sessions.archive, session_id, reason, force, by)

    async def _carry_out(self, session_id: str, write: Callable[..., Archival], *args: Any) -> Archival:
        # Nothing awaits between the look at the live state and the moment from which no turn begins.
        async with self._runtimes.detached(session_id, ARCHIVED, AgentEndReason.ARCHIVED):
            archival = await self._database.write(write, *args, self._effects.now())
            if archival.outcome is Archived.DONE:
                self._runtimes.archived(session_id)
            await self._runtimes.abandoned(session_id, archival.dropped, ARCHIVED)
        return archival


def restore(db: apsw.Connection, session_id: str, by: Attribution, now: datetime) -> None:
    """Unarchive, and lift a quarantine (decisions D8); its queue may then go on.  Raises SESSION_NOT_FOUND."""
    sessions.unarchive(db, session_id, by, now)
    intake.lift_quarantine(db, session_id)


@frozen
class Deleter:
    """Waits for the runtime to end and for the database; cancelled before the rows are gone, the session stays."""

    _database: Database
    _runtimes: Runtimes
    _effects: Effects

    async def delete(self, session_id: str, by: Attribution) -> Deletion:
        """Raises MAIN_IS_PERMANENT and SESSION_NOT_FOUND."""
        if session_id == MAIN_ID:
            raise NerveError(ErrorCode.MAIN_IS_PERMANENT)
        await self._database.read(sessions.get, session_id)
        async with self._runtimes.detached(session_id, DELETED, AgentEndReason.ARCHIVED):
            gone = await self._database.write(deletions.delete, session_id, by, self._effects.now())
            await self._runtimes.abandoned(session_id, gone.waiting, DELETED)
            await remove_stored(self._effects, gone.files)
            return gone
