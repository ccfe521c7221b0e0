"""The composition root: opens the house in its order, hands every part the others it needs, and closes it again.

Start (sessions-and-agents.md 19): home, lock, database, start recorded, identity, ``main``, recovery, supervisor, app.
"""

import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import trio
from attrs import frozen

from nerve.asgi import App, HttpPolicy
from nerve.asgi.hosts import HostRule
from nerve.config import Config, ConfigError, Loaded, Secret, homes
from nerve.contract.route import AuthMode
from nerve.domain.cleanup import Policy
from nerve.effects import Effects
from nerve.errors import NerveError
from nerve.identity.service import AuthSettings, Identity
from nerve.processes import open_children
from nerve.routes import ENDPOINTS
from nerve.runtime.archiving import Archiver
from nerve.runtime.creation import SessionMaker
from nerve.runtime.house import SYSTEM_ACTOR, House
from nerve.runtime.hub import ACCOUNT_DISABLED, Hub
from nerve.runtime.limits import Limits
from nerve.runtime.recovery import recover
from nerve.runtime.supervisor import Supervisor, open_supervisor
from nerve.runtime.upkeep import Keeping, Upkeep
from nerve.runtime.uploads import Uploads
from nerve.runtimes import backends_of
from nerve.services import Services
from nerve.store import starts
from nerve.store.database import Database
from nerve.store.failures import StoreCorrupt
from nerve.store.health import quick_check
from nerve.store.lock import home_lock
from nerve.store.threads import open_database
from nerve.ws.server import SocketServer

log = logging.getLogger(__name__)

DRAIN_SECONDS = 5.0
FLUSH_SECONDS = 6.0  # from the first word on, so that the rest of the grace is the server's and the store's
PATIENCE_SECONDS = 2.0
GOING_DOWN = 1012


@frozen(eq=False)
class OpenHouse:
    """Everything is ready to be served."""

    app: App[Services]
    services: Services
    supervisor: Supervisor
    hub: Hub
    generation: str

    async def close_down(self) -> None:
        """Refuse, drain while the server still serves, then close the sockets once they have what waits for them.

        Waits at most ``DRAIN_SECONDS`` for the turns and until ``FLUSH_SECONDS`` for sockets, as long as they take
        something every ``PATIENCE_SECONDS``.
        """
        flushed = trio.current_time() + FLUSH_SECONDS
        self.supervisor.reception.close()
        with trio.move_on_after(DRAIN_SECONDS) as patience:
            await self.supervisor.drain()
        if patience.cancelled_caught:
            log.warning("what runs did not end in time; the next start records it as interrupted")
        self.hub.close_all(GOING_DOWN, "restarting")
        # The server's own end would cut off what a socket has not been sent yet.
        with trio.move_on_at(flushed):
            await self.hub.until_left(PATIENCE_SECONDS)


@asynccontextmanager
async def open_house(loaded: Loaded, effects: Effects, bind_host: str) -> AsyncIterator[OpenHouse]:
    """The house of one home, recovered and ready, as long as the block lasts.

    ``bind_host`` is where it is going to be served.  Raises ConfigError, HomeLocked, IdentityUnusable, or what opening
    the database raises; also later, when what lives in here falls: the block is then cancelled.
    """
    config = loaded.config
    try:
        HostRule.of(bind_host, (), ())
    except ValueError:
        raise ConfigError(f"gateway.host: {bind_host!r} is neither an address nor a host name") from None
    homes.prepare(config.paths)
    with home_lock(config.paths.home):
        _tell(loaded.warnings)
        _tell(homes.write_pointer(config.paths))
        secret, warnings = homes.signing_secret(config, effects.secret)
        _tell(warnings)
        async with open_database(config.paths.database) as database, _recorded_start(database, effects) as start:
            identity = Identity(database, effects, auth_settings(config, secret))
            await identity.start()
            _refuse_open_door(config, identity, bind_host)
            async with living(config, effects, database, identity, start, bind_host) as house:
                yield house


@frozen
class Start:
    """``generation`` names this process; ``after_crash``: the one before did not end cleanly."""

    generation: str
    after_crash: bool


@asynccontextmanager
async def _recorded_start(database: Database, effects: Effects) -> AsyncIterator[Start]:
    """What the loop breaker counts (decisions D8): left by an exception, the start has not ended cleanly."""
    start = Start(effects.new_id("generation"), await database.read(starts.last_was_unclean))
    await database.write(starts.begin, start.generation, effects.now())
    yield start
    with trio.CancelScope(shield=True):
        try:
            await database.write(starts.end, start.generation, effects.now())
        except NerveError as refused:
            log.warning("the end of this start is not recorded: %s", refused)


