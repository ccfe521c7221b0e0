"""Instants as the database keeps them: UTC, ISO 8601 with milliseconds and Z; text order is time order."""

from datetime import UTC, datetime
from functools import lru_cache


def to_text(instant: datetime) -> str:
    """``2026-01-02T03:04:05.678Z``; microseconds are cut off.  ValueError for a naive instant."""
    if instant.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


@lru_cache(maxsize=4096)  # the same rows are read again and again, and their instants repeat
def from_text(text: str) -> datetime:
    """The aware UTC instant that ``to_text`` wrote.  ValueError for text of another form."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"not an instant: {text!r}")
    return instant.astimezone(UTC)


def to_text_or_none(instant: datetime | None) -> str | None:
    return None if instant is None else to_text(instant)


def from_text_or_none(text: str | None) -> datetime | None:
    return None if text is None else from_text(text)
