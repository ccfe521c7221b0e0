"""The tail of a shell's output file, read only where command-line agents keep such files.

That is the directory ``claude-<uid>`` below a temporary directory.  It has to be ours and closed to everybody else, and
nothing on the way down from it may be a link: anybody can put things into a shared temporary directory.
"""

import os
import stat
import tempfile
from pathlib import Path

from attrs import frozen

DIRECTORIES = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@frozen
class Tail:
    """``size`` is the whole file's."""

    text: str = ""
    size: int = 0
    truncated: bool = False
    available: bool = False


def private_directories() -> tuple[Path, ...]:
    """Where output files may be."""
    name = f"claude-{os.getuid()}"
    return tuple(dict.fromkeys((Path(tempfile.gettempdir()).resolve() / name, Path("/tmp") / name)))


def output_tail(path: str | None, task_id: str | None, tail_bytes: int) -> Tail:
    """The last ``tail_bytes`` of the file, which begin with a whole character; not available where the rules forbid it.

    Blocks.
    """
    if path is None or task_id is None or Path(path).name != f"{task_id}.output":
        return Tail()
    for root in private_directories():
        inside = _parts_below(root, path)
        if inside:
            try:
                return _read(root, inside, tail_bytes)
            except OSError:
                return Tail()
    return Tail()


def _parts_below(root: Path, path: str) -> tuple[str, ...]:
    """The names on the way from ``root`` to the file; nothing for a path that leads elsewhere."""
    try:
        parts = Path(path).relative_to(root).parts
    except ValueError:
        return ()
    return () if ".." in parts else parts


def _read(root: Path, inside: tuple[str, ...], tail_bytes: int) -> Tail:
    here = os.open(root, DIRECTORIES)
    try:
        if not _is_ours(here):
            return Tail()
        for name in inside[:-1]:
            below = os.open(name, DIRECTORIES, dir_fd=here)
            os.close(here)
            here = below
        file = os.open(inside[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode):
            return Tail()
        opened.seek(max(0, found.st_size - tail_bytes))
        data = opened.read(tail_bytes)
    return Tail(_text(data, cut=found.st_size > tail_bytes), found.st_size, found.st_size > tail_bytes, True)


def _is_ours(directory: int) -> bool:
    found = os.fstat(directory)
    return found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700


def _text(data: bytes, *, cut: bool) -> str:
    """What a cut has left of a character at its beginning is dropped; what isn't UTF-8 at all is replaced."""
    start = 0
    while cut and start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "replace")
