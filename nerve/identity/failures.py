"""How many sign-ins failed of late, and which answers are slowed for it (decisions D20).  No clock, no await."""

from collections import OrderedDict, deque

from attrs import define, field

WINDOW_SECONDS = 15 * 60.0
OF_ONE_NAME = 5
OF_ONE_PEER = 20
_PEERS = 4096


@define
class _Peer:
    """The latest failures of a peer, and of each name there.  More are never looked at."""

    latest: deque[float] = field(factory=lambda: deque(maxlen=OF_ONE_PEER))
    # A name that falls out has twenty later failures of other names behind it, which slow it just as well.
    names: OrderedDict[str, deque[float]] = field(factory=OrderedDict)


class Failures:
    """Remembers a bounded number of peers; times are those of one monotonic clock, in seconds."""

    def __init__(self, peers: int = _PEERS) -> None:
        self._peers: OrderedDict[str, _Peer] = OrderedDict()
        self._most = peers

    def slowed(self, peer: str, name: str, now: float) -> bool:
        """True if an answer to ``peer`` about ``name`` has to take its time."""
        known = self._peers.get(peer)
        if known is None:
            return False
        return _full(known.latest, now) or _full(known.names.get(name, deque(maxlen=OF_ONE_NAME)), now)

    def failed(self, peer: str, name: str, now: float) -> None:
        known = self._peers.setdefault(peer, _Peer())
        self._peers.move_to_end(peer)
        known.latest.append(now)
        known.names.setdefault(name, deque(maxlen=OF_ONE_NAME)).append(now)
        known.names.move_to_end(name)
        if len(known.names) > OF_ONE_PEER:
            known.names.popitem(last=False)
        if len(self._peers) > self._most:
            self._peers.popitem(last=False)

    def succeeded(self, peer: str, name: str) -> None:
        """Clears this pair only: the peer's own tally and its other names stand."""
        if (known := self._peers.get(peer)) is not None:
            known.names.pop(name, None)


def _full(times: deque[float], now: float) -> bool:
    return len(times) == times.maxlen and now - times[0] < WINDOW_SECONDS
