"""Everybody who is known here, as one immutable value: what admission and sign-in look at instead of tables."""

from collections.abc import Mapping
from datetime import datetime

import apsw
from attrs import field, frozen

from nerve.contract.generated.entities import Account, Actor, ActorKind, LoginState
from nerve.errors import ErrorCode, NerveError
from nerve.store.accounts import CONFIG, AccountRow, all_accounts
from nerve.store.actors import all_actors
from nerve.store.identities import all_identities
from nerve.store.instance import CLAIMED_AT, fact

PROVIDER = "external"


@frozen
class Person:
    """One account.  ``password_hash`` is the one that counts; ``open`` accounts accept any password."""

    id: str
    actor_id: str
    username: str | None
    display_name: str
    enabled: bool
    password_hash: str | None = field(repr=False)
    open: bool
    created_at: datetime

    def shown(self) -> Account:
        return Account(
            id=self.id,
            actor_id=self.actor_id,
            username=self.username,
            display_name=self.display_name,
            enabled=self.enabled,
            has_password=self.password_hash is not None,
            created_at=self.created_at,
        )


@frozen
class Directory:
    """Accounts and actors oldest first.  ``claimed``: setup is complete, by a claim or by a configured password."""

    people: tuple[Person, ...] = ()
    actors: tuple[Actor, ...] = ()
    subjects: Mapping[str, str] = field(factory=dict)  # external mode: actor ids
    claimed: bool = False
    by_id: Mapping[str, Person] = field(init=False, repr=False)
    by_username: Mapping[str, Person] = field(init=False, repr=False)
    actor_by_id: Mapping[str, Actor] = field(init=False, repr=False)

    @by_id.default
    def _by_id(self) -> Mapping[str, Person]:
        return {person.id: person for person in self.people}

    @by_username.default
    def _by_username(self) -> Mapping[str, Person]:
        return {person.username: person for person in self.people if person.username is not None}

    @actor_by_id.default
    def _actor_by_id(self) -> Mapping[str, Actor]:
        return {actor.id: actor for actor in self.actors}

    @property
    def sole(self) -> Person | None:
        """The only account, if there is only one; disabled ones count."""
        return self.people[0] if len(self.people) == 1 else None

    @property
    def login(self) -> LoginState:
        """Which fields a sign-in needs (gaps.md 1.7)."""
        if not self.claimed:
            return LoginState.SETUP
        match self.sole:
            case None:
                return LoginState.USERNAME_PASSWORD
            case Person(open=True):
                return LoginState.NONE
            case _:
                return LoginState.PASSWORD

    def person(self, account_id: str) -> Person:
        """Raises ACCOUNT_NOT_FOUND."""
        if (person := self.by_id.get(account_id)) is None:
            raise NerveError(ErrorCode.ACCOUNT_NOT_FOUND)
        return person

    def require_claimed(self) -> None:
        """Raises SETUP_INCOMPLETE."""
        if not self.claimed:
            raise NerveError(ErrorCode.SETUP_INCOMPLETE)

    def enabled_ids(self) -> set[str]:
        return {person.id for person in self.people if person.enabled}


def load(db: apsw.Connection, configured_hash: str | None) -> Directory:
    """The directory as the database has it now."""
    rows = all_accounts(db)
    by_configuration = configured_hash is not None and bool(rows) and rows[0].credential_origin == CONFIG
    return Directory(
        people=tuple(_person(row, configured_hash) for row in rows),
        actors=tuple(
            Actor(id=row.id, kind=ActorKind(row.kind), display_name=row.display_name, username=row.username)
            for row in all_actors(db)
        ),
        subjects=all_identities(db, PROVIDER),
        claimed=by_configuration or fact(db, CLAIMED_AT) is not None,
    )


def _person(row: AccountRow, configured_hash: str | None) -> Person:
    # An account whose password left the configuration is not open to everybody: nobody can sign in to it.
    by_configuration = row.credential_origin == CONFIG
    return Person(
        id=row.id,
        actor_id=row.actor_id,
        username=row.username,
        display_name=row.display_name,
        enabled=row.enabled,
        password_hash=configured_hash if by_configuration else row.password_hash,
        open=not by_configuration and row.password_hash is None,
        created_at=row.created_at,
    )