@asynccontextmanager
async def living(
    config: Config, effects: Effects, database: Database, identity: Identity, start: Start, bind_host: str
) -> AsyncIterator[OpenHouse]:
    """The house over a database and an identity that are open already: recovered and ready as long as the block lasts.

    ``identity`` has been started, ``start`` is on record.  Owns two nurseries, the supervisor's and that of what
    watches over the house: what falls in them cancels the block and is raised from it.  Raises what the store raises.
    """
    hub = Hub()
    async with (
        open_children(identity.home_id, config.environment.inherited, effects.blocking) as children,
        open_supervisor(
            House(database, hub, effects, backends_of(config, effects, children), _limits(config))
        ) as supervisor,
    ):
        if start.after_crash and (ended := await children.end_survivors()):
            log.warning("%d processes of the last one's agents were still running and have been ended", ended)
        maker = SessionMaker(database, supervisor, effects, config.workspace, config.paths.home)
        await maker.ensure_main(SYSTEM_ACTOR)
        recovered = await recover(supervisor.house, start.generation)
        if recovered.interrupted:
            log.warning("%d turns were interrupted by the end of the last process", len(recovered.interrupted))
        services = Services(
            config=config,
            effects=effects,
            database=database,
            identity=identity,
            supervisor=supervisor,
            hub=hub,
            generation=start.generation,
        )
        app = App(
            ENDPOINTS,
            services,
            admission=identity,
            sockets=SocketServer(services),
            policy=_policy(config, bind_host),
            new_request_id=lambda: effects.new_id("request"),
        )
        unsubscribe = identity.on_disabled(
            lambda account_id: hub.close_account(account_id, ACCOUNT_DISABLED, "account disabled")
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(identity.watch, name="identity")
            nursery.start_soon(upkeep(config, services).run, name="upkeep")
            nursery.start_soon(Uploads(database, effects, config.workspace).keep_clean, name="uploads")
            nursery.start_soon(_survive, database, start.generation, name="survival")
            if start.after_crash:
                nursery.start_soon(_check, database, name="database check")
            await supervisor.go_on(recovered.waiting)
            yield OpenHouse(app, services, supervisor, hub, start.generation)
            nursery.cancel_scope.cancel()
        unsubscribe()


async def _survive(database: Database, generation: str) -> None:
    await trio.sleep(starts.QUICK_SECONDS)
    try:
        await database.write(starts.survived, generation)
    except NerveError as refused:
        log.warning("this start is not recorded as a long one: %s", refused)


async def _check(database: Database) -> None:
    """Look for damage after an unclean end.  Raises StoreCorrupt, which takes the house down."""
    problems = await database.read_large(quick_check)
    for problem in problems:
        log.critical("the database is damaged: %s", problem)
    if problems:
        raise StoreCorrupt(f"the database is damaged: {problems[0]}")
    log.info("the last process did not end cleanly; the database is sound")


def auth_settings(config: Config, secret: Secret | None) -> AuthSettings:
    """What identity needs of the configuration; ``secret`` signs its tokens, None where there is none to be had."""
    auth = config.auth
    return AuthSettings(
        mode=AuthMode(auth.mode),
        jwt_secret=None if secret is None else secret.reveal().encode(),
        jwt_expiry_hours=auth.jwt_expiry_hours,
        password_hash=auth.password_hash.reveal() or None,
        external_secret=auth.external.secret.reveal().encode() or None,
    )


def _refuse_open_door(config: Config, identity: Identity, bind_host: str) -> None:
    if not identity.open_to_anyone or config.gateway.allow_passwordless_remote:
        return
    if not HostRule.of(bind_host, (), ()).loopback_only:
        raise ConfigError(
            f"this instance has no password, and {bind_host} can be reached from other machines: set a password, "
            "listen on 127.0.0.1, or set gateway.allow_passwordless_remote"
        )


def _limits(config: Config) -> Limits:
    sessions, agent = config.sessions, config.agent
    # Zero means never for both.
    idle, silence = sessions.client_idle_timeout_minutes * 60.0, agent.cli_idle_timeout_seconds
    return Limits(
        max_concurrent=agent.max_concurrent,
        queue_max=sessions.queue_max,
        log_frames=sessions.event_log_frames,
        log_age=timedelta(hours=sessions.event_log_hours),
        client_idle_seconds=idle or float("inf"),
        silence_seconds=silence or float("inf"),
        quiet_after_minutes=agent.subagents.quiet_after_minutes,
        ended_agents_kept=timedelta(days=agent.subagents.ended_retention_days),
        transcript_item_bytes=agent.subagents.transcript_item_max_bytes,
    )


def upkeep(config: Config, services: Services) -> Upkeep:
    """What the house does by itself every few hours, as the configuration has it."""
    sessions, retention = config.sessions, config.retention
    policy = Policy(
        interactive_after=timedelta(hours=sessions.interactive_archive_after_hours),
        stale_after=timedelta(days=sessions.archive_after_days),
        max_sessions=sessions.max_sessions,
    )
    keeping = Keeping(
        kept=timedelta(days=retention.retention_days),
        kept_full=timedelta(days=retention.retention_full_days),
        interval=timedelta(hours=retention.interval_hours),
    )
    archiver = Archiver(services.database, services.supervisor, services.effects)
    kept = timedelta(days=config.agent.subagents.ended_retention_days)
    return Upkeep(services.database, services.effects, archiver, policy, keeping if retention.enabled else None, kept)


def _policy(config: Config, bind_host: str) -> HttpPolicy:
    gateway = config.gateway
    return HttpPolicy(
        bind_host=bind_host,
        allowed_hosts=gateway.allowed_hosts,
        machine_names=_machine_names(),
        allowed_origins=gateway.allowed_origins,
        trusted_proxies=gateway.trusted_proxies,
        max_body_bytes=gateway.max_body_bytes,
        auth_mode=AuthMode(config.auth.mode),
    )


def _machine_names() -> tuple[str, ...]:
    """Without a look-up, which could wait for a network."""
    names = [socket.gethostname()]
    names.append(names[0].partition(".")[0])
    usable = []
    for name in dict.fromkeys(names):
        with contextlib.suppress(ValueError):
            HostRule.of("127.0.0.1", (name,), ())
            usable.append(name)
    return tuple(usable)


def _tell(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        log.warning("%s", warning)


__all__ = ["OpenHouse", "Start", "auth_settings", "living", "open_house", "upkeep"]
