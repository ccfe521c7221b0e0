"""Facts of the instance as a whole: its id, the setup token until it is claimed, when that was."""

import apsw

from nerve.store.rows import run, scalar

HOME_ID = "home_id"
SETUP_TOKEN = "setup_token"
CLAIMED_AT = "claimed_at"


def fact(db: apsw.Connection, key: str) -> str | None:
    value: str | None = scalar(db, "SELECT value FROM instance WHERE key = ?", (key,))
    return value


def set_fact(db: apsw.Connection, key: str, value: str) -> None:
    run(
        db,
        "INSERT INTO instance (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def forget_fact(db: apsw.Connection, key: str) -> None:
    run(db, "DELETE FROM instance WHERE key = ?", (key,))


def data_version(db: apsw.Connection) -> int:
    """A number that moves whenever another connection, of this process or another one, has committed."""
    return int(scalar(db, "PRAGMA data_version"))
