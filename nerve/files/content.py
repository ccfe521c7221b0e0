"""What a file holds, as far as it can be had."""

import os
from pathlib import Path

from attrs import field, frozen

from nerve.files.beneath import Barred, Obstacle, Tree


@frozen
class Content:
    """``data`` is None for a file that is missing, or is there and can't be had (too big, a link, not readable)."""

    exists: bool
    data: bytes | None = field(default=None, repr=False)


MISSING = Content(False)
UNREADABLE = Content(True)


def content_of(path: Path, root: Path, most_bytes: int) -> Content:
    """The content of ``path``, opened from ``root`` if it lies below it, else from the top.  Blocks."""
    tree = Tree(root if path.is_relative_to(root) else Path("/"))
    try:
        descriptor = tree.open(tree.parts(str(path)))
    except FileNotFoundError:
        return MISSING
    except OSError:
        return UNREADABLE
    except Barred as barred:
        return MISSING if barred.obstacle is Obstacle.NO_DIRECTORY else UNREADABLE
    with os.fdopen(descriptor, "rb") as file:
        try:
            data = file.read(most_bytes + 1)
        except OSError:
            return UNREADABLE
    return Content(True, data) if len(data) <= most_bytes else UNREADABLE
