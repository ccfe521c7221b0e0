"""The tail of a shell's output file, read only where command-line agents keep such files.

That is the directory ``claude-<uid>`` below a temporary directory.  It has to be ours and closed to everybody else, and
nothing on the way down from it may be a link: anybody can put things into a shared temporary directory.
"""

import os
import tempfile
from pathlib import Path

from attrs import frozen

from nerve.files.beneath import Barred, Tree


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
        if path.startswith(f"{root}/"):
            tree = Tree(root, private=True)
            try:
                return _read(tree.open(tree.parts(path)), tail_bytes)
            except (OSError, Barred):
                break
    return Tail()


def _read(descriptor: int, tail_bytes: int) -> Tail:
    with os.fdopen(descriptor, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        opened.seek(max(0, size - tail_bytes))
        data = opened.read(tail_bytes)
    return Tail(_text(data, cut=size > tail_bytes), size, size > tail_bytes, True)


def _text(data: bytes, *, cut: bool) -> str:
    """What a cut has left of a character at its beginning is dropped; what isn't UTF-8 at all is replaced."""
    start = 0
    while cut and start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "replace")
