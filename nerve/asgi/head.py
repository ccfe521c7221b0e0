"""The head of a request, read once from the ASGI scope into plain values."""

import re
from collections.abc import Callable, Iterable
from urllib.parse import parse_qsl, quote

from attrs import define, field

from nerve.asgi.hosts import Authority, parse_authority
from nerve.asgi.protocol import Scope
from nerve.asgi.proxies import TrustedProxies
from nerve.contract.caller import Credentials

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_ABSOLUTE = re.compile(rb"(?i:https?)://([^/?#]*)(.*)", re.DOTALL)
_SCHEMES = {"ws": "http", "wss": "https"}
_COOKIE = "nerve_token"


@define(eq=False)
class RequestHead:
    """``path`` is raw, without query and authority; ``scheme`` is http or https, of a WebSocket as well.

    ``hosts`` is everything that claims to be the request's host, the one that counts for Origin last; an entry is
    None where the claim is missing or malformed.  ``query`` has no ``token``: that went into ``credentials``.
    """

    method: str
    path: bytes
    headers: dict[bytes, bytes] = field(repr=False)
    query: dict[str, str] = field(repr=False)
    scheme: str
    peer: str
    hosts: tuple[tuple[str, Authority | None], ...]
    request_id: str
    query_token: str | None = field(default=None, repr=False)

    @property
    def origin(self) -> str | None:
        value = self.headers.get(b"origin")
        return None if value is None else value.decode("latin-1")

    @property
    def authority(self) -> Authority | None:
        return self.hosts[-1][1]

    def named(self, names: Iterable[str]) -> dict[str, str]:
        """The headers with these names, as far as they came."""
        found = ((name, self.headers.get(name.lower().encode("latin-1"))) for name in names)
        return {name: value.decode("latin-1").strip() for name, value in found if value is not None}

    def credentials(self, *, external: bool) -> Credentials:
        """Every credential that the request carries; the actor context is looked at in external mode only."""
        headers = self.headers
        context = headers.get(b"x-nerve-actor-context") if external else None
        return Credentials(
            bearer=_bearer(headers.get(b"authorization")),
            cookie=_cookie(headers.get(b"cookie")),
            query=self.query_token,
            actor_context=context.decode("latin-1") if context else None,
            peer=self.peer,
        )


def read_head(scope: Scope, proxies: TrustedProxies, new_request_id: Callable[[], str]) -> RequestHead:
    """Never raises on what a client may send."""
    headers = _headers(scope["headers"])
    raw_path, target_authority = _target(scope)
    client = scope.get("client")
    scheme: str = scope.get("scheme", "http")
    peer: str = client[0] if client else ""
    seen = proxies.seen(peer, _SCHEMES.get(scheme, scheme), headers)
    # RFC 9112 3.2.2: the authority of an absolute target replaces Host.
    claims = [headers.get(b"host", b"") if target_authority is None else target_authority]
    if seen.host is not None:
        claims.append(seen.host)
    query = parse_query(scope.get("query_string", b""))
    wished = headers.get(b"x-request-id")
    return RequestHead(
        method=scope.get("method", "GET"),
        path=raw_path,
        headers=headers,
        query_token=query.pop("token", None) or None,
        query=query,
        scheme=seen.scheme,
        peer=seen.peer,
        hosts=tuple(_claim(raw) for raw in claims),
        request_id=wished.decode() if wished and _REQUEST_ID.fullmatch(wished) else new_request_id(),
    )


def parse_query(raw: bytes) -> dict[str, str]:
    """Of a repeated key the last one counts; bytes that are no UTF-8 are replaced."""
    if not raw:
        return {}
    text = raw.decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="replace"))


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """By lower-case name.  Repeated ones are joined, so that a second Host or Origin makes an invalid value."""
    headers: dict[bytes, bytes] = {}
    for name, value in raw:
        key = name.lower()
        if key in headers:
            headers[key] += (b"; " if key == b"cookie" else b", ") + value
        else:
            headers[key] = value
    return headers


def _target(scope: Scope) -> tuple[bytes, bytes | None]:
    raw = scope.get("raw_path") or quote(scope["path"], safe="/:@!$&'()*+,;=~").encode("ascii")
    if raw[:1] == b"/" or (absolute := _ABSOLUTE.fullmatch(raw)) is None:
        return raw, None
    return absolute[2] or b"/", absolute[1]


def _claim(raw: bytes) -> tuple[str, Authority | None]:
    text = raw.decode("latin-1").strip()
    return text, parse_authority(text)


def _bearer(value: bytes | None) -> str | None:
    if value is None:
        return None
    scheme, _, token = value.partition(b" ")
    return token.strip().decode("latin-1") or None if scheme.lower() == b"bearer" else None


def _cookie(value: bytes | None) -> str | None:
    if value is None:
        return None
    for pair in value.decode("latin-1").split(";"):
        name, _, text = pair.partition("=")
        if name.strip() == _COOKIE:
            return text.strip().strip('"') or None  # a browser sends the most specific of several first
    return None
