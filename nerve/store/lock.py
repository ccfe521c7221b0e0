"""One daemon per home: an operating system lock on ``$NERVE_HOME/nerve.lock``, freed by the kernel at any death."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class HomeLocked(Exception):
    """Another process serves this home; ``pid`` is its number if it has told."""

    def __init__(self, home: Path, pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{home} is in use by {holder}")
        self.home = home
        self.pid = pid


@contextmanager
def home_lock(home: Path) -> Iterator[None]:
    """Hold the home; HomeLocked at once if somebody else does.  The file stays, its content is the holder's pid.

    Child processes do not inherit the lock.
    """
    descriptor = os.open(home / "nerve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeLocked(home, _holder(descriptor)) from None
        _write(descriptor, str(os.getpid()))
        yield
        # Not unlinked: a process that waits with the old file open would lock a file nobody else sees.
        _write(descriptor, "")
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    if not text.isdecimal():
        return None
    try:
        os.kill(int(text), 0)
    except ProcessLookupError:
        return None  # left by a holder that was killed; the present one has not written yet
    except PermissionError:
        pass
    return int(text)


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode("ascii"), 0)
