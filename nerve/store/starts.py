"""The starts of the daemon and how they ended; what the loop breaker (decisions D8) counts.

A start that was killed leaves no time of death, so a daemon that has lived for ``QUICK_SECONDS`` says so once.
"""

from datetime import datetime

import apsw
from attrs import frozen

from nerve.store.instants import to_text
from nerve.store.rows import Shape, insert, run, scalar

QUICK_SECONDS = 60
_KEPT = 1000
_SURVIVED = "survived_start"


@frozen
class UncleanStart:
    """``until`` is the beginning of the next start; None for the newest: it lasted at most until now."""

    generation: str
    started_at: datetime
    until: datetime | None


_UNCLEAN = Shape(UncleanStart)


def last_was_unclean(db: apsw.Connection) -> bool:
    """Whether the newest start did not end cleanly.  Ask before ``begin``; False for a new home."""
    newest = "SELECT ended_at IS NULL FROM daemon_starts ORDER BY id DESC LIMIT 1"
    return bool(scalar(db, newest))


def begin(db: apsw.Connection, generation: str, now: datetime) -> None:
    """Record a start; the newest 1,000 are kept."""
    newest = insert(db, "daemon_starts", generation=generation, started_at=now)
    run(db, "DELETE FROM daemon_starts WHERE id <= ?", (newest - _KEPT,))


def survived(db: apsw.Connection, generation: str) -> None:
    """This start has lived for ``QUICK_SECONDS``: whatever ends it is no quick death, and a row of them ends."""
    run(
        db,
        "INSERT INTO instance (key, value) SELECT ?, id FROM daemon_starts WHERE generation = ?"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (_SURVIVED, generation),
    )


def end(db: apsw.Connection, generation: str, now: datetime) -> None:
    """The daemon was shut down cleanly."""
    run(
        db,
        "UPDATE daemon_starts SET ended_at = ? WHERE generation = ?",
        (to_text(now), generation),
    )


def quick_deaths(db: apsw.Connection, current: str) -> list[UncleanStart]:
    """The starts right before ``current`` that died within ``QUICK_SECONDS``, in a row, newest first.

    A turn that began at or after ``started_at`` and before ``until`` and was found running at recovery was in it.
    Works before and after ``begin`` of the current generation.
    """
    return _UNCLEAN.all(
        db,
        """
        SELECT generation, started_at, until FROM (
            SELECT id, generation, started_at, ended_at, lead(started_at) OVER (ORDER BY id) AS until
            FROM daemon_starts
        )
        WHERE generation <> ?1 AND id > max(
            coalesce((SELECT max(id) FROM daemon_starts WHERE ended_at IS NOT NULL), 0),
            coalesce((SELECT CAST(value AS INTEGER) FROM instance WHERE key = ?2), 0)
        )
        ORDER BY id DESC
        """,
        (current, _SURVIVED),
    )
