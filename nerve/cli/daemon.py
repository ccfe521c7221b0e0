"""The daemon as other processes see it: its pid file, what it says about itself, and how it is ended."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

import attrs
from attrs import frozen

from nerve.config import Paths

STOP_SECONDS = 15.0
_KILLED_SECONDS = 5.0
_STEP_SECONDS = 0.1
_RECORD_MAX_BYTES = 4096


@frozen(kw_only=True)
class DaemonRecord:
    """What a daemon writes down once it listens.  ``host`` and ``port`` are the options that it was started with."""

    pid: int
    address: str
    generation: str
    host: str | None = None
    port: int | None = None

    @property
    def chosen_port(self) -> int | None:
        """The port to start it with again: "any" is the one that it got, so that its address stays."""
        return urlsplit(self.address).port if self.port == 0 else self.port


def record_file(paths: Paths) -> Path:
    return paths.home / "nerve.run.json"


@contextmanager
def announced(paths: Paths, record: DaemonRecord) -> Iterator[None]:
    """Pid file and record, for as long as the block lasts.  Only for whoever holds the home's lock."""
    _replace(record_file(paths), json.dumps(attrs.asdict(record)) + "\n")
    _replace(paths.pid_file, f"{record.pid}\n")
    try:
        yield
    finally:
        for path in (paths.pid_file, record_file(paths)):
            path.unlink(missing_ok=True)


def running_pid(paths: Paths) -> int | None:
    """The daemon of this home, or None.  A pid file that nobody stands behind any more is removed."""
    pid = _pid_in(paths.pid_file)
    if pid is not None:
        if _is_daemon(pid, paths.lock_file):
            return pid
        # Only the file that was looked at: another daemon may have written its own meanwhile.
        if _pid_in(paths.pid_file) == pid:
            paths.pid_file.unlink(missing_ok=True)
    # One that is still starting has only locked the home.
    holder = _pid_in(paths.lock_file)
    return holder if holder is not None and _is_daemon(holder, paths.lock_file) else None


def record_of(paths: Paths, pid: int) -> DaemonRecord | None:
    """What the daemon with this pid has written down; None while it doesn't listen yet."""
    try:
        with record_file(paths).open("rb") as file:
            found = json.loads(file.read(_RECORD_MAX_BYTES))
        record = DaemonRecord(**found)
    except (OSError, ValueError, TypeError):
        return None
    return record if record.pid == pid else None


class Ended(Enum):
    STOPPED = "stopped"
    KILLED = "killed"
    STILL_THERE = "still there"


def terminate(
    pid: int,
    paths: Paths,
    *,
    seconds: float = STOP_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Ended:
    """Ask the daemon to end, and kill it if it has not within ``seconds``.  Raises PermissionError."""
    if not _signal(pid, signal.SIGTERM) or _gone(pid, paths, seconds, sleep):
        return Ended.STOPPED
    if not _signal(pid, signal.SIGKILL) or _gone(pid, paths, _KILLED_SECONDS, sleep):
        return Ended.KILLED
    return Ended.STILL_THERE


def _gone(pid: int, paths: Paths, seconds: float, sleep: Callable[[float], None]) -> bool:
    for _ in range(round(seconds / _STEP_SECONDS)):
        if not _is_daemon(pid, paths.lock_file):
            return True
        sleep(_STEP_SECONDS)
    return not _is_daemon(pid, paths.lock_file)


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _is_daemon(pid: int, lock_file: Path) -> bool:
    """Whether a process with this number is there and is a daemon of this home.

    Numbers are used again: the process counts only while it has the home's lock file open, where the system tells.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        wanted = os.stat(lock_file)
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return True
    except FileNotFoundError:
        return not os.path.isdir("/proc/self/fd") and lock_file.exists()
    return any(_same_file(f"/proc/{pid}/fd/{name}", wanted) for name in descriptors)


def _same_file(path: str, wanted: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)
    return False


def _pid_in(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            text = file.read(32).decode("ascii", "replace").strip()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)
