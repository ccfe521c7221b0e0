"""What may be done to accounts, each as one transaction (gaps.md 1.3 to 1.11).

Every function checks its rules on what the transaction itself reads, so that no other writer slips between.
"""

from datetime import datetime

import apsw
from attrs import field, frozen

from nerve.contract.generated.entities import Account, ActorKind
from nerve.errors import ErrorCode, NerveError
from nerve.identity.directory import Directory, load
from nerve.store import accounts
from nerve.store.actors import add_actor, rename_actor
from nerve.store.instance import CLAIMED_AT, fact, set_fact
from nerve.store.instants import to_text


@frozen
class Draft:
    """A new account; the username is in its stored form."""

    account_id: str
    actor_id: str
    username: str
    display_name: str
    password_hash: str = field(repr=False)


@frozen
class Change:
    """None leaves a field as it is; the username is in its stored form."""

    username: str | None = None
    display_name: str | None = None


def create(db: apsw.Connection, draft: Draft, now: datetime, configured_hash: str | None) -> Account:
    """Raises SETUP_INCOMPLETE, FIRST_ACCOUNT_UNNAMED, FIRST_ACCOUNT_PASSWORDLESS or USERNAME_TAKEN."""
    may_create(load(db, configured_hash), draft.username)
    add_actor(db, draft.actor_id, ActorKind.HUMAN.value, draft.display_name, now)
    accounts.add_account(db, draft.account_id, draft.actor_id, draft.username, draft.password_hash, now)
    record_completion(db, now)
    return _account(db, draft.account_id, configured_hash)


def may_create(directory: Directory, username: str) -> None:
    directory.require_claimed()
    first = directory.people[0]
    if first.username is None:
        raise NerveError(ErrorCode.FIRST_ACCOUNT_UNNAMED)
    if first.password_hash is None:
        raise NerveError(ErrorCode.FIRST_ACCOUNT_PASSWORDLESS)
    if username in directory.by_username:
        raise NerveError(ErrorCode.USERNAME_TAKEN)


def update(db: apsw.Connection, account_id: str, change: Change, now: datetime, configured_hash: str | None) -> Account:
    """Raises ACCOUNT_NOT_FOUND, SETUP_INCOMPLETE or USERNAME_TAKEN."""
    directory = load(db, configured_hash)
    person = directory.person(account_id)
    directory.require_claimed()
    if change.username is not None and change.username != person.username:
        if change.username in directory.by_username:
            raise NerveError(ErrorCode.USERNAME_TAKEN)
        accounts.set_username(db, account_id, change.username, now)
    if change.display_name is not None and change.display_name != person.display_name:
        rename_actor(db, person.actor_id, change.display_name)
    return _account(db, account_id, configured_hash)


def disable(db: apsw.Connection, account_id: str, now: datetime, configured_hash: str | None) -> Account:
    """Disabling twice is no error.  Raises ACCOUNT_NOT_FOUND or LAST_ENABLED_ACCOUNT."""
    directory = load(db, configured_hash)
    if directory.person(account_id).enabled:
        if directory.enabled_ids() == {account_id}:
            raise NerveError(ErrorCode.LAST_ENABLED_ACCOUNT)
        accounts.set_enabled(db, account_id, False, now)
    return _account(db, account_id, configured_hash)


def enable(db: apsw.Connection, account_id: str, now: datetime, configured_hash: str | None) -> Account:
    """Enabling twice is no error.  Raises ACCOUNT_NOT_FOUND or PASSWORDLESS_AMONG_OTHERS."""
    directory = load(db, configured_hash)
    person = directory.person(account_id)
    if not person.enabled:
        if person.password_hash is None and directory.sole is None:
            raise NerveError(ErrorCode.PASSWORDLESS_AMONG_OTHERS)
        accounts.set_enabled(db, account_id, True, now)
    return _account(db, account_id, configured_hash)


def change_password(
    db: apsw.Connection,
    account_id: str,
    verified_hash: str | None,
    new_hash: str,
    now: datetime,
    configured_hash: str | None,
) -> Account:
    """``verified_hash`` is the one that the current password was held against (None: there was none).

    Raises SETUP_INCOMPLETE, ACCOUNT_NOT_FOUND, or WRONG_CURRENT_PASSWORD if the password was changed meanwhile.
    """
    directory = load(db, configured_hash)
    directory.require_claimed()
    if directory.person(account_id).password_hash != verified_hash:
        raise NerveError(ErrorCode.WRONG_CURRENT_PASSWORD)
    return set_password(db, account_id, new_hash, now, configured_hash)


def set_password(
    db: apsw.Connection, account_id: str, new_hash: str, now: datetime, configured_hash: str | None
) -> Account:
    """Without asking for the current one: for the operator.  Raises SETUP_INCOMPLETE or ACCOUNT_NOT_FOUND."""
    directory = load(db, configured_hash)
    directory.require_claimed()
    directory.person(account_id)
    accounts.set_password_hash(db, account_id, new_hash, now)
    record_completion(db, now)
    return _account(db, account_id, configured_hash)


def record_completion(db: apsw.Connection, now: datetime) -> None:
    """Setup stays complete from now on, also if it was so only by a password in the configuration."""
    if fact(db, CLAIMED_AT) is None:
        set_fact(db, CLAIMED_AT, to_text(now))


def _account(db: apsw.Connection, account_id: str, configured_hash: str | None) -> Account:
    return load(db, configured_hash).person(account_id).shown()
