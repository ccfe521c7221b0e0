"""Listening, and serving an ASGI application with the hardened Hypercorn on trio, until asked to end.

HTTP/1.1 and WebSocket, plain or TLS.
"""

import errno
import logging
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import trio
from attrs import evolve, frozen
from hypercorn.config import Config as HypercornConfig
from hypercorn.config import Sockets

from nerve.asgi.hardened import Limits, worker_serve
from nerve.asgi.protocol import Receive, Scope, Send

BACKLOG = 1024
GRACEFUL_SECONDS = 1.5  # for connections that are still answering when the server ends
RESERVED_FILES = 128  # for the store, the agents and the log, whoever is connected

_LIMITS = Limits()
_log = logging.getLogger("nerve.asgi.server")

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class CannotListen(Exception):
    """The address can't be used; the message is for the operator."""


@frozen
class Tls:
    cert: Path
    key: Path


@frozen(eq=False)
class Listening:
    """A bound socket that doesn't take connections yet; ``address`` is its URL."""

    socket: socket.socket
    address: str
    tls: Tls | None = None


def bind(host: str, port: int, tls: Tls | None = None) -> Listening:
    """Bind, with port 0 to any free port.  Raises CannotListen."""
    shown = f"[{host}]" if ":" in host else host
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(f"{shown}:{port} can't be listened on: {_reason(error)}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(where)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise CannotListen(f"{shown}:{port} can't be listened on: {_reason(error)}") from None
    scheme = "http" if tls is None else "https"
    return Listening(listener, f"{scheme}://{shown}:{listener.getsockname()[1]}", tls)


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program uses this port"
    if error.errno == errno.EACCES:
        return "this user may not use this port"
    return error.strerror or "the name is not known"


async def serve(
    app: Application,
    listening: Listening,
    *,
    until: Callable[[], Awaitable[object]],
    limits: Limits = _LIMITS,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``until`` returns, then at most ``GRACEFUL_SECONDS`` for what is under way; closes the socket.

    WebSockets still open then are closed with 1012; whoever does not let go is reset.  Reports as started once
    connections are taken.  Raises CannotListen for a certificate that can't be used.
    """
    config = _config(listening)
    try:
        config.create_ssl_context()
    except (OSError, ValueError) as error:
        raise CannotListen(f"the certificate of gateway.ssl can't be used: {error}") from None
    listening.socket.listen(BACKLOG)
    secure, plain = ([listening.socket], []) if listening.tls else ([], [listening.socket])
    serving = partial(
        worker_serve,
        app,
        config,
        sockets=Sockets(secure, plain, []),
        shutdown_trigger=until,
        limits=within_file_limit(limits),
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(serving)
        task_status.started()


def within_file_limit(limits: Limits) -> Limits:
    """Take no more connections than there can be files: what the house itself opens must not fail for them."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or limits.connections <= soft - RESERVED_FILES:
        return limits
    most = max(1, soft - RESERVED_FILES)
    _log.warning("%d open files allow %d connections at once, not %d", soft, most, limits.connections)
    return evolve(limits, connections=most)


def _config(listening: Listening) -> HypercornConfig:
    config = HypercornConfig()
    config.worker_class = "trio"
    config.alpn_protocols = ["http/1.1"]
    config.accesslog = None  # the application writes its own, without credentials
    config.include_server_header = False
    config.graceful_timeout = GRACEFUL_SECONDS
    config.shutdown_timeout = GRACEFUL_SECONDS
    if listening.tls is not None:
        config.certfile = os.fspath(listening.tls.cert)
        config.keyfile = os.fspath(listening.tls.key)
    return config


def raise_file_limit() -> int:
    """Raise the soft limit of open files to the hard one (decisions D17); what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # systems that report no limit and yet have one
            return soft
    return hard
