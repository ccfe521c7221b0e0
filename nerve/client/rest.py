"""The REST half: calls that answer with the contract's models."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
from attrs import define, field

from nerve.contract import codec
from nerve.contract.generated.auth import AUTH_LOGIN, AUTH_STATUS, Login
from nerve.contract.generated.entities import AuthStatus, Health, Token
from nerve.contract.generated.health import HEALTH_GET
from nerve.contract.generated.setup import SETUP_CLAIM, Claim
from nerve.contract.route import NoBody, NoParams, Route

B = TypeVar("B")
R = TypeVar("R")

TIMEOUT_SECONDS = 30.0
REFRESHED = "x-nerve-token"


class Refusal(Exception):
    """The server answered with an error; ``detail`` is its own sentence."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail


@define(eq=False)
class NerveClient:
    """``token`` follows the replacements that the server sends.  Every call raises Refusal, or httpx.HTTPError."""

    address: str
    token: str | None = field(default=None, repr=False)
    _http: httpx.AsyncClient = field(kw_only=True, repr=False)

    async def health(self) -> Health:
        return await self.call(HEALTH_GET)

    async def auth_status(self) -> AuthStatus:
        return await self.call(AUTH_STATUS)

    async def claim(self, setup_token: str, username: str, password: str) -> None:
        """Make the instance this person's, and sign in."""
        made = await self.call(SETUP_CLAIM, Claim(setup_token=setup_token, username=username, password=password))
        self.token = made.token

    async def login(self, password: str, username: str | None = None) -> None:
        made: Token = await self.call(AUTH_LOGIN, Login(password=password, username=username))
        self.token = made.token

    async def call(self, route: Route[NoParams, B, R], body: B | None = None) -> R:
        """One operation without parameters, with its own success reply."""
        headers = {} if self.token is None else {"authorization": f"Bearer {self.token}"}
        content = None
        if body is not None and not isinstance(body, NoBody):
            content = codec.encode(body)
            headers["content-type"] = "application/json"
        answer = await self._http.request(route.method, self.address + route.path, headers=headers, content=content)
        if answer.status_code != route.success:
            raise Refusal(answer.status_code, _detail(answer))
        self.token = answer.headers.get(REFRESHED, self.token)
        model: type[R] = route.replies[route.success]
        return codec.structure(model, codec.parse_json(answer.content))


def _detail(answer: httpx.Response) -> str:
    """The sentence of an error body, whichever of its documented forms it has."""
    try:
        found: Any = codec.parse_json(answer.content)
    except codec.Invalid:
        return answer.reason_phrase
    detail = found.get("detail") if isinstance(found, dict) else None
    if isinstance(detail, dict):
        detail = detail.get("message")
    return detail if isinstance(detail, str) else answer.reason_phrase


@asynccontextmanager
async def open_client(address: str, token: str | None = None) -> AsyncIterator[NerveClient]:
    """A client of the server at this address (``http://127.0.0.1:8900``), as long as the block lasts."""
    # trust_env: a proxy of the environment is no way to a server on this machine.
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as http:
        yield NerveClient(address.rstrip("/"), token, http=http)
