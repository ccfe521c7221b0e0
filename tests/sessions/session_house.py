"""A house in which sessions live: the real app, supervisor, store and scripted runtime, on a clock the test owns.

Who calls is said by the token alone (``alice``, ``bob``, ``system``); signing in has tests of its own.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw
import orjson
import trio
from attrs import define, field

from nerve.adapters.scripted import ScriptedAdapter
from nerve.asgi import App, HttpPolicy
from nerve.config import Config, load
from nerve.contract.caller import Caller, CredentialKind, Credentials
from nerve.effects import ID_FORMS, Effects
from nerve.errors import ErrorCode, NerveError
from nerve.routes import agents, chat, files, queue, scheduling, search, sessions, streams
from nerve.runtime.archiving import Archiver
from nerve.runtime.backends import Backends
from nerve.runtime.creation import SessionMaker
from nerve.runtime.house import SYSTEM_ACTOR
from nerve.runtime.house import House as RuntimeHouse
from nerve.runtime.hub import Hub
from nerve.runtime.limits import Limits
from nerve.runtime.supervisor import Supervisor, open_supervisor
from nerve.services import Services
from nerve.store.database import Database
from nerve.store.rows import insert, scalar
from nerve.ws.server import SocketServer
from tests.asgi_client import AsgiClient, Reply
from tests.spec_client import SpecObserver
from tests.temporary import temporary_files

T = TypeVar("T")

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
ALICE, BOB = "act_alice", "act_bob"
ENDPOINTS = (
    *sessions.ENDPOINTS,
    *files.ENDPOINTS,
    *scheduling.ENDPOINTS,
    *search.ENDPOINTS,
    *streams.ENDPOINTS,
    *chat.ENDPOINTS,
    *queue.ENDPOINTS,
    *agents.ENDPOINTS,
)


def now() -> datetime:
    return START + timedelta(seconds=trio.current_time())


async def blocking(fn: Callable[..., T], /, *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
    await trio.lowlevel.checkpoint()
    return fn(*args)


def counting_ids(start: int = 0) -> Callable[[str], str]:
    counts: Counter[str] = Counter()

    def new_id(kind: str) -> str:
        prefix, digits = ID_FORMS[kind]
        counts[kind] += 1
        return f"{prefix}{start + counts[kind]:0{digits}x}"

    return new_id


class Tokens:
    """Admits whoever is named; a person acts on their own behalf."""

    async def admit(self, credentials: Credentials) -> Caller:
        match credentials.bearer or credentials.cookie or credentials.query:
            case "alice" | "bob" as name:
                return Caller(f"act_{name}", CredentialKind.SESSION, f"acc_{name}", cause_id=f"act_{name}")
            case "system":
                return Caller(SYSTEM_ACTOR, CredentialKind.SYSTEM, cause_id=SYSTEM_ACTOR)
            case "tool":  # an agent's tool in a session that works on alice's behalf
                return Caller(SYSTEM_ACTOR, CredentialKind.MCP, cause_id=ALICE)
            case _:
                raise NerveError(ErrorCode.UNAUTHENTICATED)


class Everybody:
    """What sessions ask of identity."""

    def is_live(self, caller: Caller) -> bool:
        return True


@define(eq=False)
class Listener:
    """A subscriber of the hub that keeps every frame."""

    frames: list[dict[str, Any]] = field(factory=list)
    account_id: str | None = None

    def deliver(self, data: bytes, seq: int | None = None) -> None:
        self.frames.append(orjson.loads(data))

    def close(self, code: int, reason: str = "") -> None:
        raise AssertionError("nothing here closes a socket")

    def of(self, *types: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] in types]


@define
class House:
    """``alice`` and ``bob`` are clients of the app; replies with an undeclared error fail the test."""

    services: Services
    supervisor: Supervisor
    alice: AsgiClient
    undeclared: list[str]

    @property
    def bob(self) -> AsgiClient:
        return self.alice.with_(token="bob")

    def listen(self, *session_ids: str) -> Listener:
        listener = Listener()
        self.services.hub.add(listener)
        for session_id in session_ids:
            self.services.hub.bind(listener, session_id)
        return listener

    async def create(self, **body: Any) -> str:
        reply = await self.alice.post("/api/sessions", json=body)
        assert reply.status == 200, reply.text
        return cast("str", reply.json["id"])

    async def run(self, session_id: str, text: str = "Hello") -> Reply:
        """One whole turn over ``/api/chat``."""
        reply = await self.alice.post("/api/chat", json={"message": text, "session_id": session_id})
        assert reply.status == 200, reply.text
        return reply

    async def row(self, session_id: str) -> dict[str, Any]:
        reply = await self.alice.get(f"/api/sessions/{session_id}")
        assert reply.status == 200, reply.text
        return cast("dict[str, Any]", reply.json)

    async def events(self, session_id: str) -> list[dict[str, Any]]:
        reply = await self.alice.get(f"/api/sessions/{session_id}/events", query={"limit": 1000})
        assert reply.status == 200, reply.text
        return cast("list[dict[str, Any]]", reply.json["events"])

    async def archive(self, session_id: str, **query: Any) -> dict[str, Any]:
        reply = await self.alice.post(f"/api/sessions/{session_id}/archive", query=query)
        assert reply.status == 200, reply.text
        return cast("dict[str, Any]", reply.json)

    async def sql(self, text: str, *bindings: Any) -> list[tuple[Any, ...]]:
        """For what no operation of this part can do or show."""

        def run(db: apsw.Connection) -> list[tuple[Any, ...]]:
            return list(db.execute(text, bindings))

        return await self.services.database.write(run)

    def archiver(self) -> Archiver:
        return Archiver(self.services.database, self.supervisor, self.services.effects)


def play(*steps: str) -> str:
    """A message that the scripted runtime plays."""
    return "\n".join(["#!nerve-scenario", *steps])


async def system_session(house: House, session_id: str, source: str = "cron", **columns: Any) -> str:
    """A session of cron or hook, which this part has no other way to make."""
    await house.sql(
        "INSERT INTO sessions (id, title, source, status, backend, cwd, created_at, updated_at, starred)"
        " VALUES (?1, ?1, ?2, ?3, 'scripted', '/', ?4, ?4, ?5)",
        session_id,
        source,
        columns.get("status", "idle"),
        columns.get("updated_at", "2026-01-01T00:00:00.000Z"),
        columns.get("starred", 0),
    )
    return session_id


def _add_actors(db: apsw.Connection) -> None:
    if scalar(db, "SELECT count(*) FROM actors"):
        return  # a second house on the same database is a restart
    for actor_id, kind in ((SYSTEM_ACTOR, "system"), (ALICE, "human"), (BOB, "human")):
        insert(db, "actors", id=actor_id, kind=kind, created_at=START)


def _config(home: Path, settings: str) -> Config:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(settings)
    environ = {"NERVE_HOME": str(home), "NERVE_WORKSPACE": str(home.parent / "workspace")}
    return load(None, environ, home.parent).config


@asynccontextmanager
async def open_house(
    database: Database,
    home: Path,
    *,
    settings: str = "",
    limits: Limits | None = None,
    token: str = "alice",
    born: int = 0,
    recovered: bool = True,
) -> AsyncIterator[House]:
    """``settings`` is the text of the configuration's base layer; ``born`` tells the ids of a restarted house apart.

    Without ``recovered`` the caller sees to recovery and has the supervisor go on.
    """
    config = _config(home, settings)
    effects = Effects(now=now, new_id=counting_ids(born * 1000), blocking=blocking)
    hub = Hub()
    scripted = ScriptedAdapter(home / "scripted", config.workspace, effects, reply_pace=0.0)
    backends = Backends("scripted", {"scripted": scripted})
    await database.write(_add_actors)
    runtime = RuntimeHouse(database, hub, effects, backends, limits or Limits())
    async with AsyncExitStack() as stack:
        stack.enter_context(temporary_files(home.parent / "tmp"))
        supervisor = await stack.enter_async_context(open_supervisor(runtime))
        await SessionMaker(database, supervisor, effects, config.workspace).ensure_main(SYSTEM_ACTOR)
        if recovered:
            await supervisor.go_on(())
        services = Services(
            config=config,
            effects=effects,
            database=database,
            identity=cast("Any", Everybody()),
            supervisor=supervisor,
            hub=hub,
        )
        undeclared: list[str] = []
        policy = HttpPolicy(on_undeclared=lambda name, exc: undeclared.append(f"{name}: {exc!r}"))
        app = App(
            ENDPOINTS,
            services,
            admission=Tokens(),
            sockets=SocketServer(services),
            policy=policy,
            new_request_id=lambda: "req_1",
        )
        yield House(services, supervisor, AsgiClient(app, token=token, observers=(SpecObserver(),)), undeclared)
        assert undeclared == []
