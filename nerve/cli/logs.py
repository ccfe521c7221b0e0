"""Showing the log: its last lines, and what is added to it."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from attrs import frozen

from nerve.cli.log_file import older

LAST_LINES = 50
_STEP_SECONDS = 0.25
_BLOCK_BYTES = 64 * 1024


@frozen
class Place:
    """Where a reader is: in which file, by device and number, and behind which byte."""

    file: tuple[int, int]
    offset: int


def last_lines(path: Path, count: int = LAST_LINES) -> tuple[bytes, Place]:
    """The last ``count`` lines, those of the file before this one included, and the place behind them.

    Raises OSError.
    """
    with path.open("rb") as file:
        lines, end = _tail(file, count)
        place = Place(_identity(file), end)
    if len(lines) < count:
        for before in _opened(older(path)):
            if _identity(before) != place.file:
                lines = _tail(before, count - len(lines))[0] + lines
    return b"".join(lines), place


def _tail(file: BinaryIO, count: int) -> tuple[list[bytes], int]:
    end = begin = file.seek(0, os.SEEK_END)
    tail = b""
    while begin > 0 and tail.count(b"\n") <= count:
        step = min(_BLOCK_BYTES, begin)
        begin -= step
        file.seek(begin)
        tail = file.read(step) + tail
    return tail.splitlines(keepends=True)[-count:], end


def follow(path: Path, place: Place, sleep: Callable[[float], None] = time.sleep) -> Iterator[bytes]:
    """What is added behind ``place``, for ever; a file that was cut is read from its beginning.

    Where another file has been begun, the rest of the one before comes first.  Raises OSError when the file is gone.
    """
    while True:
        with path.open("rb") as file:
            now = _identity(file)
            if now != place.file:
                for before in _opened(older(path)):
                    if _identity(before) != now:
                        yield from _added(before, place.offset if _identity(before) == place.file else 0)
                place = Place(now, 0)
            yield from _added(file, place.offset if place.offset <= os.fstat(file.fileno()).st_size else 0)
            place = Place(now, file.tell())
        sleep(_STEP_SECONDS)


def _added(file: BinaryIO, offset: int) -> Iterator[bytes]:
    file.seek(offset)
    while block := file.read(_BLOCK_BYTES):
        yield block


def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, if there is one."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        yield file


def _identity(file: BinaryIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino
