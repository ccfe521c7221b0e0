"""The rows of people who may sign in.  The rules about them stand in nerve/identity."""

from datetime import datetime

import apsw
from attrs import field, frozen

from nerve.store.rows import Shape, bound, insert, run

ROW = "row"
CONFIG = "config"


@frozen
class AccountRow:
    """``credential_origin`` says which hash counts: the row's own, or ``auth.password_hash`` of the configuration."""

    id: str
    actor_id: str
    username: str | None
    enabled: bool
    password_hash: str | None = field(repr=False)
    credential_origin: str
    created_at: datetime
    display_name: str


_ACCOUNT = Shape(AccountRow)


def all_accounts(db: apsw.Connection) -> list[AccountRow]:
    """Oldest first, disabled ones included."""
    return _ACCOUNT.all(
        db,
        "SELECT accounts.id, actor_id, username, enabled, password_hash, credential_origin, accounts.created_at,"
        " display_name FROM accounts JOIN actors ON actors.id = accounts.actor_id ORDER BY accounts.n",
    )


def add_account(
    db: apsw.Connection,
    account_id: str,
    actor_id: str,
    username: str | None,
    password_hash: str | None,
    now: datetime,
) -> None:
    insert(
        db,
        "accounts",
        id=account_id,
        actor_id=actor_id,
        username=username,
        password_hash=password_hash,
        created_at=now,
        updated_at=now,
    )


def set_username(db: apsw.Connection, account_id: str, username: str, now: datetime) -> None:
    run(db, "UPDATE accounts SET username = ?, updated_at = ? WHERE id = ?", (username, bound(now), account_id))


def set_enabled(db: apsw.Connection, account_id: str, enabled: bool, now: datetime) -> None:
    run(db, "UPDATE accounts SET enabled = ?, updated_at = ? WHERE id = ?", (bound(enabled), bound(now), account_id))


def set_password_hash(db: apsw.Connection, account_id: str, password_hash: str, now: datetime) -> None:
    """From now on the row's hash counts, whatever the configuration holds."""
    run(
        db,
        f"UPDATE accounts SET password_hash = ?, credential_origin = '{ROW}', updated_at = ? WHERE id = ?",
        (password_hash, bound(now), account_id),
    )


def set_credential_origin(db: apsw.Connection, account_id: str, origin: str, now: datetime) -> None:
    run(
        db,
        "UPDATE accounts SET credential_origin = ?, updated_at = ? WHERE id = ?",
        (origin, bound(now), account_id),
    )
