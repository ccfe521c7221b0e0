"""Real files for the play's file tools: only inside the working directory, and never through a link.

Every function blocks.  Paths are walked from an open directory, one component after the other, so that a link put in
place meanwhile is refused too.  A change is whole or not there at all.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from attrs import frozen

MAX_EDIT_BYTES = 16 * 1024 * 1024
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FileProblem(Exception):
    """Why a file tool's result is an error; the text is for people."""


@frozen
class Place:
    """A file inside the working directory; it need not exist.  ``root`` is absolute, ``parts`` has no dots."""

    root: Path
    parts: tuple[str, ...]
    closed: tuple[Path, ...] = ()  # directories in which nothing may be changed, wherever the root lies

    @property
    def path(self) -> Path:
        return self.root.joinpath(*self.parts)


def place(cwd: Path, path: str, closed: tuple[Path, ...] = ()) -> Place:
    """Where ``path``, relative to ``cwd`` or absolute, lies.  Raises FileProblem outside of ``cwd``.  Doesn't block.

    ``closed`` directories are looked at when the place is used.
    """
    if "\0" in path:
        raise FileProblem("a path holds no NUL character")
    root = os.path.normpath(cwd)
    whole = os.path.normpath(os.path.join(root, path))
    if whole != root and not whole.startswith(root.rstrip("/") + "/"):
        raise FileProblem(f"{whole} is outside of the working directory {root}")
    if whole == root or path.endswith("/"):
        raise FileProblem(f"{whole} is a directory")
    return Place(Path(root), Path(whole).relative_to(root).parts, closed)


def check_writable(at: Place) -> None:
    """Raises FileProblem where ``write`` would; changes nothing."""
    with _reasons(at), _parent(at) as parent:
        if parent is not None:
            _status(parent, at)


def check_edit(at: Place, old: str) -> None:
    """Raises FileProblem where ``edit`` would; changes nothing."""
    with _reasons(at), _parent(at) as parent:
        _edited(_content(parent, at), old, "", at)


def check_deletable(at: Place) -> None:
    """Raises FileProblem where ``delete`` would; changes nothing."""
    with _reasons(at), _parent(at) as parent:
        _existing(parent, at)


def plan_file(plans: Path, session_id: str) -> Place:
    """Where a session's plan lies; its directory is made with the first plan."""
    return Place(plans.parent, (plans.name, quote(session_id, safe=":") + ".md"))


def read(at: Place) -> str:
    """The text of a file; what is no UTF-8 is replaced."""
    with _reasons(at), _parent(at) as parent:
        return _content(parent, at).decode(errors="replace")


def write(at: Place, content: str, scratch: str) -> bool:
    """Write the whole file, missing parents too; gives whether it is new.  ``scratch`` is a name nobody else uses."""
    with _reasons(at), _parent(at, create=True) as parent:
        assert parent is not None
        before = _status(parent, at)
        _replace(parent, at.parts[-1], content.encode(), before, scratch)
        return before is None


def edit(at: Place, old: str, new: str, scratch: str) -> None:
    """Replace the one occurrence of ``old``."""
    with _reasons(at), _parent(at) as parent:
        before = _existing(parent, at)
        content = _edited(_content(parent, at), old, new, at)
        assert parent is not None
        _replace(parent, at.parts[-1], content, before, scratch)


def delete(at: Place) -> None:
    with _reasons(at), _parent(at) as parent:
        _existing(parent, at)
        os.unlink(at.parts[-1], dir_fd=parent)


@contextmanager
def _reasons(at: Place) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileProblem(f"{at.path}: {os.strerror(error.errno or 0)}") from None
    except UnicodeEncodeError:
        raise FileProblem(f"{at.path}: the name can't be encoded") from None


@contextmanager
def _parent(at: Place, *, create: bool = False) -> Iterator[int | None]:
    """The open directory of the file; None if it is missing and not to be created."""
    _check_open(at)
    current = os.open(at.root, DIRECTORY)
    try:
        for depth, name in enumerate(at.parts[:-1], start=1):
            try:
                below = _enter(current, name, create=create)
            except FileNotFoundError:
                yield None
                return
            except NotADirectoryError:
                raise FileProblem(_not_directory(current, name, at.root.joinpath(*at.parts[:depth]))) from None
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _check_open(at: Place) -> None:
    """No link below the root is ever followed, so the root's real path says where the file really lies."""
    real = os.path.join(os.path.realpath(at.root), *at.parts)
    for directory in at.closed:
        barred = os.path.realpath(directory)
        if real == barred or real.startswith(barred.rstrip("/") + "/"):
            raise FileProblem(f"{at.path} belongs to the server, and no play may change it")


def _enter(parent: int, name: str, *, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
    try:
        return os.open(name, DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        # Which error a link gives depends on the system; ask what is there.
        if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
            raise NotADirectoryError from None
        raise


def _not_directory(parent: int, name: str, path: Path) -> str:
    linked = stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode)
    return f"{path} is a link, and links are not followed" if linked else f"{path} is not a directory"


def _status(parent: int, at: Place) -> os.stat_result | None:
    """The regular file that is there, or None; raises FileProblem for anything else."""
    try:
        status = os.lstat(at.parts[-1], dir_fd=parent)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise FileProblem(f"{at.path} is a link, and links are not followed")
    if stat.S_ISDIR(status.st_mode):
        raise FileProblem(f"{at.path} is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise FileProblem(f"{at.path} is not a regular file")
    return status


def _existing(parent: int | None, at: Place) -> os.stat_result:
    status = None if parent is None else _status(parent, at)
    if status is None:
        raise FileProblem(f"{at.path} does not exist")
    return status


def _content(parent: int | None, at: Place) -> bytes:
    _existing(parent, at)
    handle = os.open(at.parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    with os.fdopen(handle, "rb") as file:
        content = file.read(MAX_EDIT_BYTES + 1)
    if len(content) > MAX_EDIT_BYTES:
        raise FileProblem(f"{at.path} is larger than {MAX_EDIT_BYTES // 1024 // 1024} MiB")
    return content


def _edited(content: bytes, old: str, new: str, at: Place) -> bytes:
    """``content`` with its one occurrence of ``old`` replaced; overlapping occurrences count as several."""
    wanted = old.encode()
    if not wanted:
        raise FileProblem("the text to replace is empty")
    first = content.find(wanted)
    if first < 0:
        raise FileProblem(f"the text to replace does not occur in {at.path}")
    if content.find(wanted, first + 1) >= 0:
        raise FileProblem(f"the text to replace occurs more than once in {at.path}")
    return content[:first] + new.encode() + content[first + len(wanted) :]


def _replace(parent: int, name: str, content: bytes, before: os.stat_result | None, scratch: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(scratch, flags, 0o666, dir_fd=parent)
    try:
        with os.fdopen(handle, "wb") as file:
            if before is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(scratch, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(scratch, dir_fd=parent)
        raise
