"""The only module of this package that looks at files.  Writes nothing; bounded reads of regular files only."""

import errno
import os
import stat
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nerve.config.findings import ConfigError

FILE_MAX_BYTES = 1024 * 1024
LINKS_SEARCHED_MAX = 20_000

Mode = Literal["personal", "worker"]


def read_text(path: Path) -> str | None:
    """The UTF-8 text of a regular file, or None when there is none.

    Raises ConfigError when something is there that can't be read: unreadable is not the same as missing.
    """
    try:
        # Non-blocking, so that a FIFO put in the file's place can't hang the start.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(f"{path}: is not a regular file")
        content = _read_bounded(descriptor)
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if len(content) > FILE_MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {FILE_MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None


def _read_bounded(descriptor: int) -> bytes:
    content = b""
    while len(content) <= FILE_MAX_BYTES and (piece := os.read(descriptor, FILE_MAX_BYTES + 1 - len(content))):
        content += piece
    return content


def is_there(path: Path) -> bool:
    """Whether ``path`` leads to anything.  Raises ConfigError when that can't be told."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from None
    return True


def is_directory(path: Path) -> bool:
    return is_there(path) and stat.S_ISDIR(os.stat(path).st_mode)


def others_may_read(path: Path) -> bool:
    return is_there(path) and bool(os.stat(path).st_mode & 0o077)


def resolved(path: Path) -> Path:
    """``path`` without links; parts that don't exist are kept.  Raises ConfigError on a loop of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise ConfigError(f"{path}: can't be resolved") from None


def resolves_inside(path: Path, root: Path) -> bool:
    """Whether ``path``, links followed, is ``root`` or below it.  ``root`` must be free of links."""
    return resolved(path).is_relative_to(root)


def link_out_of(directory: Path, root: Path) -> Path | None:
    """The first link at or below ``directory`` that leads out of ``root``, if any; links are not descended into."""
    left = LINKS_SEARCHED_MAX
    for parent, directories, files in os.walk(directory, followlinks=False):
        for name in (*directories, *files):
            left -= 1
            if left < 0:
                raise ConfigError(f"{directory}: holds more than {LINKS_SEARCHED_MAX} entries")
            path = Path(parent, name)
            if path.is_symlink() and not resolves_inside(path, root):
                return path
    return None


def workspace_mode(workspace: Path) -> Mode | None:
    """Derived from the files, never stored (config.md section 5); None while there is no ``SOUL.md``."""
    if is_there(workspace / "TASK.md"):
        return "worker"
    if not is_there(workspace / "SOUL.md"):
        return None
    personal = any(is_there(workspace / name) for name in ("USER.md", "IDENTITY.md"))
    return "personal" if personal else "worker"


def has_git_remote(workspace: Path) -> bool:
    """Whether the workspace is the root of a git repository (or of a worktree) that names a remote."""
    git = workspace / ".git"
    if not is_there(git):
        return False
    if not is_directory(git):
        pointer = read_text(git) or ""
        git = workspace / pointer.partition("gitdir:")[2].strip()
        git = git / (read_text(git / "commondir") or "").strip()
    return '[remote "' in (read_text(git / "config") or "")


def knows_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
