"""Files of the workspace and of sessions' working directories, for people to save."""

from pathlib import Path, PurePosixPath

from attrs import frozen

from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.files.beneath import Barred, Obstacle, Tree
from nerve.files.opened import OpenedFile
from nerve.store import sessions
from nerve.store.database import Database

_NOTHING = (Obstacle.NO_FILE, Obstacle.NO_DIRECTORY)


@frozen(eq=False)
class Downloads:
    """``_closed`` is served by no name."""

    _database: Database
    _effects: Effects
    _workspace: Path
    _closed: tuple[Path, ...]

    async def open(self, path: str) -> OpenedFile:
        """Raises PATH_NOT_ALLOWED and FILE_NOT_FOUND."""
        root = await self._root(path)
        return await self._effects.blocking(_opened, Tree(root, self._closed), path)

    async def _root(self, path: str) -> Path:
        """The nearest allowed directory above an absolute path; the workspace if there is none, which refuses it."""
        if not path.startswith("/"):
            return self._workspace
        above = [str(parent) for parent in PurePosixPath(path).parents]
        allowed = {str(self._workspace), *await self._database.read_large(sessions.working_in, above)}
        return next((Path(parent) for parent in above if parent in allowed), self._workspace)


def _opened(tree: Tree, path: str) -> OpenedFile:
    try:
        return OpenedFile(tree.open(tree.parts(path)))
    except Barred as barred:
        missing = barred.obstacle in _NOTHING
        raise NerveError(ErrorCode.FILE_NOT_FOUND if missing else ErrorCode.PATH_NOT_ALLOWED) from None
    except PermissionError:
        raise NerveError(ErrorCode.PATH_NOT_ALLOWED) from None
    except OSError:
        raise NerveError(ErrorCode.FILE_NOT_FOUND) from None
