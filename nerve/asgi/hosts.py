"""Which names the server answers to and which origins may act through it (config.md 1.5, decisions D19).

Pure rules over header bytes.  A browser that was tricked into sending a request can forge neither ``Host`` nor
``Origin``, which is all that these rules rest on.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from attrs import field, frozen

_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_.-]{1,254}))(?::([0-9]{0,5}))?")
_ORIGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://(.+)")
_LONGEST = 300  # so that what the caches keep is bounded, too
_DEFAULT_PORTS = {"http": 80, "https": 443}


@frozen
class Authority:
    """A host in its one spelling (lower case, no trailing dot, addresses compressed) and the port, if it was given."""

    host: str
    port: int | None
    address: IPv4Address | IPv6Address | None = None


@frozen
class WebOrigin:
    scheme: str
    host: str
    port: int | None


def parse_authority(text: str) -> Authority | None:
    """``host[:port]`` as of a Host header; None if it is anything else."""
    return _parse_authority(text) if len(text) <= _LONGEST else None


def parse_origin(text: str) -> WebOrigin | None:
    """A serialised origin; None for ``null``, a list or anything malformed.  The scheme's default port is filled in."""
    return _parse_origin(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=512)
def _parse_authority(text: str) -> Authority | None:
    if (found := _AUTHORITY.fullmatch(text)) is None:
        return None
    literal, name, digits = found.groups()
    port = int(digits) if digits else None
    if port is not None and port > 65535:
        return None
    if literal is not None:
        address = _address(literal)
        return Authority(address.compressed, port, address) if isinstance(address, IPv6Address) else None
    host = name.lower().removesuffix(".")
    if not host or host.startswith(".") or ".." in host:
        return None
    address = _address(host)
    return Authority(host if address is None else address.compressed, port, address)


@lru_cache(maxsize=512)
def _parse_origin(text: str) -> WebOrigin | None:
    if (found := _ORIGIN.fullmatch(text)) is None:
        return None
    scheme = found[1].lower()
    authority = parse_authority(found[2])
    return None if authority is None else origin_of(scheme, authority)


def origin_of(scheme: str, authority: Authority) -> WebOrigin:
    port = authority.port if authority.port is not None else _DEFAULT_PORTS.get(scheme)
    return WebOrigin(scheme, authority.host, port)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_loopback(address: IPv4Address | IPv6Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _host(text: str) -> str:
    bare = f"[{text}]" if ":" in text and not text.startswith("[") else text
    authority = parse_authority(bare)
    if authority is None:
        raise ValueError(f"{text!r} is no host name or address")
    return authority.host


@frozen
class HostRule:
    """The allow-list.  Bound to loopback: loopback names; otherwise also any IP literal and the machine's own names."""

    names: frozenset[str]
    loopback_only: bool = field()

    @classmethod
    def of(cls, bind_host: str, allowed_hosts: Iterable[str], machine_names: Iterable[str]) -> "HostRule":
        """Raises ValueError for an entry that is no host name or address."""
        address = _address(bind_host.strip("[]"))
        loopback_only = bind_host.lower() == "localhost" if address is None else _is_loopback(address)
        names = {"localhost", *map(_host, allowed_hosts)}
        if not loopback_only:
            own = [*machine_names, bind_host] if bind_host else list(machine_names)
            names.update(map(_host, own))
        return cls(frozenset(names), loopback_only)

    def accepts(self, authority: Authority) -> bool:
        if authority.host in self.names:
            return True
        # A name can be made to point here by whoever owns it (DNS rebinding); an address literal can't.
        return authority.address is not None and (not self.loopback_only or _is_loopback(authority.address))


@frozen
class OriginRule:
    """Own origin and the configured ones pass; ``configured`` alone get CORS headers."""

    configured: frozenset[WebOrigin]

    @classmethod
    def of(cls, allowed_origins: Iterable[str]) -> "OriginRule":
        """Raises ValueError for an entry that is no origin."""
        parsed = {text: parse_origin(text) for text in allowed_origins}
        for text, origin in parsed.items():
            if origin is None:
                raise ValueError(f"{text!r} is no origin such as https://example.org:8443")
        return cls(frozenset(origin for origin in parsed.values() if origin is not None))

    def is_configured(self, origin: str) -> bool:
        return bool(self.configured) and parse_origin(origin) in self.configured

    def accepts(self, origin: str | None, scheme: str, authority: Authority | None) -> bool:
        """Whether a request to ``scheme://authority`` may come from ``origin``; an absent one (no browser) may."""
        if origin is None:
            return True
        parsed = parse_origin(origin)
        if parsed is None:
            return False
        return parsed in self.configured or (authority is not None and parsed == origin_of(scheme, authority))
