"""Taking files away.  Everything here blocks, and goes on where one can't be taken away."""

import os
import re
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress

from nerve.files.beneath import Barred, Tree


def remove(tree: Tree, paths: Iterable[tuple[str, ...]]) -> None:
    """Each file, and the directory around it if that is left empty."""
    for parts in paths:
        with suppress(OSError, Barred), tree.directory(parts[:-1]) as parent:
            os.unlink(parts[-1], dir_fd=parent)
        if len(parts) > 1:
            with suppress(OSError, Barred), tree.directory(parts[:-2]) as above:
                os.rmdir(parts[-2], dir_fd=above)


def remove_strays(tree: Tree, above: str, named: re.Pattern[str], known: Collection[str], before: float) -> None:
    """Files in the directories in ``above`` that have such a name, are not ``known`` and are older than that."""
    strays: list[tuple[str, ...]] = []
    with suppress(OSError, Barred):
        for folder in _folders(tree, above):
            with suppress(OSError, Barred), tree.directory((above, folder)) as parent:
                for name in os.listdir(parent):
                    unknown = named.fullmatch(name) and f"{above}/{folder}/{name}" not in known
                    if unknown and _is_older(parent, name, before):
                        strays.append((above, folder, name))
    remove(tree, strays)


def _folders(tree: Tree, above: str) -> list[str]:
    with tree.directory((above,)) as opened:
        return [name for name in os.listdir(opened) if stat.S_ISDIR(os.lstat(name, dir_fd=opened).st_mode)]


def _is_older(parent: int, name: str, before: float) -> bool:
    status = os.lstat(name, dir_fd=parent)
    return stat.S_ISREG(status.st_mode) and status.st_mtime < before
