"""The identity service: one object, made by the composition root, that knows everybody and lets people in."""

import logging
from collections.abc import Callable
from enum import Enum

from attrs import field, frozen

from nerve.contract.caller import Caller, Credentials
from nerve.contract.generated.accounts import AccountChange, NewAccount, PasswordChange
from nerve.contract.generated.auth import Login, Me
from nerve.contract.generated.entities import Account, Actor, AuthModeName, AuthStatus, LoginState, Token
from nerve.contract.generated.setup import Claim
from nerve.contract.route import AuthMode
from nerve.contract.unset import UNSET
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.identity import accounts
from nerve.identity.accounts import Change, Draft
from nerve.identity.admission import Admission
from nerve.identity.bootstrap import SETUP_TOKEN_BYTES, Seed, bootstrap
from nerve.identity.claiming import Claiming
from nerve.identity.directory import Directory
from nerve.identity.naming import checked_password, checked_username
from nerve.identity.passwords import COST, Passwords, cost_of
from nerve.identity.registry import Registry
from nerve.identity.signin import SignIn
from nerve.store.database import Database

log = logging.getLogger(__name__)


class Readiness(Enum):
    LOADING = "loading"
    READY = "ready"
    UNAVAILABLE = "unavailable"


@frozen
class IdentityState:
    """``reason`` is for the log and the operator, never for a client."""

    readiness: Readiness
    reason: str = ""


class IdentityUnusable(Exception):
    """The daemon does not start.  The message is for the operator."""


@frozen(kw_only=True)
class AuthSettings:
    """Section ``auth`` of the configuration (config.md 2.8), as far as identity has to know it."""

    mode: AuthMode = AuthMode.LOCAL
    jwt_secret: bytes | None = field(repr=False)
    jwt_expiry_hours: int = 720
    password_hash: str | None = field(default=None, repr=False)
    external_secret: bytes | None = field(default=None, repr=False)
    bcrypt_cost: int = COST


