"""One HTTP/1.1 connection as bytes and events.  No I/O: its tests are lists of bytes.

h11 parses every head, as in Hypercorn.  Before it stands what h11 leaves open and a server between strangers must not:
folded lines, bare line feeds, doubled lengths, and a bound that holds for complete heads too.
"""

import re

import h11
from attrs import define

from nerve.asgi.hardened.body import BadBody, Body, ChunkedBody, SizedBody
from nerve.asgi.hardened.limits import Limits
from nerve.asgi.hardened.response import Headers, Response

# What no head may have: control characters, line ends that are no CRLF, continuation lines.
_UNCLEAN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)|\n[\t ]")
_LENGTH = re.compile(rb"\r\n(?i:content-length):[\t ]*([^\r]*)")
_ABSOLUTE = re.compile(rb"(?i:https?)://[^/?#]+")
_END = b"\r\n\r\n"
_LENGTH_DIGITS = 18
_SPECIAL = frozenset(
    {
        b"host",
        b"connection",
        b"upgrade",
        b"expect",
        b"content-length",
        b"transfer-encoding",
        b"sec-websocket-key",
        b"sec-websocket-version",
        b"sec-websocket-protocol",
        b"sec-websocket-extensions",
    }
)
_EMPTY = SizedBody(0)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BadRequest(Exception):
    """The peer's mistake: answer with ``status`` and close."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@define(eq=False)
class Head:
    """A request line and its headers, names in lower case.  ``special``: those that this server itself looks at."""

    method: str
    target: bytes
    version: str
    headers: Headers
    special: dict[bytes, list[bytes]]

    def values(self, name: bytes) -> list[bytes]:
        """Of one of ``special``."""
        return self.special.get(name, [])

    def tokens(self, name: bytes) -> list[bytes]:
        """The members of a comma-separated header of ``special``, in lower case."""
        if name not in self.special:
            return []
        stripped = [token.strip(b" \t") for value in self.special[name] for token in value.lower().split(b",")]
        return [token for token in stripped if token]

    @property
    def wants_websocket(self) -> bool:
        """An upgrade that Connection does not name was not meant for us."""
        return b"upgrade" in self.special and (
            b"websocket" in self.tokens(b"upgrade") and b"upgrade" in self.tokens(b"connection")
        )


class Http1:
    """``feed`` bytes, take heads and body parts.  One request at a time: ``response`` writes its answer."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._in = bytearray()
        self._seen = 0  # how far the incomplete head has been looked at
        self._skipped = False
        self._body: Body = _EMPTY
        self._expects = False
        self.response = Response(head_only=False, old=False, close=True)

    @property
    def buffered(self) -> int:
        """Bytes that have come and were not taken."""
        return len(self._in)

    @property
    def body_complete(self) -> bool:
        return self._body.complete

    @property
    def reusable(self) -> bool:
        """Whether another request may follow: both messages are complete, and nobody asked for the end."""
        return self.response.complete and not self.response.closing and self._body.complete

    def feed(self, data: bytes) -> None:
        self._in += data

    def next_head(self) -> Head | None:
        """The next request's head; None until all of it has come.  Raises BadRequest."""
        # RFC 9112 2.2: one empty line may stand before a request line.
        if not self._skipped and self._in[:2] == b"\r\n":
            del self._in[:2]
            self._skipped = True
        end = self._in.find(_END, max(0, self._seen - 3))
        if end < 0:
            self._check_partial()
            return None
        raw = bytes(self._in[: end + 4])
        self._check_size(raw, end)
        del self._in[: end + 4]
        self._seen, self._skipped = 0, False
        return self._parse(raw)

    def _check_partial(self) -> None:
        """Refuse what can't become a head any more, before its time is over.  Raises BadRequest."""
        part = self._in
        self._check_size(part, len(part))
        if _UNCLEAN.search(part, max(0, self._seen - 1), len(part) - part.endswith(b"\r")) is not None:
            raise BadRequest(400, "the request's head is malformed")
        self._seen = len(part)

    def _check_size(self, part: bytes | bytearray, size: int) -> None:
        limits = self._limits
        if size > limits.request_line_bytes and part.find(b"\r\n", 0, limits.request_line_bytes + 2) < 0:
            raise BadRequest(414, f"the request line has more than {limits.request_line_bytes} bytes")
        if size > limits.head_bytes:
            raise BadRequest(431, f"the request's head has more than {limits.head_bytes} bytes")
        if part.count(b"\r\n", 0, size) > limits.header_count:
            raise BadRequest(431, f"the request has more than {limits.header_count} headers")

    def _parse(self, raw: bytes) -> Head:
        if _UNCLEAN.search(raw) is not None:
            raise BadRequest(400, "the request's head is malformed")
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=len(raw) + 1)
        parser.receive_data(raw)
        try:
            request = parser.next_event()
        except h11.RemoteProtocolError as exc:
            raise BadRequest(exc.error_status_hint, "the request's head is malformed") from exc
        if not isinstance(request, h11.Request):
            raise BadRequest(400, "the request's head is malformed")
        headers = list(request.headers)
        special: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            if name in _SPECIAL:
                special.setdefault(name, []).append(value)
        method, version = request.method.decode("ascii"), request.http_version.decode("ascii")
        head = Head(method, request.target, version, headers, special)
        _check_line(head)
        self._body = body = _body_of(head, [length.strip(b" \t") for length in _LENGTH.findall(raw)])
        self._expects = b"expect" in special and _expects(head) and not body.complete
        old = version == "1.0"
        close = old or b"close" in head.tokens(b"connection")
        self.response = Response(head_only=head.method == "HEAD", old=old, close=close)
        return head

    def next_body(self) -> bytes:
        """Body bytes that have come; b"" if there are none.  See ``body_complete``.  Raises BadRequest."""
        if self._body.complete or not self._in:
            return b""
        self._expects = False
        try:
            return self._body.take(self._in)
        except BadBody as exc:
            raise BadRequest(400, str(exc)) from exc

    def invitation(self) -> bytes:
        """What tells a client that waits for it to go on and send its body; b"" if none waits."""
        if not self._expects:
            return b""
        self._expects = False
        return CONTINUE


