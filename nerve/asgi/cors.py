"""Cross-origin answers for the configured origins; the own one needs none, any other gets none."""

from nerve.asgi.head import RequestHead
from nerve.asgi.hosts import OriginRule
from nerve.asgi.protocol import RawHeaders

_REQUEST_HEADERS = b"Authorization, Content-Type, If-Match, Last-Event-ID, X-Request-Id"
_PREFLIGHT_SECONDS = b"600"


class Cors:
    def __init__(self, origins: OriginRule) -> None:
        self._origins = origins
        self._vary: RawHeaders = [(b"vary", b"Origin")] if origins.configured else []

    def headers(self, head: RequestHead) -> RawHeaders:
        """What every reply to this request carries, errors included."""
        if not self._vary or (origin := head.origin) is None or not self._origins.is_configured(origin):
            return self._vary
        return [
            *self._vary,
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-allow-credentials", b"true"),
        ]

    def preflight(self, head: RequestHead, allow: str) -> RawHeaders:
        """What the answer to OPTIONS says beyond ``headers``; nothing unless it is an allowed origin's preflight."""
        origin = head.origin
        if origin is None or b"access-control-request-method" not in head.headers:
            return []
        if not self._origins.is_configured(origin):
            return []
        return [
            (b"access-control-allow-methods", allow.encode("ascii")),
            (b"access-control-allow-headers", _REQUEST_HEADERS),
            (b"access-control-max-age", _PREFLIGHT_SECONDS),
        ]
