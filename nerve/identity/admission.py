"""From the credential of a request to who is asking, or 401 (contract chapter Auth; gaps.md 1 "Tokens" and 2)."""

import re
from datetime import datetime
from functools import partial

import apsw
from attrs import evolve

from nerve.contract.caller import Caller, CredentialKind, Credentials
from nerve.contract.generated.entities import ActorKind
from nerve.contract.route import AuthMode
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.identity.directory import PROVIDER, Directory, Person
from nerve.identity.peers import is_loopback
from nerve.identity.registry import Registry
from nerve.identity.token_cache import TokenCache
from nerve.identity.tokens import Claims, mint_session, read_actor_context, read_token
from nerve.store.actors import SYSTEM_ACTOR, add_actor, cause_of_session, rename_actor
from nerve.store.identities import actor_of, add_identity

_NAME_LENGTH = 200
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]+")


class Admission:
    """Looks at the first credential that there is, in the order header, cookie, query."""

    def __init__(
        self,
        registry: Registry,
        effects: Effects,
        secret: bytes,
        hours: int,
        mode: AuthMode,
        external_secret: bytes | None,
    ) -> None:
        self._registry = registry
        self._effects = effects
        self._secret = secret
        self._hours = hours
        self._mode = mode
        self._tokens = TokenCache(partial(read_token, secret))
        self._contexts = None if external_secret is None else TokenCache(partial(read_actor_context, external_secret))

    async def admit(self, credentials: Credentials) -> Caller:
        """Raises UNAUTHENTICATED.  Waits only for a person's first sight and for a session's cause."""
        now = self._effects.now()
        if self._mode is AuthMode.EXTERNAL and credentials.actor_context is not None:
            caller = await self._person_of_context(credentials.actor_context, now)
        else:
            caller = await self._holder(_token_of(credentials), credentials.peer, now)
        return evolve(caller, peer=credentials.peer)

    def mint(self, account_id: str) -> str:
        return mint_session(self._secret, account_id, self._effects.now(), self._hours)

    async def _holder(self, token: str, peer: str, now: datetime) -> Caller:
        claims = self._tokens.valid(token, now.timestamp())
        if claims is None:
            raise NerveError(ErrorCode.UNAUTHENTICATED)
        external = self._mode is AuthMode.EXTERNAL
        match claims.kind:
            case CredentialKind.SYSTEM if not external or is_loopback(peer):
                return Caller(SYSTEM_ACTOR, CredentialKind.SYSTEM, cause_id=SYSTEM_ACTOR)
            case CredentialKind.MCP if not external or is_loopback(peer):
                return await self._tool(claims.session_id)
            case CredentialKind.SESSION | CredentialKind.LEGACY if not external:
                return self._account(claims, now)
            case _:
                raise NerveError(ErrorCode.UNAUTHENTICATED)

    def _account(self, claims: Claims, now: datetime) -> Caller:
        legacy = claims.kind is CredentialKind.LEGACY
        person = _oldest(self._registry.directory) if legacy else self._registry.directory.by_id.get(claims.subject)
        if person is None or not person.enabled:
            raise NerveError(ErrorCode.UNAUTHENTICATED)
        renewed = not person.open if legacy else claims.past_half(now.timestamp())
        return Caller(
            person.actor_id,
            claims.kind,
            account_id=person.id,
            cause_id=person.actor_id,
            refreshed=self.mint(person.id) if renewed else None,
        )

    async def _tool(self, session_id: str | None) -> Caller:
        if session_id is None:
            return Caller(SYSTEM_ACTOR, CredentialKind.MCP, cause_id=SYSTEM_ACTOR)
        cause = await self._registry.database.read(cause_of_session, session_id)
        if cause is None:  # a token bound to a deleted session speaks for nobody
            raise NerveError(ErrorCode.UNAUTHENTICATED)
        return Caller(SYSTEM_ACTOR, CredentialKind.MCP, cause_id=cause.actor_id, bound_session_id=session_id)

    async def _person_of_context(self, context: str, now: datetime) -> Caller:
        claims = None if self._contexts is None else self._contexts.valid(context, now.timestamp())
        if claims is None:
            raise NerveError(ErrorCode.UNAUTHENTICATED)
        name = None if claims.name is None else _one_line(claims.name)
        directory = self._registry.directory
        actor_id = directory.subjects.get(claims.subject)
        if actor_id is None or (name is not None and directory.actor_by_id[actor_id].display_name != name):
            fresh = self._effects.new_id("actor")
            actor_id = await self._registry.write(_meet, claims.subject, name, fresh, now)
        return Caller(actor_id, CredentialKind.EXTERNAL, cause_id=actor_id)


def _token_of(credentials: Credentials) -> str:
    for token in (credentials.bearer, credentials.cookie, credentials.query):
        if token is not None:
            return token
    raise NerveError(ErrorCode.UNAUTHENTICATED)


def _oldest(directory: Directory) -> Person | None:
    return directory.people[0] if directory.people else None


def _one_line(name: str) -> str:
    return _UNPRINTABLE.sub(" ", name).strip()[:_NAME_LENGTH]


def _meet(db: apsw.Connection, subject: str, name: str | None, fresh: str, now: datetime) -> str:
    """The actor of a subject, made at first sight, and called as the gateway calls it (gaps.md 2.3)."""
    actor_id = actor_of(db, PROVIDER, subject)
    if actor_id is None:
        add_actor(db, fresh, ActorKind.HUMAN.value, name or "", now)
        add_identity(db, PROVIDER, subject, fresh)
        return fresh
    if name is not None:
        rename_actor(db, actor_id, name)
    return actor_id
