"""Connections above the limits: a 503 for those that can be told, a closed line for the rest."""

import logging

import trio

from nerve.asgi.hardened.containment import contained
from nerve.asgi.hardened.context import Context
from nerve.asgi.hardened.response import refusal
from nerve.asgi.hardened.wire import Gone, Wire

_AT_ONCE = 64  # a flood must not hold files through its refusals
_RETRY_SECONDS = b"5"
_SAY_SECONDS = 60.0
_log = logging.getLogger("nerve.asgi.server")


class TurnedAway:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._room = trio.CapacityLimiter(_AT_ONCE)
        self._count = 0
        self._told_at = -_SAY_SECONDS

    async def tell(self, stream: trio.SocketStream, *, secure: bool) -> None:
        """Waits within ``reset_seconds`` and ``linger_seconds``; closes the socket."""
        self._say()
        wire = Wire(stream.socket, self._context.limits)
        try:
            self._room.acquire_on_behalf_of_nowait(wire)
        except trio.WouldBlock:
            wire.reset()
            return
        try:
            if not secure:  # a TLS handshake costs more than the connection would
                await contained("a refusal", lambda: self._refuse(wire))
        finally:
            self._room.release_on_behalf_of(wire)
            wire.reset()

    def _say(self) -> None:
        """In the log, but not as often as it happens."""
        self._count += 1
        if trio.current_time() - self._told_at >= _SAY_SECONDS:
            self._told_at = trio.current_time()
            _log.warning("too many connections: %d are open, %d were turned away", self._context.total, self._count)
            self._count = 0

    async def _refuse(self, wire: Wire) -> None:
        headers = [(b"retry-after", _RETRY_SECONDS), *self._context.common_headers()]
        try:
            wire.put(refusal(503, "too many connections", headers))
            await wire.finish(linger=True)
        except Gone:
            return
