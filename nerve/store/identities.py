"""External mode: which actor the gateway means by which subject (gaps.md 2.3)."""

import apsw

from nerve.store.rows import insert, scalar


def all_identities(db: apsw.Connection, provider: str) -> dict[str, str]:
    """Actor ids by subject."""
    rows = db.execute("SELECT subject, actor_id FROM actor_identities WHERE provider = ?", (provider,))
    return {str(subject): str(actor_id) for subject, actor_id in rows}


def actor_of(db: apsw.Connection, provider: str, subject: str) -> str | None:
    actor_id: str | None = scalar(
        db, "SELECT actor_id FROM actor_identities WHERE provider = ? AND subject = ?", (provider, subject)
    )
    return actor_id


def add_identity(db: apsw.Connection, provider: str, subject: str, actor_id: str) -> None:
    insert(db, "actor_identities", provider=provider, subject=subject, actor_id=actor_id)
