"""One HTTP/1.1 connection as bytes and events.  No I/O: its tests are lists of bytes.

In place of h11, which Hypercorn uses: it takes a third of the time of a small request, and it leaves open what a
server between strangers must not (folded lines, bare line feeds, doubled lengths; a bound that holds for incomplete
heads only).  The tests hold what is read here against what h11 reads.
"""

import re

from attrs import define

from nerve.asgi.hardened.body import BadBody, Body, ChunkedBody, SizedBody
from nerve.asgi.hardened.limits import Limits
from nerve.asgi.hardened.response import TOKEN, Headers, Response

# Linear: no two of its parts can match the same byte.
_HEAD = re.compile(
    rb"(" + TOKEN + rb") ([\x21-\x7e]+) HTTP/([0-9]\.[0-9])\r\n"
    rb"((?:" + TOKEN + rb":[\t\x20-\x7e\x80-\xff]*\r\n)*)\r\n"
)  # fmt: skip
_PAIR = re.compile(rb"([^:\r\n]+):([^\r\n]*)\r\n")
# What no head may have, for those that are not complete: control characters, odd line ends, continuation lines.
_UNCLEAN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)|\n[\t ]")
_ABSOLUTE = re.compile(rb"(?i:https?)://[^/?#]+")
_END = b"\r\n\r\n"
_LENGTH_DIGITS = 18
_EMPTY = SizedBody(0)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BadRequest(Exception):
    """The peer's mistake: answer with ``status`` and close."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@define(eq=False)
class Head:
    """A request line and its headers, names in lower case."""

    method: str
    target: bytes
    version: str
    headers: Headers

    def values(self, name: bytes) -> list[bytes]:
        return [value for found, value in self.headers if found == name]

    def tokens(self, name: bytes) -> list[bytes]:
        """The members of a comma-separated header, in lower case."""
        return [
            token.strip(b" \t").lower()
            for found, value in self.headers
            if found == name
            for token in value.split(b",")
            if token.strip(b" \t")
        ]

    @property
    def wants_websocket(self) -> bool:
        """An upgrade that Connection does not name was not meant for us."""
        return b"websocket" in self.tokens(b"upgrade") and b"upgrade" in self.tokens(b"connection")


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
        found = _HEAD.fullmatch(raw)
        if found is None:
            raise BadRequest(400, "the request's head is malformed")
        method, target, version, block = found.groups()
        headers = [(name.lower(), value.strip(b" \t")) for name, value in _PAIR.findall(block)]
        head = Head(method.decode("ascii"), target, version.decode("ascii"), headers)
        _check_line(head)
        self._body = body = _body_of(head)
        names = [name for name, _ in headers]
        self._expects = b"expect" in names and _expects(head) and not body.complete
        old = head.version == "1.0"
        close = old or (b"connection" in names and b"close" in head.tokens(b"connection"))
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


def _body_of(head: Head) -> Body:
    """The framing of the body; every doubtful one is refused (RFC 9112 6.3, 11.2).  Raises BadRequest."""
    lengths = codings = None
    for name, value in head.headers:
        if name == b"content-length":
            lengths = [value] if lengths is None else [*lengths, value]
        elif name == b"transfer-encoding":
            codings = [value] if codings is None else [*codings, value]
    if codings is not None:
        if lengths is not None or head.version == "1.0":
            raise BadRequest(400, "the request's length is ambiguous")
        if len(codings) > 1 or codings[0].lower() != b"chunked":
            raise BadRequest(501, "no transfer coding but chunked is known")
        return ChunkedBody()
    if lengths is None:
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
