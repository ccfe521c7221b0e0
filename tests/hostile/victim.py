"""The process under attack: ``python -m tests.hostile.victim '{"kind": "hardened", "limits": {...}}'``.

Prints its port; SIGTERM asks it to end.  ``stock`` is Hypercorn as it comes, to show that each cure is needed.
"""

import json
import signal
import socket
import sys
from functools import partial
from typing import Any

import trio
from hypercorn.config import Config, Sockets
from hypercorn.trio.run import worker_serve as stock_serve
from hypercorn.utils import wrap_app

from nerve.asgi.hardened import Limits, worker_serve
from tests.hostile.victim_app import VictimApp

GRACE_SECONDS = 1.0


def main(order: dict[str, Any]) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    trio.run(_serve, order, listener)


async def _serve(order: dict[str, Any], listener: socket.socket) -> None:
    config = Config()
    config.include_server_header = False
    config.graceful_timeout = GRACE_SECONDS
    config.shutdown_timeout = GRACE_SECONDS
    config.keep_alive_timeout = order.get("limits", {}).get("idle_seconds", 5)
    config.websocket_max_message_size = 1024 * 1024
    config.websocket_ping_interval = order.get("limits", {}).get("ping_seconds", 20)
    config.certfile, config.keyfile = order.get("cert"), order.get("key")
    sockets = Sockets([listener], [], []) if config.ssl_enabled else Sockets([], [listener], [])
    app = VictimApp(order.get("lifespan", "fine"))
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        wait = partial(anext, aiter(signals))
        if order["kind"] == "stock":
            wrapped = wrap_app(app, config.wsgi_max_body_size, "asgi")  # type: ignore[arg-type]
            await stock_serve(wrapped, config, sockets=sockets, shutdown_trigger=wait)
        else:
            limits = Limits(**order.get("limits", {}))
            await worker_serve(app, config, sockets=sockets, shutdown_trigger=wait, limits=limits)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
