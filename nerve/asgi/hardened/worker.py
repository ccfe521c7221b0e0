"""In place of ``hypercorn.trio.run.worker_serve``: the same arguments, our own connections, an end that comes.

Hypercorn drops its sockets at the end without a word and then waits for whoever does not read.  Here every WebSocket is
closed first, responses under way get ``graceful_timeout``, and what is left then is reset.
"""

import ssl
from collections.abc import Awaitable, Callable
from functools import partial

import trio
from hypercorn.config import Config, Sockets
from hypercorn.utils import parse_socket_addr, repr_socket_addr

from nerve.asgi.hardened.connection import Connection
from nerve.asgi.hardened.context import Application, Context
from nerve.asgi.hardened.lifespan import lifespan
from nerve.asgi.hardened.limits import Limits
from nerve.asgi.hardened.turned_away import TurnedAway
from nerve.asgi.hardened.wire import Wire


async def worker_serve(
    app: Application,
    config: Config,
    *,
    sockets: Sockets,
    shutdown_trigger: Callable[[], Awaitable[object]] = trio.sleep_forever,
    limits: Limits | None = None,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve listening sockets until ``shutdown_trigger`` returns, then at most ``config.graceful_timeout`` longer.

    Reports its addresses once connections are taken.  Raises what the app's lifespan raises, at once.
    """
    context = Context(app, config, limits or Limits())
    away = TurnedAway(context)
    async with lifespan(context), trio.open_nursery() as service:
        service.start_soon(context.patrol.run)
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                handler = partial(_handle, context, away)
                task_status.started(_listen(accepting, connections, handler, sockets, config))
                await shutdown_trigger()
                accepting.cancel_scope.cancel()
            context.stop()
            connections.cancel_scope.deadline = trio.current_time() + config.graceful_timeout
        service.cancel_scope.cancel()


Handler = Callable[[ssl.SSLContext | None, trio.SocketStream], Awaitable[None]]


def _listen(
    accepting: trio.Nursery, connections: trio.Nursery, handler: Handler, sockets: Sockets, config: Config
) -> list[str]:
    """Take connections from now on; the addresses."""
    addresses = []
    tls = config.create_ssl_context()
    if tls is not None:
        tls.options |= ssl.OP_NO_RENEGOTIATION  # a client could have us do it without end
    for scheme, these, secured in (("https", sockets.secure_sockets, tls), ("http", sockets.insecure_sockets, None)):
        if these:
            listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(sock)) for sock in these]
            take = partial(trio.serve_listeners, partial(handler, secured), listeners, handler_nursery=connections)
            accepting.start_soon(take)
            addresses += [f"{scheme}://{repr_socket_addr(sock.family, sock.getsockname())}" for sock in these]
    return addresses


async def _handle(context: Context, away: TurnedAway, tls: ssl.SSLContext | None, stream: trio.SocketStream) -> None:
    """One accepted connection.  Never raises on its account."""
    try:
        client = parse_socket_addr(stream.socket.family, stream.socket.getpeername())
        server = parse_socket_addr(stream.socket.family, stream.socket.getsockname())
    except OSError:
        return  # gone before it was looked at
    peer = client[0] if client else ""
    if not context.admit(peer):
        await away.tell(stream, secure=tls is not None)
        return
    try:
        wire = Wire(stream.socket, context.limits, tls)
        await Connection(wire, context, secure=tls is not None, client=client, server=server).run()
    finally:
        context.leave(peer)
