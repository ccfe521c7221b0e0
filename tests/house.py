"""The whole house in memory: real identity, runtime, sockets and store, on a clock that the test owns.

What ``nerve.app`` puts together is used as it is; only the database runs inline, bcrypt is cheap, time and ids are the
test's, and ``Faults`` can make things go wrong.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import apsw
import jwt
import trio
from attrs import define, evolve, field, frozen

from nerve.app import OpenHouse, auth_settings, living
from nerve.app import Start as ProcessStart
from nerve.asgi import App, HttpPolicy
from nerve.config import Config, Secret, homes, load
from nerve.contract.route import Endpoint
from nerve.effects import ID_FORMS, Effects
from nerve.errors import ErrorCode, NerveError
from nerve.identity.service import AuthSettings, Identity
from nerve.routes import ENDPOINTS
from nerve.services import Services
from nerve.store.database import Database
from nerve.store.inline import open_inline
from nerve.store.instance import SETUP_TOKEN, fact
from nerve.ws.server import SocketServer
from tests.asgi_client import AsgiClient
from tests.conformance.subject import PASSWORD, Start
from tests.spec_client import SpecClient, SpecObserver
from tests.temporary import temporary_files

T = TypeVar("T")

EPOCH = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SECRET = "signing-secret-of-the-tests-0123456789abcdef-0123456789abcdef-01"
GATEWAY_SECRET = "gateway-secret-of-the-tests-0123456789abcdef-0123456789abcdef"


def now() -> datetime:
    return EPOCH + timedelta(seconds=trio.current_time())


class BrokenByTest(RuntimeError):
    """What no handler expects."""


@define(eq=False)
class HouseFaults:
    """Implements ``Faults``."""

    whole: OpenHouse | None = None
    refusal: ErrorCode | None = None
    broken: bool = False
    before_write: Callable[[tuple[Any, ...]], Awaitable[None]] | None = None  # sees the function and its arguments

    def refuse_writes(self, code: str) -> None:
        self.refusal = ErrorCode(code)

    def accept_writes(self) -> None:
        self.refusal = None

    def break_handlers(self) -> None:
        self.broken = True

    def shut_down(self) -> None:
        self._house.supervisor.reception.close()

    async def close_down(self) -> None:
        await self._house.close_down()

    def write_scenario(self, name: str, text: str) -> None:
        directory = self._house.services.config.workspace / "scenarios"
        directory.mkdir(exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")

    def block_uploads(self) -> None:
        (self._house.services.config.workspace / ".uploads").write_text("in the way")

    @property
    def _house(self) -> OpenHouse:
        assert self.whole is not None
        return self.whole

    async def forget_password(self, account_id: str) -> None:
        def forget(db: apsw.Connection) -> None:
            db.execute("UPDATE accounts SET password_hash = NULL WHERE id = ?", (account_id,))

        await self._house.services.database.write(forget)

    def around(self, endpoint: Endpoint[Services]) -> Endpoint[Services]:
        async def handler(services: Services, caller: Any, params: Any, body: Any) -> Any:
            if self.broken:
                raise BrokenByTest
            return await endpoint.handler(services, caller, params, body)

        return Endpoint(endpoint.route, handler)


@frozen
class FaultyDatabase:
    """A database whose writes are refused when the test says so."""

    _database: Database
    _faults: HouseFaults

    async def read(self, fn: Callable[..., T], /, *args: Any) -> T:
        return await self._database.read(fn, *args)

    async def read_large(self, fn: Callable[..., T], /, *args: Any) -> T:
        return await self._database.read_large(fn, *args)

    async def write(self, fn: Callable[..., T], /, *args: Any) -> T:
        if self._faults.refusal is not None:
            await trio.lowlevel.checkpoint()
            raise NerveError(self._faults.refusal)
        if self._faults.before_write is not None:
            await self._faults.before_write((fn, *args))
        return await self._database.write(fn, *args)


@frozen
class HouseKeys:
    """Implements ``Keys`` with the library's own encoder, not ours."""

    def session(self, account_id: str, *, age_seconds: int = 0, life_seconds: int = 3600) -> str:
        return self._signed(SECRET, age_seconds, life_seconds, typ="session", sub=account_id)

    def legacy(self) -> str:
        return self._signed(SECRET, 0, 3600, sub="user")

    def system(self) -> str:
        return self._signed(SECRET, 0, 300, typ="system")

    def mcp(self, session_id: str | None = None) -> str:
        bound = {} if session_id is None else {"nerve_session_id": session_id}
        return self._signed(SECRET, 0, 3600, aud="nerve-mcp", **bound)

    def context(self, subject: str, name: str | None = None) -> str:
        named = {} if name is None else {"name": name}
        return self._signed(GATEWAY_SECRET, 0, 300, sub=subject, **named)

    def _signed(self, secret: str, age_seconds: int, life_seconds: int, **claims: str) -> str:
        issued = int(now().timestamp()) - age_seconds
        return jwt.encode({**claims, "iat": issued, "exp": issued + life_seconds}, secret, "HS256")


