"""Accounts for the operator at the command line: straight on the database, also while the daemon runs.

The rules and the sentences are those of the API; a running daemon notices within a second.
"""

from collections.abc import Callable
from typing import Any

import apsw
from attrs import define, field

from nerve.contract.generated.entities import Account
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.identity import accounts
from nerve.identity.accounts import Draft
from nerve.identity.directory import Person, load
from nerve.identity.naming import checked_password, checked_username, normal_username
from nerve.identity.passwords import COST, Passwords
from nerve.store.database import Database
from nerve.store.instance import SETUP_TOKEN, fact


@define(eq=False)
class AccountOperator:
    """``configured_hash`` is ``auth.password_hash``.  Accounts are named by username or by id.

    Every method raises ACCOUNT_NOT_FOUND where it is given a name, and what the function of the same name in
    ``nerve.identity.accounts`` raises.
    """

    database: Database
    effects: Effects
    configured_hash: str | None = field(default=None, repr=False)
    bcrypt_cost: int = COST
    _passwords: Passwords = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._passwords = Passwords(self.effects.blocking, self.bcrypt_cost)

    async def setup_token(self) -> str | None:
        """For ``nerve status`` only; None once the instance is claimed."""
        return await self.database.read(_setup_token, self.configured_hash)

    async def all(self) -> list[Account]:
        """Oldest first, disabled ones included."""
        return await self.database.read(_shown, self.configured_hash)

    async def create(self, username: str, password: str, display_name: str = "") -> Account:
        """Raises also BAD_USERNAME, EMPTY_PASSWORD or PASSWORD_TOO_LONG."""
        draft = Draft(
            account_id=self.effects.new_id("account"),
            actor_id=self.effects.new_id("actor"),
            username=checked_username(username),
            display_name=display_name,
            password_hash=await self._passwords.hashed(checked_password(password)),
        )
        return await self.database.write(accounts.create, draft, self.effects.now(), self.configured_hash)

    async def enable(self, name: str) -> Account:
        return await self._on(name, accounts.enable)

    async def disable(self, name: str) -> Account:
        return await self._on(name, accounts.disable)

    async def set_password(self, name: str, password: str) -> Account:
        """Needs no current password.  Raises also EMPTY_PASSWORD or PASSWORD_TOO_LONG."""
        new_hash = await self._passwords.hashed(checked_password(password))
        return await self._on(name, accounts.set_password, new_hash)

    async def _on(self, name: str, fn: Callable[..., Account], *args: Any) -> Account:
        return await self.database.write(_on_named, fn, name, *args, self.effects.now(), self.configured_hash)


def _on_named(db: apsw.Connection, fn: Callable[..., Account], name: str, *args: Any) -> Account:
    configured_hash: str | None = args[-1]
    return fn(db, _find(db, name, configured_hash).id, *args)


def _find(db: apsw.Connection, name: str, configured_hash: str | None) -> Person:
    directory = load(db, configured_hash)
    person = directory.by_id.get(name) or directory.by_username.get(normal_username(name))
    if person is None:
        raise NerveError(ErrorCode.ACCOUNT_NOT_FOUND)
    return person


def _shown(db: apsw.Connection, configured_hash: str | None) -> list[Account]:
    return [person.shown() for person in load(db, configured_hash).people]


def _setup_token(db: apsw.Connection, configured_hash: str | None) -> str | None:
    return None if load(db, configured_hash).claimed else fact(db, SETUP_TOKEN)
