"""A house in which only identity lives: the real app, service and store, in memory, on a clock the test owns."""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar, cast

import jwt
import trio
from attrs import define, field

from nerve.asgi.app import App
from nerve.asgi.policy import HttpPolicy
from nerve.asgi.socket import Socket
from nerve.contract.caller import Caller
from nerve.effects import ID_FORMS, Blocking, Effects
from nerve.identity.service import AuthSettings, Identity
from nerve.routes import accounts, actors, auth, setup
from nerve.services import Services
from nerve.store.database import Database
from nerve.store.instance import SETUP_TOKEN, fact
from tests.asgi_client import AsgiClient, Reply
from tests.spec_client import SpecObserver

T = TypeVar("T")


START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SECRET = b"signing-secret-of-the-tests-0123456789abcdef-0123456789abcdef-0123456789"
GATEWAY_SECRET = b"gateway-secret-of-the-tests-0123456789abcdef"
PASSWORD = "correct horse"
LOCAL = AuthSettings(jwt_secret=SECRET, bcrypt_cost=4)
ENDPOINTS = (*auth.ENDPOINTS, *accounts.ENDPOINTS, *setup.ENDPOINTS, *actors.ENDPOINTS)
_NUMBERS = count(1)  # never twice, also where a test opens a house again


def now() -> datetime:
    return START + timedelta(seconds=trio.current_time())


class Thread:
    """Blocking work takes ``seconds`` of the test's clock, in the order of the limiter."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls: list[tuple[Any, ...]] = []

    async def __call__(self, fn: Callable[..., T], /, *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
        async with limiter or trio.CapacityLimiter(1):
            self.calls.append(args)
            if self.seconds:
                await trio.sleep(self.seconds)
            return fn(*args)


def counting_effects(blocking: Blocking) -> Effects:
    def new_id(kind: str) -> str:
        prefix, digits = ID_FORMS[kind]
        return f"{prefix}{next(_NUMBERS):0{digits}x}"

    return Effects(
        now=now, new_id=new_id, secret=lambda size: f"setup-secret-{next(_NUMBERS)}-{'x' * size}", blocking=blocking
    )


class NoSockets:
    async def serve(self, caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        raise AssertionError("no test of identity opens a socket")


Opening = Callable[..., Awaitable["House"]]


@define
class House:
    """``client`` has no credential and talks to ``app`` from 192.0.2.1."""

    identity: Identity
    database: Database
    settings: AuthSettings
    effects: Effects
    thread: Thread
    app: App[Services]
    client: AsgiClient
    undeclared: list[str] = field(factory=list)

    async def setup_token(self) -> str | None:
        return await self.database.read(fact, SETUP_TOKEN)

    async def claim(self, **body: Any) -> Reply:
        """A claim with the right token; by default alice's, with ``PASSWORD``."""
        body = body or {"username": "alice", "password": PASSWORD, "display_name": "Alice"}
        return await self.client.post("/api/setup/claim", json={"setup_token": await self.setup_token(), **body})

    async def alice(self) -> AsgiClient:
        """Claims the instance with a password; the client of its owner."""
        reply = await self.claim()
        assert reply.status == 200, reply.text
        return self.client.with_(token=reply.json["token"])

    async def passwordless(self, **body: Any) -> AsgiClient:
        reply = await self.claim(passwordless=True, **body)
        assert reply.status == 200, reply.text
        return self.client.with_(token=reply.json["token"])

    async def login(self, password: str = PASSWORD, peer: str = "192.0.2.1", **more: Any) -> Reply:
        client = self.client.with_(peer=peer)
        return await client.post("/api/auth/login", json={"password": password, **more})

    async def signed_in(self, username: str, password: str = PASSWORD) -> AsgiClient:
        reply = await self.login(password, username=username)
        assert reply.status == 200, reply.text
        return self.client.with_(token=reply.json["token"])

    def with_token(self, **claims: Any) -> AsgiClient:
        """A client with a token that is well signed, whatever it says."""
        return self.client.with_(token=signed(claims))


async def open_house(
    database: Database,
    settings: AuthSettings = LOCAL,
    *,
    start: bool = True,
    blocking: Blocking | None = None,
    **policy: Any,
) -> House:
    """Bootstraps; a second house on the same database is a restart."""
    thread = Thread()
    effects = counting_effects(blocking or thread)
    identity = Identity(database, effects, settings)
    nothing = cast("Any", None)
    services = Services(
        config=nothing, effects=effects, database=database, identity=identity, supervisor=nothing, hub=nothing
    )
    undeclared: list[str] = []
    app = App(
        ENDPOINTS,
        services,
        admission=identity,
        sockets=NoSockets(),
        policy=HttpPolicy(
            auth_mode=settings.mode, on_undeclared=lambda name, exc: undeclared.append(f"{name}: {exc!r}"), **policy
        ),
        new_request_id=lambda: "req_1",
    )
    client = AsgiClient(app, peer="192.0.2.1", observers=(SpecObserver(settings.mode.value),))
    house = House(identity, database, settings, effects, thread, app, client, undeclared)
    if start:
        await identity.start()
    return house


def signed(claims: Mapping[str, Any], secret: bytes = SECRET, algorithm: str = "HS256") -> str:
    """Made by the library's own encoder, not by ours."""
    return jwt.PyJWS().encode(json.dumps(claims).encode(), secret, algorithm)


def claims_of(token: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(jwt.PyJWS().decode(token, SECRET, algorithms=["HS256"])))


def seconds_now() -> int:
    return int(now().timestamp())
