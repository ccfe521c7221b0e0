"""The files that shells write to, where command-line agents keep theirs: ``claude-<uid>`` below the temporary
directory, ours and closed to everybody else.

Every function blocks.
"""

import logging
import os
import shutil
import stat
import tempfile
from pathlib import Path

log = logging.getLogger(__name__)

OPEN = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def root() -> Path:
    return Path(tempfile.gettempdir()).resolve() / f"claude-{os.getuid()}"


def create(native_id: str, task_id: str) -> Path | None:
    """An empty file for the conversation's task; None, with a line in the log, where there is no safe place for it."""
    try:
        directory = _private(root(), "nerve", _name(native_id), "tasks")
        path = directory / f"{task_id}.output"
        os.close(os.open(path, OPEN | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        log.warning("the output of a shell can't be kept: %s", error)
        return None
    return path


def append(path: Path, data: bytes) -> None:
    """Verbatim.  A file that is gone stays gone; what the disk refuses is lost, with a line in the log."""
    try:
        handle = os.open(path, OPEN)
    except OSError:
        return
    try:
        with os.fdopen(handle, "ab") as file:
            file.write(data)
    except OSError as error:
        log.warning("output of a shell is lost: %s", error)


def forget(native_id: str) -> None:
    """Remove what the conversation's shells have written; nothing there is fine."""
    shutil.rmtree(root() / "nerve" / _name(native_id), ignore_errors=True)


def _name(native_id: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in native_id)


def _private(base: Path, *names: str) -> Path:
    """The directory below ``base``, made where it is missing.  Raises OSError unless all of it is ours alone."""
    directory = base
    for name in ("", *names):
        directory = directory / name if name else directory
        try:
            os.mkdir(directory, 0o700)
        except FileExistsError:
            found = os.lstat(directory)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700:
                raise PermissionError(f"{directory} is not a directory of ours alone") from None
    return directory
