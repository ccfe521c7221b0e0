"""Snapshots before a session's first change of a file, and what has changed since."""

from pathlib import Path

import apsw
import trio
from attrs import field, frozen

from nerve.contract.generated.files import FileDiff, ModifiedFile, ModifiedFiles, ModifiedSummary
from nerve.domain.file_changes import Version, file_diff, short_path, stats_of, status_of
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.files.content import content_of
from nerve.store import snapshots
from nerve.store.database import Database
from nerve.store.snapshots import Snapshot, SnapshotName

MOST_BYTES = 1024 * 1024  # of a file that is kept or compared


async def keep_before_change(database: Database, effects: Effects, session_id: str, path: Path) -> None:
    """Store what ``path`` holds unless the session has changed it before; it is on disk when this returns."""
    cwd = await database.read(snapshots.needed, session_id, str(path))
    if cwd is None:
        return
    before = await effects.blocking(_version, path, Path(cwd))

    def keep(db: apsw.Connection) -> None:
        now = effects.now()
        snapshots.keep(db, session_id, str(path), existed=before.exists, content=before.data, now=now)

    await database.write(keep)


def _version(path: Path, root: Path) -> Version:
    content = content_of(path, root, MOST_BYTES)
    return Version(content.exists, content.data)


@frozen(eq=False)
class FileChanges:
    """Compares one file at a time, off the event loop; cancelled, it ends with the file at hand."""

    _database: Database
    _effects: Effects
    _workspace: Path
    _turns: trio.CapacityLimiter = field()  # comparing keeps a core busy, so all readers take turns

    async def modified(self, session_id: str) -> ModifiedFiles:
        """Raises SESSION_NOT_FOUND."""
        files = []
        for name in await self._database.read_large(snapshots.names, session_id):
            try:
                snapshot = await self._database.read_large(snapshots.get, session_id, name.path)
            except NerveError as gone:
                if gone.code is not ErrorCode.SNAPSHOT_NOT_FOUND:
                    raise
                continue
            changed = await self._effects.blocking(self._compare, name, snapshot, limiter=self._turns)
            if changed is not None:
                files.append(changed)
        summary = ModifiedSummary(
            total_files=len(files),
            total_additions=sum(file.stats.additions for file in files),
            total_deletions=sum(file.stats.deletions for file in files),
        )
        return ModifiedFiles(files=files, summary=summary)

    def _compare(self, name: SnapshotName, snapshot: Snapshot) -> ModifiedFile | None:
        before = Version(snapshot.existed, snapshot.content)
        after = _version(Path(name.path), Path(snapshot.cwd))
        status = status_of(before, after)
        if status is None:
            return None
        return ModifiedFile(
            path=name.path,
            short_path=short_path(name.path, str(self._workspace)),
            status=status,
            stats=stats_of(before, after),
            created_at=name.created_at,
        )

    async def diff(self, session_id: str, path: str, context: int) -> FileDiff:
        """Raises SESSION_NOT_FOUND and SNAPSHOT_NOT_FOUND."""
        snapshot = await self._database.read_large(snapshots.get, session_id, path)
        return await self._effects.blocking(self._diff, path, snapshot, context, limiter=self._turns)

    def _diff(self, path: str, snapshot: Snapshot, context: int) -> FileDiff:
        before = Version(snapshot.existed, snapshot.content)
        after = _version(Path(path), Path(snapshot.cwd))
        return file_diff(path, str(self._workspace), before, after, context)
