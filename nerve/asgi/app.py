"""The ASGI application: endpoints, services and policy in; HTTP, WebSocket and lifespan out."""

from collections.abc import Callable, Sequence
from typing import Generic

import trio

from nerve.asgi.gate import Gate
from nerve.asgi.http import HttpShell
from nerve.asgi.policy import Admission, HttpPolicy, SocketServer
from nerve.asgi.protocol import Receive, Scope, Send
from nerve.asgi.router import Router
from nerve.asgi.websocket import WebSocketShell
from nerve.contract.route import Endpoint, S


class App(Generic[S]):
    """An ASGI 3 callable over its endpoints.

    ``services`` is handed to every handler unseen.  ``new_request_id`` names a request whose client did not;
    ``clock`` is monotonic, in seconds.  Raises ValueError for endpoints that can't be served together, or for a
    malformed entry of the policy.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint[S]],
        services: S,
        *,
        admission: Admission,
        sockets: SocketServer,
        policy: HttpPolicy,
        new_request_id: Callable[[], str],
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        gate = Gate(policy)
        router = Router(endpoints, policy.auth_mode)
        self._http = HttpShell(router, services, gate, admission, policy, new_request_id, clock)
        self._websocket = WebSocketShell(gate, admission, sockets, policy, new_request_id, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "websocket":
                await self._websocket(scope, receive, send)
            case "lifespan":
                await _lifespan(receive, send)
            case other:
                raise ValueError(f"this application speaks no {other!r}")


async def _lifespan(receive: Receive, send: Send) -> None:
    """Says yes to both.  What has to live as long as the server lives around it, not in here."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
