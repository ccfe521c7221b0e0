"""A text in the person's own editor."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

FALLBACK = "vi"


class NotEdited(Exception):
    """The text says why."""


async def edit_text(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The text as $VISUAL or $EDITOR leaves it.  Raises NotEdited."""
    chosen = environ.get("VISUAL") or environ.get("EDITOR") or FALLBACK
    try:
        words = shlex.split(chosen) or [FALLBACK]
    except ValueError as error:
        raise NotEdited(f"$EDITOR can't be read: {error}") from None
    with TemporaryDirectory(prefix="nerve-") as directory:
        return await _with_file(words, Path(directory) / "plan.md", text)


async def _with_file(words: list[str], path: Path, text: str) -> str:
    _write(path, text)
    try:
        done = await trio.run_process([*words, str(path)], stdin=None, check=False)
        if done.returncode != 0:
            raise NotEdited(f"{words[0]} has ended with {done.returncode}; nothing was sent")
        return _read(path)
    except OSError as error:
        raise NotEdited(f"{words[0]} can't be used: {error.strerror}; $EDITOR names another one") from None


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
