"""Reading a peer's address."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address


def _address(peer: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(peer)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def is_loopback(peer: str) -> bool:
    address = _address(peer)
    return address is not None and address.is_loopback


def household(peer: str) -> str:
    """What counts as one peer: an IPv4 address, or the /64 that an IPv6 network gives to one customer."""
    address = _address(peer)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), 64), strict=False))
    return peer if address is None else str(address)
