"""The claim: the one account write that needs no credential but the setup token (gaps.md 1 "Claim transaction")."""

import hmac
from datetime import datetime

import apsw
import trio
from attrs import field, frozen

from nerve.contract.generated.setup import Claim
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.identity.accounts import record_completion
from nerve.identity.directory import Directory, load
from nerve.identity.naming import checked_password, checked_username
from nerve.identity.passwords import Passwords
from nerve.identity.registry import Registry
from nerve.store.accounts import set_password_hash, set_username
from nerve.store.actors import rename_actor
from nerve.store.instance import SETUP_TOKEN, fact, forget_fact


@frozen
class Owner:
    """Whom the one account is to belong to; without ``password`` the instance is open."""

    username: str | None
    password: str | None = field(repr=False)
    display_name: str | None


def checked_owner(claim: Claim) -> Owner:
    """The rules that only somebody with the token gets to see broken: each is a 400."""
    if (claim.password is not None) == claim.passwordless:
        raise NerveError(ErrorCode.PASSWORD_OR_PASSWORDLESS)
    named = claim.username is not None and claim.username.strip() != ""
    if claim.password is not None and not named:
        raise NerveError(ErrorCode.USERNAME_REQUIRED)
    username = checked_username(claim.username) if claim.username is not None and named else None
    password = checked_password(claim.password) if claim.password is not None else None
    return Owner(username, password, claim.display_name)


class Claiming:
    def __init__(self, registry: Registry, passwords: Passwords, effects: Effects) -> None:
        self._registry = registry
        self._passwords = passwords
        self._effects = effects
        self._one_at_a_time = trio.Lock()

    async def claim(self, claim: Claim) -> str:
        """Complete the setup; the id of the account.  Waits for other claims, bcrypt and the commit.

        Raises SETUP_COMPLETE, then WRONG_SETUP_TOKEN, then what ``checked_owner`` raises: who has no token learns
        nothing.  Refused or cancelled, everything is as before and the token stays good.
        """
        await self._check(claim.setup_token)
        owner = checked_owner(claim)
        async with self._one_at_a_time:  # so that only a winner's password is ever hashed
            await self._check(claim.setup_token)
            hashed = None if owner.password is None else await self._passwords.hashed(owner.password)
            return await self._registry.write(
                _complete, claim.setup_token, owner, hashed, self._effects.now(), self._registry.configured_hash
            )

    async def _check(self, token: str) -> None:
        await self._registry.database.read(_checked, token, self._registry.configured_hash)


def _checked(db: apsw.Connection, token: str, configured_hash: str | None) -> Directory:
    directory = load(db, configured_hash)
    if directory.claimed:
        raise NerveError(ErrorCode.SETUP_COMPLETE)
    stored = fact(db, SETUP_TOKEN)
    if stored is None or not hmac.compare_digest(stored.encode(), token.encode("utf-8", "surrogatepass")):
        raise NerveError(ErrorCode.WRONG_SETUP_TOKEN)
    return directory


def _complete(
    db: apsw.Connection,
    token: str,
    owner: Owner,
    password_hash: str | None,
    now: datetime,
    configured_hash: str | None,
) -> str:
    person = _checked(db, token, configured_hash).people[0]
    if owner.username is not None:
        set_username(db, person.id, owner.username, now)
    if password_hash is not None:
        set_password_hash(db, person.id, password_hash, now)
    if owner.display_name is not None:
        rename_actor(db, person.actor_id, owner.display_name)
    record_completion(db, now)
    forget_fact(db, SETUP_TOKEN)
    return person.id