class Identity:
    """Every method but ``status`` raises IDENTITY_NOT_READY unless the state is READY.

    Methods that change something wait for their commit; once that is under way they are not cancelled.
    """

    def __init__(self, database: Database, effects: Effects, settings: AuthSettings) -> None:
        self._effects = effects
        self._settings = settings
        # A password of the configuration means nothing where a gateway signs people in.
        configured_hash = settings.password_hash if settings.mode is AuthMode.LOCAL else None
        self._registry = Registry(database, configured_hash or None)
        self._passwords = Passwords(effects.blocking, settings.bcrypt_cost)
        self._sign_in = SignIn(self._registry, self._passwords)
        self._claiming = Claiming(self._registry, self._passwords, effects)
        self._admission: Admission | None = None
        self._state = IdentityState(Readiness.LOADING)
        self._home_id = ""

    @property
    def state(self) -> IdentityState:
        return self._state

    @property
    def mode(self) -> AuthMode:
        return self._settings.mode

    @property
    def home_id(self) -> str:
        """Names this home in the environment of child processes (decisions D12); empty before ``start``."""
        return self._home_id

    @property
    def open_to_anyone(self) -> bool:
        """True on a passwordless instance: whoever reaches it may sign in."""
        return self.mode is AuthMode.LOCAL and self._registry.directory.login is LoginState.NONE

    async def start(self) -> None:
        """Bootstrap, then be ready, or unavailable with the reason.

        Raises IdentityUnusable, or what the store raises; the state is then still LOADING.
        """
        settings = self._settings
        if settings.mode is AuthMode.EXTERNAL and not settings.external_secret:
            raise IdentityUnusable("auth.mode is external, but auth.external.secret is not set")
        seed = Seed(
            home_id=self._effects.new_id("generation"),
            actor_id=self._effects.new_id("actor"),
            account_id=self._effects.new_id("account"),
            setup_token=self._effects.secret(SETUP_TOKEN_BYTES),
            now=self._effects.now(),
        )
        self._home_id = await self._registry.write(bootstrap, seed, settings.mode, self._registry.configured_hash)
        self._state = self._become_ready()

    def _become_ready(self) -> IdentityState:
        settings, configured_hash = self._settings, self._registry.configured_hash
        if not settings.jwt_secret:
            return _unavailable("there is no secret to sign tokens with")
        if configured_hash is not None and cost_of(configured_hash) is None:
            return _unavailable("auth.password_hash is not a bcrypt hash of a reasonable cost")
        self._admission = Admission(
            self._registry,
            self._effects,
            settings.jwt_secret,
            settings.jwt_expiry_hours,
            settings.mode,
            settings.external_secret,
        )
        return IdentityState(Readiness.READY)

    async def watch(self) -> None:
        """Notice within a second what another process did to the accounts.  Runs until cancelled."""
        await self._registry.watch()

    def on_disabled(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """``listener(account_id)`` is called right after a disabling is committed; returns how to unsubscribe."""
        return self._registry.on_disabled(listener)

    async def admit(self, credentials: Credentials) -> Caller:
        """Who holds this credential.  Raises UNAUTHENTICATED.  See ``Admission.admit``."""
        return await self._ready().admit(credentials)

    def is_live(self, caller: Caller) -> bool:
        """False once the account behind an admitted caller is disabled; for sockets, after they subscribed."""
        person = None if caller.account_id is None else self._registry.directory.by_id.get(caller.account_id)
        return caller.account_id is None or (person is not None and person.enabled)

    def status(self) -> AuthStatus:
        """How people sign in here; says the least while not ready."""
        login = LoginState.USERNAME_PASSWORD
        if self.mode is AuthMode.LOCAL and self._state.readiness is Readiness.READY:
            login = self._registry.directory.login
        return AuthStatus(mode=AuthModeName(self.mode.value), auth_required=login is not LoginState.NONE, login=login)

    async def login(self, peer: str, login: Login) -> Token:
        """Raises SETUP_INCOMPLETE, BAD_CREDENTIALS or LOGIN_BUSY.  See ``SignIn.login``."""
        admission = self._ready()
        person = await self._sign_in.login(peer, login.username, login.password)
        return Token(token=admission.mint(person.id))

    async def claim(self, claim: Claim) -> Token:
        """See ``Claiming.claim``."""
        admission = self._ready()
        return Token(token=admission.mint(await self._claiming.claim(claim)))

    def require_claimed(self) -> None:
        """Raises SETUP_INCOMPLETE; where a gateway signs people in there is nothing to claim."""
        if self.mode is AuthMode.LOCAL:
            self._known().require_claimed()

    def me(self, caller: Caller) -> Me:
        """Raises UNAUTHENTICATED if the account is gone since the caller was admitted."""
        directory = self._known()
        actor = directory.actor_by_id.get(caller.actor_id or "")
        if actor is None:
            raise NerveError(ErrorCode.UNAUTHENTICATED)
        return Me(actor=actor, account=None if caller.account_id is None else self.account(caller))

    def actors(self) -> list[Actor]:
        """Oldest first."""
        return list(self._known().actors)

    def accounts(self) -> list[Account]:
        """Oldest first, disabled ones included."""
        return [person.shown() for person in self._known().people]

    def account(self, caller: Caller) -> Account:
        """The caller's own.  Raises UNAUTHENTICATED if it is gone."""
        person = self._known().by_id.get(caller.account_id or "")
        if person is None:
            raise NerveError(ErrorCode.UNAUTHENTICATED)
        return person.shown()

    async def create_account(self, peer: str, new: NewAccount) -> Account:
        """Raises BAD_USERNAME, EMPTY_PASSWORD, PASSWORD_TOO_LONG, LOGIN_BUSY, or what ``accounts.create`` raises."""
        username, password = checked_username(new.username), checked_password(new.password)
        accounts.may_create(self._known(), username)  # before bcrypt; the transaction asks again
        draft = Draft(
            account_id=self._effects.new_id("account"),
            actor_id=self._effects.new_id("actor"),
            username=username,
            display_name=new.display_name,
            password_hash=await self._sign_in.hashed(peer, password),
        )
        return await self._registry.write(accounts.create, draft, *self._context())

    async def update_account(self, account_id: str, change: AccountChange) -> Account:
        """Raises BAD_USERNAME, or what ``accounts.update`` raises."""
        self._ready()
        wanted = Change(
            username=None if change.username is UNSET else checked_username(change.username),
            display_name=None if change.display_name is UNSET else change.display_name,
        )
        return await self._registry.write(accounts.update, account_id, wanted, *self._context())

    async def disable_account(self, account_id: str) -> Account:
        """Raises what ``accounts.disable`` raises.  Listeners have been told before this returns."""
        self._ready()
        return await self._registry.write(accounts.disable, account_id, *self._context())

    async def enable_account(self, account_id: str) -> Account:
        """Raises what ``accounts.enable`` raises."""
        self._ready()
        return await self._registry.write(accounts.enable, account_id, *self._context())

    async def change_password(self, caller: Caller, change: PasswordChange) -> Account:
        """Raises EMPTY_PASSWORD, PASSWORD_TOO_LONG, SETUP_INCOMPLETE, CURRENT_PASSWORD_REQUIRED,
        WRONG_CURRENT_PASSWORD or LOGIN_BUSY."""
        new_password, directory = checked_password(change.new_password), self._known()
        directory.require_claimed()
        person = directory.by_id.get(caller.account_id or "")
        if person is None:
            raise NerveError(ErrorCode.UNAUTHENTICATED)
        if person.password_hash is not None:
            if change.current_password is None:
                raise NerveError(ErrorCode.CURRENT_PASSWORD_REQUIRED)
            if not await self._sign_in.check(caller.peer, person.id, person, change.current_password):
                raise NerveError(ErrorCode.WRONG_CURRENT_PASSWORD)
        new_hash = await self._sign_in.hashed(caller.peer, new_password)
        return await self._registry.write(
            accounts.change_password, person.id, person.password_hash, new_hash, *self._context()
        )

    def _context(self) -> tuple[object, object]:
        return self._effects.now(), self._registry.configured_hash

    def _ready(self) -> Admission:
        if self._admission is None:
            raise NerveError(ErrorCode.IDENTITY_NOT_READY)
        return self._admission

    def _known(self) -> Directory:
        self._ready()
        return self._registry.directory


def _unavailable(reason: str) -> IdentityState:
    log.error("identity is unavailable: %s", reason)
    return IdentityState(Readiness.UNAVAILABLE, reason)
