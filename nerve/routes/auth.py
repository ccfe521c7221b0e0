"""Contract chapter Auth."""

from nerve.contract.caller import Caller
from nerve.contract.generated.auth import AUTH_CHECK, AUTH_LOGIN, AUTH_ME, AUTH_STATUS, Authenticated, Login, Me
from nerve.contract.generated.entities import AuthStatus, Token
from nerve.contract.route import NoBody, NoParams
from nerve.routes.binding import bind
from nerve.services import Services


async def login(services: Services, caller: Caller, params: NoParams, body: Login) -> Token:
    """Answers once the password was checked, later if sign-ins of this peer failed of late."""
    return await services.identity.login(caller.peer, body)


async def status(services: Services, caller: Caller, params: NoParams, body: NoBody) -> AuthStatus:
    return services.identity.status()


async def check(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Authenticated:
    """Admission has done the checking."""
    return Authenticated()


async def me(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Me:
    return services.identity.me(caller)


ENDPOINTS = (
    bind(AUTH_LOGIN, login),
    bind(AUTH_STATUS, status),
    bind(AUTH_CHECK, check),
    bind(AUTH_ME, me),
)
