"""The declared types of configuration keys: plain Python types, some with a marker in ``Annotated``."""

import ipaddress
import re
from collections.abc import Callable
from enum import Enum
from typing import Annotated
from urllib.parse import urlsplit

from attrs import frozen

from nerve.config.secret import Secret


@frozen
class Between:
    """Inclusive bounds.  Outside them the nearest bound is taken, or with ``clamp`` off the default."""

    low: float
    high: float
    clamp: bool = True


@frozen
class Form:
    """``read`` returns the text in its normal form, and raises ValueError on anything else."""

    read: Callable[[str], str]
    expected: str


class Marker(Enum):
    STRICT = "an unusable value refuses the start, because the default would be the less careful one"
    FREE = "keys below are free-form: never reported as unknown"
    INTEGER_TOO = "an integer is taken as its digits"
    NO_TOO = "false is taken as the text `no`"
    EXPANDED = "a command: a leading ~ and $VAR are expanded"
    IN_WORKSPACE = "a relative path starts at the workspace (elsewhere at $NERVE_HOME)"


STRICT, FREE, IN_WORKSPACE = Marker.STRICT, Marker.FREE, Marker.IN_WORKSPACE

Port = Annotated[int, Between(1, 65_535, clamp=False)]
BindPort = Annotated[int, Between(0, 65_535, clamp=False)]
Count = Annotated[int, Between(0, 10**12)]
Positive = Annotated[int, Between(1, 10**12)]
Fraction = Annotated[float, Between(0, 1)]
Money = Annotated[float, Between(0, 10**9)]
# The upper bounds, a century, keep every instant computed from them inside the calendar.
Days = Annotated[int, Between(0, 36_500)]
DaysFloored = Annotated[int, Between(1, 36_500)]
Hours = Annotated[int, Between(0, 876_000)]
HoursFloored = Annotated[int, Between(1, 876_000)]
Minutes = Annotated[int, Between(0, 52_560_000)]
MinutesFloored = Annotated[int, Between(1, 52_560_000)]
Seconds = Annotated[int, Between(0, 3_153_600_000)]
SecondsFloored = Annotated[int, Between(1, 3_153_600_000)]

Command = Annotated[str, Marker.EXPANDED]

_THINKING = {"max", "high", "medium", "low", "adaptive", "disabled"}
_CLOCK = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_])?")


def _nonblank(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text.strip()


def _clock(text: str) -> str:
    if text.strip() and not _CLOCK.fullmatch(text.strip()):
        raise ValueError
    return text.strip()


def _thinking(text: str) -> str:
    if text not in _THINKING and not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise ValueError
    return text


def _host_name(text: str) -> str:
    name = text.strip().lower().removeprefix("[").removesuffix("]")
    if ":" in name:
        return str(ipaddress.IPv6Address(name))
    if not _HOST.fullmatch(name):
        raise ValueError
    return name


def _origin(text: str) -> str:
    parts = urlsplit(text.strip().lower().removesuffix("/"))
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc or "*" in parts.netloc:
        raise ValueError
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    known = parts.port in (None, {"http": 80, "https": 443}[parts.scheme])
    return f"{parts.scheme}://{host}" if known else f"{parts.scheme}://{host}:{parts.port}"


def _network(text: str) -> str:
    return str(ipaddress.ip_network(text.strip(), strict=False))


Name = Annotated[str, Form(_nonblank, "text that is not blank")]
Clock = Annotated[str, Form(_clock, "a time of day as HH:MM, or nothing")]
Label = Annotated[str, Marker.INTEGER_TOO]
SecretLabel = Annotated[Secret, Marker.INTEGER_TOO]
Thinking = Annotated[
    str,
    Marker.INTEGER_TOO,
    Form(_thinking, "max, high, medium, low, adaptive, disabled or a number of tokens"),
]
HostName = Annotated[str, Form(_host_name, "a host name or address without a port")]
Origin = Annotated[str, Form(_origin, "an origin such as https://example.org:8443")]
Network = Annotated[str, Form(_network, "an IP address or network")]
