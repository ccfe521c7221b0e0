"""What a trusted proxy may say about the request it passes on (config.md 1.5, ``gateway.trusted_proxies``).

``X-Forwarded-For``, ``-Proto`` and ``-Host`` count only from a trusted peer.  ``Forwarded`` (RFC 7239) never does:
proxies that write the first three pass a client's own ``Forwarded`` through unchanged.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from attrs import frozen

from nerve.asgi.hosts import parse_authority

_SCHEMES = {b"http": "http", b"https": "https", b"ws": "http", b"wss": "https"}
_MAX_HOPS = 32


@frozen
class Forwarded:
    """The request as its first trusted proxy received it; ``host`` None means that no proxy replaced it."""

    peer: str
    scheme: str
    host: bytes | None = None


@frozen
class TrustedProxies:
    networks: tuple[IPv4Network | IPv6Network, ...]

    @classmethod
    def of(cls, entries: Iterable[str]) -> "TrustedProxies":
        """Addresses and CIDR networks.  Raises ValueError for anything else."""
        return cls(tuple(ip_network(entry, strict=False) for entry in entries))

    def trusts(self, peer: str) -> bool:
        if not self.networks:
            return False
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return any((mapped or address) in network for network in self.networks)

    def seen(self, peer: str, scheme: str, headers: Mapping[bytes, bytes]) -> Forwarded:
        """Who really asks, and for what.  Of a list the last entry counts: the nearest proxy wrote it."""
        if not self.trusts(peer):
            return Forwarded(peer, scheme)
        scheme = _SCHEMES.get(_last(headers.get(b"x-forwarded-proto", b"")).lower(), scheme)
        host = _last(headers.get(b"x-forwarded-host", b"")) or None
        return Forwarded(self._client(peer, headers.get(b"x-forwarded-for", b"")), scheme, host)

    def _client(self, peer: str, forwarded_for: bytes) -> str:
        """Walk from the nearest hop outwards; the first one that is not ours to trust is the client."""
        for entry in reversed(forwarded_for.decode("latin-1").split(",")[-_MAX_HOPS:]):
            address = _without_port(entry.strip())
            if address is None:
                break
            peer = address
            if not self.trusts(peer):
                break
        return peer


def _last(value: bytes) -> bytes:
    return value.rpartition(b",")[2].strip()


def _without_port(entry: str) -> str | None:
    try:
        return ip_address(entry).compressed
    except ValueError:
        authority = parse_authority(entry)
        return None if authority is None or authority.address is None else authority.address.compressed