@define(eq=False)
class House:
    """Implements ``Subject``.  ``undeclared`` holds what became ``internal`` and was no fault of the test."""

    start: Start
    database: Database
    services: Services
    anyone: SpecClient
    faults: HouseFaults
    keys: HouseKeys
    undeclared: list[str]
    owner: SpecClient = field(init=False)
    _numbers: Any = field(factory=lambda: count(1))

    def __attrs_post_init__(self) -> None:
        self.owner = self.anyone

    @property
    def claim(self) -> dict[str, str]:
        return {"username": "alice", "password": PASSWORD, "display_name": "Alice"}

    async def setup_token(self) -> str:
        token = await self.database.read(fact, SETUP_TOKEN)
        assert token is not None
        return token

    def unique(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"

    async def settle(self) -> None:
        """Bring the instance to its start."""
        match self.start:
            case Start.CLAIMED:
                await self._claim(**self.claim)
            case Start.PASSWORDLESS:
                await self._claim(passwordless=True)
            case Start.EXTERNAL:
                context = self.keys.context("alice@gateway", "Alice")
                self.owner = self.anyone.with_(headers=(("x-nerve-actor-context", context),))
            case Start.UNCLAIMED:
                self.owner = self.anyone.with_(token=self.keys.session(self.account_id()))
            case Start.UNREADY:
                self.owner = self.anyone.with_(token=self.keys.legacy())

    async def _claim(self, **body: Any) -> None:
        answer = await self.anyone.ok("setup.claim", {"setup_token": await self.setup_token(), **body})
        self.owner = self.anyone.with_(token=answer["token"])

    async def copy_disk(self, path: Path) -> None:
        """What a process that is killed at this moment leaves."""
        image = await self.database.read(lambda db: db.serialize("main"))
        path.write_bytes(image)  # noqa: ASYNC240 - in a thread, the clock would run on meanwhile

    def account_id(self) -> str:
        """Of the first account."""
        return self.services.identity.accounts()[0].id


def _effects(lives: int) -> Effects:
    counts: Counter[str] = Counter()

    def new_id(kind: str) -> str:
        prefix, digits = ID_FORMS[kind]
        counts[kind] += 1
        return f"{prefix}{lives * 0x1000 + counts[kind]:0{digits}x}"

    async def blocking(fn: Callable[..., T], /, *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
        async with limiter or trio.CapacityLimiter(1):
            await trio.lowlevel.checkpoint()
            return fn(*args)

    return Effects(now=now, new_id=new_id, secret=lambda size: "setup-" + "x" * size, blocking=blocking)


@asynccontextmanager
async def open_house(
    home: Path,
    start: Start = Start.CLAIMED,
    *,
    settings: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    effects: Effects | None = None,
    disk: Path | None = None,
) -> AsyncIterator[House]:
    """``settings`` are lines of the configuration by section, such as ``{"sessions": "queue_max: 2"}``.

    ``environ`` is what its environment says besides; ``effects`` are real ones where the clock is.  ``disk`` is what
    ``House.copy_disk`` left of an earlier life of this home: this one then is what starts after it.
    """
    config = _configured(home, _settings(start, settings or {}), environ or {})
    faults, effects = HouseFaults(), effects or _effects(0 if disk is None else 1)
    temporary = temporary_files(home.parent / f"{home.name}-temporary")
    with temporary, open_inline(":memory:" if disk is None else disk) as inline:
        database = FaultyDatabase(inline, faults)
        identity = Identity(database, effects, _auth(auth_settings(config, Secret(SECRET)), start))
        await identity.start()
        process = ProcessStart("0" * 16, after_crash=False)
        async with living(config, effects, database, identity, process, "127.0.0.1") as whole:
            faults.whole = whole
            house = _house(whole.services, start, faults, effects)
            if disk is None:
                await house.settle()
            else:
                house.owner = house.anyone.with_(token=house.keys.session(house.account_id()))
            yield house
            faults.accept_writes()
        assert house.undeclared == []


def _configured(home: Path, settings: Mapping[str, str], more: Mapping[str, str]) -> Config:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text("".join(f"{section}: {{{line}}}\n" for section, line in settings.items()))
    environ = {**more, "NERVE_HOME": str(home), "NERVE_WORKSPACE": str(home.parent / f"{home.name}-workspace")}
    config = load(None, environ, home.parent).config
    homes.prepare(config.paths)
    return config


def _settings(start: Start, settings: Mapping[str, str]) -> Mapping[str, str]:
    settings = {"agent": "backend: scripted", **settings}
    if start is not Start.EXTERNAL:
        return settings
    return {"auth": f"mode: external, external: {{secret: {GATEWAY_SECRET}}}", **settings}


def _auth(settings: AuthSettings, start: Start) -> AuthSettings:
    secret = None if start is Start.UNREADY else settings.jwt_secret
    return evolve(settings, bcrypt_cost=4, jwt_secret=secret)


def _house(services: Services, start: Start, faults: HouseFaults, effects: Effects) -> House:
    undeclared: list[str] = []

    def on_undeclared(name: str, error: BaseException) -> None:
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if not isinstance(error, BrokenByTest):
            undeclared.append(f"{name}: {error!r}")

    mode = services.identity.mode
    app = App(
        [faults.around(endpoint) for endpoint in ENDPOINTS],
        services,
        admission=services.identity,
        sockets=SocketServer(services),
        policy=HttpPolicy(auth_mode=mode, on_undeclared=on_undeclared),
        new_request_id=lambda: effects.new_id("request"),
    )
    client = SpecClient(AsgiClient(app, observers=(SpecObserver(mode.value),)), mode.value)
    return House(start, services.database, services, client, faults, HouseKeys(), undeclared)
