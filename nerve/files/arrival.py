"""A file that grows out of sight and then appears whole.  Everything here blocks."""

import os
from contextlib import suppress

from nerve.files.beneath import Tree

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def unfinished(name: str) -> str:
    """What a file is called while it grows."""
    return f".{name}.part"


class Arrival:
    """``name`` is one that nobody else uses.  Either ``settle`` or ``discard`` ends it."""

    def __init__(self, tree: Tree, folder: tuple[str, ...], name: str) -> None:
        """Raises Barred and OSError."""
        self._name = name
        self._there = unfinished(name)
        with tree.directory(folder, create=True) as parent:
            self._parent = os.dup(parent)
        try:
            self._file = os.open(self._there, _NEW, 0o600, dir_fd=self._parent)
        except OSError:
            os.close(self._parent)
            raise
        self._open = True

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def settle(self) -> None:
        """Have it on disk under its name."""
        os.fsync(self._file)
        os.rename(self._there, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        self._there = self._name
        os.fsync(self._parent)

    def close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._file)
            os.close(self._parent)

    def discard(self) -> None:
        """Leave nothing of it, whatever it has come to."""
        if self._open:
            with suppress(OSError):
                os.unlink(self._there, dir_fd=self._parent)
            self.close()
