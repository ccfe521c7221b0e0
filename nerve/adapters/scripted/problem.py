"""What is wrong with a play, and where."""

from collections.abc import Iterable


class PlayError(Exception):
    """A play that can't be played.  ``pointer`` is a JSON pointer into the play, empty for the play itself.

    Reads as decisions D50 say: ``/1: unknown step 'dance'``.
    """

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer}: {reason}" if pointer else reason)
        self.pointer = pointer
        self.reason = reason


def pointer_to(path: Iterable[str | int]) -> str:
    """The JSON pointer (RFC 6901) of a path of keys and indexes."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def shown(key: str) -> str:
    """A key as an error shows it: on one line, and not at any length."""
    line = " ".join(key.split())
    return line if len(line) <= 100 else line[:100] + "..."
