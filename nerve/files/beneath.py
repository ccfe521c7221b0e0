"""Opening what lies below a directory, and nothing else.

A path is walked from its open root, one component after the other, and no link is followed: a link put in place between
the look and the opening is refused like any other.  Everything here blocks, except ``Tree.parts``.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from attrs import frozen

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

Identity = tuple[int, int]  # device and inode


class Obstacle(Enum):
    """Why a path is not opened."""

    OUTSIDE = "outside"
    LINK = "link"
    NO_DIRECTORY = "no directory"
    NO_FILE = "no regular file"
    CLOSED = "closed"
    FOREIGN = "not ours alone"


class Barred(Exception):
    """``path`` is not opened, whatever is there."""

    def __init__(self, obstacle: Obstacle, path: Path) -> None:
        super().__init__(f"{path}: {obstacle.value}")
        self.obstacle = obstacle
        self.path = path


@frozen
class Tree:
    """A directory and all below it, except what is ``closed``, by whatever name that is reached.

    ``root`` is absolute and trusted: links on the way to it are followed.  A ``private`` one lies where anybody can put
    things: it must be no link itself, ours, and closed to everybody else.
    """

    root: Path
    closed: tuple[Path, ...] = ()
    private: bool = False

    def parts(self, path: str) -> tuple[str, ...]:
        """The components below the root of a path that is absolute or relative to it.  Raises Barred OUTSIDE.

        ``..`` is refused even where it would stay inside, as is what no file name can hold.  An empty result is the
        root itself.
        """
        inner = path
        if path.startswith("/"):
            root = os.path.normpath(self.root).rstrip("/")
            if path != root and not path.startswith(root + "/"):
                raise Barred(Obstacle.OUTSIDE, Path(path))
            inner = path[len(root) :]
        parts = tuple(part for part in inner.split("/") if part not in ("", "."))
        if ".." in parts or "\0" in path or not _encodable(path):
            raise Barred(Obstacle.OUTSIDE, Path(path))
        return parts

    def path(self, parts: tuple[str, ...]) -> Path:
        return self.root.joinpath(*parts)

    @contextmanager
    def directory(self, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
        """The open directory; with ``create`` made, and on disk, if it is missing, its parents too.

        Raises Barred, and OSError (FileNotFoundError where nothing is).
        """
        closed = self._closed_identities()
        current = self._open_root()
        try:
            for depth, name in enumerate(parts, start=1):
                below = _enter(current, name, self.path(parts[:depth]), create=create)
                os.close(current)
                current = below
                if _identity(os.fstat(current)) in closed:
                    raise Barred(Obstacle.CLOSED, self.path(parts[:depth]))
            yield current
        finally:
            os.close(current)

    def open(self, parts: tuple[str, ...]) -> int:
        """A regular file, open for reading; the caller closes it.  Raises as ``directory`` does."""
        if not parts:
            raise Barred(Obstacle.NO_FILE, self.root)
        closed = self._closed_identities()
        with self.directory(parts[:-1]) as parent:
            descriptor = open_file(parent, parts[-1], self.path(parts))
        if _identity(os.fstat(descriptor)) in closed:
            os.close(descriptor)
            raise Barred(Obstacle.CLOSED, self.path(parts))
        return descriptor

    def _open_root(self) -> int:
        if not self.private:
            return os.open(self.root, DIRECTORY)
        descriptor = os.open(self.root, DIRECTORY | os.O_NOFOLLOW)
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) != 0o700:
            os.close(descriptor)
            raise Barred(Obstacle.FOREIGN, self.root)
        return descriptor

    def _closed_identities(self) -> frozenset[Identity]:
        """What is closed as it is known by now.  Raises Barred if the root itself lies in it."""
        found = set()
        real = Path(os.path.realpath(self.root))
        for path in self.closed:
            if real.is_relative_to(os.path.realpath(path)):
                raise Barred(Obstacle.CLOSED, self.root)
            with suppress(OSError):
                found.add(_identity(os.stat(path)))
        return frozenset(found)


def open_file(parent: int, name: str, path: Path) -> int:
    """The regular file of that name in an open directory; ``path`` is for what is told.  Raises Barred and OSError."""
    try:
        descriptor = os.open(name, READING | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        # Which error a link, a socket or a device gives depends on the system; ask what is there.
        _check_regular(os.lstat(name, dir_fd=parent), path)
        raise
    try:
        _check_regular(os.fstat(descriptor), path)
    except Barred:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Barred(Obstacle.LINK, path)
    if not stat.S_ISREG(status.st_mode):
        raise Barred(Obstacle.NO_FILE, path)


def _enter(parent: int, name: str, path: Path, *, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
            os.fsync(parent)
    try:
        return os.open(name, DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        status = os.lstat(name, dir_fd=parent)
        if stat.S_ISLNK(status.st_mode):
            raise Barred(Obstacle.LINK, path) from None
        if not stat.S_ISDIR(status.st_mode):
            raise Barred(Obstacle.NO_DIRECTORY, path) from None
        raise


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _encodable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
