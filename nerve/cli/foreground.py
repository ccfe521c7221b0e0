"""``nerve start --foreground``: opens the house, serves inside it, and takes both down in order."""

import logging
import os
import signal
from collections.abc import AsyncIterator
from functools import partial

import trio
from attrs import frozen

from nerve import __version__
from nerve.app import OpenHouse, open_house
from nerve.asgi.hardened.limits import Limits
from nerve.asgi.server import CannotListen, Listening, Tls, bind, raise_file_limit, serve
from nerve.cli.daemon import DaemonRecord, announced
from nerve.cli.invocation import Failed
from nerve.cli.log_lines import log_to_stderr
from nerve.config import Config, ConfigError, Loaded
from nerve.effects import Effects
from nerve.errors import NerveError
from nerve.identity.service import IdentityUnusable
from nerve.processes import become_subreaper
from nerve.store.failures import StoreUnusable
from nerve.store.lock import HomeLocked

log = logging.getLogger(__name__)

GRACE_SECONDS = 8.0
_AT_ONCE_SECONDS = 1.0

# Reasons that an operator can do something about: one line, no traceback.
_EXPECTED = (ConfigError, HomeLocked, StoreUnusable, IdentityUnusable, CannotListen, NerveError)


@frozen
class Wanted:
    """The options of ``start``; None takes the configuration's."""

    host: str | None
    port: int | None


def serve_foreground(loaded: Loaded, host: str | None, port: int | None, *, verbose: bool) -> None:
    """Serve until a signal says otherwise.  Raises Failed with the reason when the house can't be opened or falls."""
    log_to_stderr(loaded.config.paths.log_file, verbose=verbose)
    raise_file_limit()
    become_subreaper()
    try:
        trio.run(partial(_run, loaded, Wanted(host, port)), strict_exception_groups=True)
    except BaseException as exc:
        reason = _reason(exc)
        if reason is None:
            log.critical("nerve fell", exc_info=exc)
            raise Failed(f"an error nobody expected: {type(exc).__name__}; the log has the details") from None
        raise Failed(reason) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _reason(exc: BaseException) -> str | None:
    """The one line about an error that an operator can do something about; None for any other."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    if isinstance(exc, OSError) and exc.filename is not None:
        return f"{os.fsdecode(exc.filename)} can't be used: {exc.strerror}"
    return str(exc) if isinstance(exc, _EXPECTED) else None


async def _run(loaded: Loaded, wanted: Wanted) -> None:
    stopping = trio.Event()
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_heed, signals, stopping, nursery.cancel_scope, name="signals")
            await _serve(loaded, wanted, stopping)
            nursery.cancel_scope.cancel()


async def _heed(signals: AsyncIterator[int], stopping: trio.Event, whole: trio.CancelScope) -> None:
    """The first signal asks for an orderly end, a second one for the end.  SIGHUP (a closed terminal) is ignored."""
    async for number in signals:
        name = signal.Signals(number).name
        if number == signal.SIGHUP:
            log.info("%s is ignored; the configuration is read at the start", name)
        elif not stopping.is_set():
            log.info("%s: going down", name)
            _last_resort(GRACE_SECONDS)
            stopping.set()
        else:
            log.warning("%s again: going down at once", name)
            _last_resort(_AT_ONCE_SECONDS)
            whole.cancel()


def _last_resort(seconds: float) -> None:
    """Have the kernel end this process, should anything in it not let go by then; nothing acknowledged is lost."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


async def _serve(loaded: Loaded, wanted: Wanted, stopping: trio.Event) -> None:
    config = loaded.config
    host = config.gateway.host if wanted.host is None else wanted.host
    port = config.gateway.port if wanted.port is None else wanted.port
    async with open_house(loaded, Effects(), host) as house:
        listening = bind(host, port, _tls(config))
        try:
            await _serve_inside(house, config, wanted, listening, stopping)
        finally:
            listening.socket.close()
    log.info("closed")


async def _serve_inside(
    house: OpenHouse, config: Config, wanted: Wanted, listening: Listening, stopping: trio.Event
) -> None:
    drained = trio.Event()
    record = DaemonRecord(
        pid=os.getpid(),
        address=listening.address,
        generation=house.generation,
        host=wanted.host,
        port=wanted.port,
    )
    try:
        async with trio.open_nursery() as nursery:
            serving = partial(serve, house.app, listening, until=drained.wait, limits=_limits(config))
            await nursery.start(serving, name="server")
            with announced(config.paths, record):
                log.info("nerve %s listens on %s", __version__, listening.address)
                await stopping.wait()
                await house.close_down()
                drained.set()
    except BaseException:
        # However it falls, a client that does not read must not keep it from falling.
        _last_resort(GRACE_SECONDS)
        raise


def _limits(config: Config) -> Limits:
    gateway = config.gateway
    return Limits(connections=gateway.max_connections, connections_per_peer=gateway.max_connections_per_peer)


def _tls(config: Config) -> Tls | None:
    ssl = config.gateway.ssl
    return None if ssl.cert is None or ssl.key is None else Tls(ssl.cert, ssl.key)