def _check_line(head: Head) -> None:
    """Raises BadRequest."""
    if head.version != "1.1" and head.version != "1.0":
        raise BadRequest(505, "HTTP/1.1 is spoken here")
    target = head.target
    if target[:1] != b"/" or head.method == "CONNECT":
        if head.method == "CONNECT":
            raise BadRequest(501, "this is no proxy")
        if not (target == b"*" and head.method == "OPTIONS") and _ABSOLUTE.match(target) is None:
            raise BadRequest(400, "the request's target is no path")
    hosts = len(head.values(b"host"))
    if hosts > 1 or (hosts == 0 and head.version == "1.1"):
        raise BadRequest(400, "a request has one Host")


def _body_of(head: Head, lengths: list[bytes]) -> Body:
    """The framing of the body; every doubtful one is refused (RFC 9112 6.3, 11.2).  Raises BadRequest.

    ``lengths`` are the values as they came: h11 folds ``5, 5`` and repeated ones into one.
    """
    codings = head.values(b"transfer-encoding")
    if codings:
        if lengths or head.version == "1.0":
            raise BadRequest(400, "the request's length is ambiguous")
        return ChunkedBody()  # h11 has refused every other coding
    if not lengths:
        return _EMPTY
    if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > _LENGTH_DIGITS:
        raise BadRequest(400, "the request's length is ambiguous")
    return SizedBody(int(lengths[0]))


def _expects(head: Head) -> bool:
    """Raises BadRequest for an expectation that nobody can meet."""
    expectations = head.tokens(b"expect")
    if expectations not in ([], [b"100-continue"]):
        raise BadRequest(417, "no expectation but 100-continue is met")
    return bool(expectations) and head.version == "1.1"
