"""Archiving a session with its whole subtree.  One that is busy stays, and so do its ancestors (contract, Sessions)."""

from typing import Protocol

from attrs import frozen

from nerve.contract.generated.sessions import ArchiveResult, SkippedSession
from nerve.domain.attribution import Attribution
from nerve.domain.sessions import (
    MAIN_ID,
    ArchiveReason,
    ArchiveWalk,
    Hindrance,
    LiveState,
    TreeNode,
    deepest_first,
    hindrance,
)
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.store import sessions
from nerve.store.database import Database
from nerve.store.sessions import Archived

_ATTEMPTS = 3  # a message may begin another turn between the end of one and the archiving


class Runtimes(Protocol):
    """What archiving asks of the supervisor."""

    def live(self, session_id: str) -> LiveState: ...

    async def detach(self, session_id: str, reason: str) -> None:
        """End the session's runtime, and its turn with a recorded outcome."""
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
        """Archive the subtree, deepest first; ``force`` ends turns and background agents.

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
        # Nothing awaits between the look at the live state and the beginning of detach.
        obstacle = hindrance(node.id, self._runtimes.live(node.id), force=force) or walk.kept_by(node)
        if obstacle is not None:
            walk.skip(node, obstacle)
            return
        match await self._archive_one(node.id, by, reason, force):
            case Archived.DONE:
                walk.archive(node)
            case Archived.TURN_RUNNING:
                walk.skip(node, Hindrance.RUNNING)
            case Archived.NOT_THERE:
                walk.pass_by(node)

    async def _archive_one(self, session_id: str, by: Attribution, reason: ArchiveReason, force: bool) -> Archived:
        outcome = Archived.TURN_RUNNING
        for _ in range(_ATTEMPTS if force else 1):
            await self._runtimes.detach(session_id, "archived")
            outcome = await self._database.write(sessions.archive, session_id, reason, force, by, self._effects.now())
            if outcome is not Archived.TURN_RUNNING:
                break
        return outcome
