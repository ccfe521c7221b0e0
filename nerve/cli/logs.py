"""Showing the log: its last lines, and what is added to it."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

LAST_LINES = 50
_STEP_SECONDS = 0.25
_BLOCK_BYTES = 64 * 1024


def last_lines(path: Path, count: int = LAST_LINES) -> tuple[bytes, int]:
    """The last ``count`` lines and the offset behind them.  Raises OSError."""
    with path.open("rb") as file:
        end = begin = file.seek(0, os.SEEK_END)
        tail = b""
        while begin > 0 and tail.count(b"\n") <= count:
            step = min(_BLOCK_BYTES, begin)
            begin -= step
            file.seek(begin)
            tail = file.read(step) + tail
    return b"".join(tail.splitlines(keepends=True)[-count:]), end


def follow(path: Path, offset: int, sleep: Callable[[float], None] = time.sleep) -> Iterator[bytes]:
    """What is added behind ``offset``, for ever; a file that was cut or replaced is read from its beginning.

    Raises OSError when the file is gone.
    """
    while True:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < offset:
                offset = 0
            file.seek(offset)
            for block in _blocks(file):
                offset += len(block)
                yield block
        sleep(_STEP_SECONDS)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK_BYTES):
        yield block
