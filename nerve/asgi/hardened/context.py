"""What all connections of one server share."""

from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, Protocol

import trio
from attrs import define, field
from hypercorn.config import Config

from nerve.asgi.hardened.limits import Limits
from nerve.asgi.hardened.patrol import Patrol
from nerve.asgi.protocol import Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Stoppable(Protocol):
    def stop(self) -> None:
        """Come to an end soon; does not wait."""
        ...


@define(eq=False)
class Context:
    """The app, its settings, and who is connected.

    Hypercorn takes every connection it is offered; here they are counted, in all and per peer (decisions D17).
    """

    app: Application
    config: Config
    limits: Limits
    state: dict[str, Any] = field(factory=dict)
    stopping: bool = False
    patrol: Patrol = field(factory=Patrol, init=False)
    connections: set[Stoppable] = field(factory=set, init=False)
    total: int = field(default=0, init=False)
    _per_peer: dict[str, int] = field(factory=dict, init=False)
    _date: tuple[float, list[tuple[bytes, bytes]]] = field(default=(-1.0, []), init=False)

    def admit(self, peer: str) -> bool:
        """Whether one more from this address may come; if so it is counted until ``leave``.

        The addresses of one IPv6 /64, which is what one customer of a network has, count together.
        """
        peer = _household(peer)
        here = self._per_peer.get(peer, 0)
        if self.stopping or self.total >= self.limits.connections:
            return False
        if here >= self.limits.connections_per_peer and not _is_loopback(peer):
            return False
        self._per_peer[peer] = here + 1
        self.total += 1
        return True

    def leave(self, peer: str) -> None:
        self.total -= 1
        peer = _household(peer)
        left = self._per_peer.get(peer, 0) - 1
        if left > 0:
            self._per_peer[peer] = left
        else:
            self._per_peer.pop(peer, None)

    def stop(self) -> None:
        """Have every connection come to an end, and let no new one in."""
        self.stopping = True
        for connection in tuple(self.connections):
            connection.stop()

    def common_headers(self) -> list[tuple[bytes, bytes]]:
        """Hypercorn's own (the date), made once a second instead of once a response."""
        made_at, headers = self._date
        now = trio.current_time()
        if now - made_at >= 1.0 or not headers:
            headers = self.config.response_headers("h11")
            self._date = (now, headers)
        return headers


def _household(peer: str) -> str:
    if ":" not in peer or not isinstance(address := ip_address(peer.partition("%")[0]), IPv6Address):
        return peer
    if address.ipv4_mapped is not None or address.is_loopback:
        return peer
    return str(IPv6Network((int(address), 64), strict=False).network_address)


def _is_loopback(peer: str) -> bool:
    try:
        address = ip_address(peer)
    except ValueError:
        return not peer  # a socket of this machine's file system has no address
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
