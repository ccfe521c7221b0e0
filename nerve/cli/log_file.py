"""A daemon's log file kept to a bounded size: what is full becomes ``nerve.log.1``, and that is thrown away.

Whatever this process or a library writes to stdout and stderr goes where the lines go, before and after the change; no
signal is needed, and nobody who reads along misses a line.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

MAX_BYTES = 10 * 1024 * 1024  # of one file; there are two at most
STDERR = 2
STANDARD = (1, STDERR)
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def older(path: Path) -> Path:
    """Where the lines before those of ``path`` are."""
    return path.with_name(f"{path.name}.1")


def open_log(path: Path) -> int:
    """A descriptor to append to the file with, readable by its owner alone.  Raises OSError."""
    return os.open(path, FLAGS, 0o600)


class RotatingStderr(logging.StreamHandler[TextIO]):
    """Writes lines to stderr, which is the file ``path``, and begins a new one when that has ``max_bytes``."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        super().__init__(sys.stderr)
        self._path = path
        self._step = self._full = max_bytes

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        with contextlib.suppress(OSError):
            size = os.fstat(STDERR).st_size
            if size >= self._full:
                self._full = size + self._step  # where it can't be done now, it is not tried with every line
                begin_anew(self._path)
                self._full = self._step


def is_stderr(path: Path) -> bool:
    """Whether stderr is this file, and nobody else's business."""
    try:
        ours, found = os.fstat(STDERR), os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(ours, found)


def begin_anew(path: Path, descriptors: Sequence[int] = STANDARD) -> None:
    """Have the descriptors that are one full file write to an empty one of this name.  Raises OSError.

    ``path`` names it, unless another process (a second start, that was refused) has put a new one in its place already.
    """
    full = os.fstat(descriptors[-1])
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(full, os.lstat(path)):
            _replace(path)
    fresh = open_log(path)
    try:
        for descriptor in descriptors:
            if os.path.samestat(os.fstat(descriptor), full):
                os.dup2(fresh, descriptor)
    finally:
        os.close(fresh)


def _replace(path: Path) -> None:
    """Put an empty file in its place; there is one of this name all the time."""
    spare, kept = path.with_name(f".{path.name}.new"), path.with_name(f".{path.name}.old")
    for left in (spare, kept):
        left.unlink(missing_ok=True)
    try:
        os.close(open_log(spare))
        os.link(path, kept)
        os.replace(kept, older(path))
        os.replace(spare, path)
    finally:
        for left in (spare, kept):
            left.unlink(missing_ok=True)
