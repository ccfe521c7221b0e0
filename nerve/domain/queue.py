"""Rules of the turn queue (gaps.md section 6)."""

from datetime import timedelta

PREVIEW = 120
DUPLICATE_MEMORY = timedelta(minutes=10)
CANCELLABLE_SOURCES = frozenset({"web", "api"})


def preview(content: str) -> str:
    """The first 120 characters in one line."""
    return " ".join(content[: PREVIEW * 4].split())[:PREVIEW]


def may_cancel(entry_actor: str | None, entry_source: str, caller_actor: str | None) -> bool:
    """Only one's own message, and only one that a person typed into a client."""
    return entry_source in CANCELLABLE_SOURCES and entry_actor is not None and entry_actor == caller_actor
