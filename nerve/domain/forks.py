"""Rules of forks: what one is called, where it is listed, and how its anchor is named."""

from nerve.contract.generated.entities import SessionSource

LONGEST_TITLE = 500
LONGEST_NUMBER = 18  # digits of what SQLite can number
NO_ROW = 0


def fork_title(wanted: str | None, source_title: str) -> str:
    return (wanted or "").strip() or f"Fork of {source_title}"[:LONGEST_TITLE].rstrip()


def fork_source(source: SessionSource) -> SessionSource:
    """As its source; only ``main`` is the system's own, and what a person makes of it is a conversation like others."""
    return SessionSource.WEB if source is SessionSource.SYSTEM else source


def message_number(text: str | None) -> int | None:
    """The row that an anchor names; None: no anchor.  What can't be a number becomes one that no row has."""
    if text is None:
        return None
    if len(text) > LONGEST_NUMBER or not (text.isascii() and text.isdigit()):
        return NO_ROW
    return int(text)
