"""One HTTP/1.1 connection as bytes and events.  No I/O: its tests are lists of bytes.

h11 parses the head and frames the response, as in Hypercorn.  Around it stands what h11 leaves open and Hypercorn does
not do: bounds for the head (Hypercorn's hold for incomplete ones only), one meaning for every message (no folded
lines, bare line feeds, doubled or contradictory lengths), and a head, a body and an end that leave in one piece.
"""

import re
from http import HTTPStatus

import h11
from attrs import define

from nerve.asgi.hardened.body import BadBody, Body, ChunkedBody, SizedBody
from nerve.asgi.hardened.limits import Limits

Headers = list[tuple[bytes, bytes]]

# Control characters, line ends that are no CRLF, continuation lines.
_UNCLEAN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)|\n[\t ]")
_LENGTH = re.compile(rb"\r\n(?i:content-length):[\t ]*([^\r]*)")
_ABSOLUTE = re.compile(rb"(?i:https?)://[^/?#]+")
_END = b"\r\n\r\n"
_PHRASES = {status.value: status.phrase.encode("ascii") for status in HTTPStatus}
_EMPTY = SizedBody(0)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BadRequest(Exception):
    """The peer's mistake: answer with ``status`` and close."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class BadResponse(Exception):
    """Our own mistake: the app's response is not what its head announced."""


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
        return [token.strip().lower() for value in self.values(name) for token in value.split(b",") if token.strip()]

    @property
    def wants_websocket(self) -> bool:
        """An upgrade that Connection does not name was not meant for us."""
        return b"websocket" in self.tokens(b"upgrade") and b"upgrade" in self.tokens(b"connection")


class Http1:
    """``feed`` bytes, take heads and body parts; turn responses into bytes.  One request at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._in = bytearray()
        self._seen = 0  # how far the incomplete head has been looked at
        self._skipped = 0
        self._body: Body = _EMPTY
        self._h11 = h11.Connection(h11.SERVER)
        self._expects = False
        self._bodyless = False

    # --- in -------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        self._in += data

    @property
    def buffered(self) -> int:
        """Bytes that have come and were not taken."""
        return len(self._in)

    @property
    def body_complete(self) -> bool:
        return self._body.complete

    def next_head(self) -> Head | None:
        """The next request's head; None until all of it has come.  Raises BadRequest."""
        self._skip_empty_line()
        end = self._in.find(_END, max(0, self._seen - 3))
        if end < 0:
            self._check_partial()
            return None
        raw = bytes(self._in[: end + 4])
        self._check_size(raw, end)
        if _UNCLEAN.search(raw) is not None:
            raise BadRequest(400, "the request's head has characters that it may not have")
        del self._in[: end + 4]
        self._seen = self._skipped = 0
        return self._parse(raw)

    def _skip_empty_line(self) -> None:
        # RFC 9112 2.2: one may stand before a request line.
        if not self._skipped and self._in[:2] == b"\r\n":
            del self._in[:2]
            self._skipped = 1

    def _check_partial(self) -> None:
        """Refuse what can't become a head any more, before its time is over.  Raises BadRequest."""
        part = self._in
        self._check_size(part, len(part))
        if _UNCLEAN.search(part, max(0, self._seen - 1), len(part) - part.endswith(b"\r")) is not None:
            raise BadRequest(400, "the request's head has characters that it may not have")
        self._seen = len(part)

    def _check_size(self, part: bytes | bytearray, size: int) -> None:
        limits = self._limits
        line = part.find(b"\r\n", 0, limits.request_line_bytes + 2)
        if line < 0 and size > limits.request_line_bytes:
            raise BadRequest(414, f"the request line has more than {limits.request_line_bytes} bytes")
        if size > limits.head_bytes:
            raise BadRequest(431, f"the request's head has more than {limits.head_bytes} bytes")
        if part.count(b"\r\n", 0, size) > limits.header_count:
            raise BadRequest(431, f"the request has more than {limits.header_count} headers")

    def _parse(self, raw: bytes) -> Head:
        connection = self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=len(raw) + 1)
        connection.receive_data(raw)
        try:
            request = connection.next_event()
        except h11.RemoteProtocolError as exc:
            raise BadRequest(exc.error_status_hint, "the request's head is malformed") from exc
        if not isinstance(request, h11.Request):
            raise BadRequest(400, "the request's head is malformed")
        head = Head(
            request.method.decode("ascii"),
            request.target,
            request.http_version.decode("ascii"),
            list(request.headers),
        )
        _check_line(head)
        self._body = _body_of(head, _LENGTH.findall(raw))
        expect = head.tokens(b"expect")
        if expect and expect != [b"100-continue"]:
            raise BadRequest(417, "no expectation but 100-continue is met")
        self._expects = bool(expect) and head.version == "1.1" and not self._body.complete
        self._bodyless = head.method == "HEAD"
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

    # --- out ------------------------------------------------------------------------------------------------------

    def start(self, status: int, headers: Headers) -> bytes:
        """The head of a response.  Raises BadResponse."""
        self._bodyless = self._bodyless or status in (204, 304)
        try:
            response = h11.Response(status_code=status, headers=headers, reason=_PHRASES.get(status, b""))
        except h11.LocalProtocolError as exc:
            raise BadResponse(str(exc)) from exc
        return self._send(response)

    def part(self, data: bytes) -> bytes:
        """A piece of the response's body; a request or status that has none drops it.  Raises BadResponse."""
        return b"" if self._bodyless or not data else self._send(h11.Data(data=data))

    def end(self) -> bytes:
        """Raises BadResponse."""
        return self._send(h11.EndOfMessage())

    def _send(self, event: h11.Event) -> bytes:
        try:
            return self._h11.send(event) or b""
        except h11.LocalProtocolError as exc:
            raise BadResponse(str(exc)) from exc

    @property
    def reusable(self) -> bool:
        """Whether another request may follow: both messages are complete, and nobody asked for the end."""
        return self._h11.our_state is h11.DONE and self._body.complete


def _check_line(head: Head) -> None:
    """Raises BadRequest."""
    if head.version not in ("1.1", "1.0"):
        raise BadRequest(505, "HTTP/1.1 is spoken here")
    if head.method == "CONNECT":
        raise BadRequest(501, "this is no proxy")
    target = head.target
    if target[:1] != b"/" and not (target == b"*" and head.method == "OPTIONS") and _ABSOLUTE.match(target) is None:
        raise BadRequest(400, "the request's target is no path")


def _body_of(head: Head, lengths: list[bytes]) -> Body:
    """The framing of the body; every doubtful one is refused (RFC 9112 6.3, 11.2).  Raises BadRequest.

    ``lengths`` are the values as they came: h11 has folded ``5, 5`` and repeated ones into one.
    """
    codings = head.values(b"transfer-encoding")
    if codings:
        if lengths or head.version == "1.0":
            raise BadRequest(400, "the request's length is ambiguous")
        return ChunkedBody()  # h11 has refused every other coding
    if not lengths:
        return _EMPTY
    if len(lengths) > 1 or not lengths[0].strip().isdigit():
        raise BadRequest(400, "the request's length is ambiguous")
    return SizedBody(int(lengths[0]))


def refusal(status: int, detail: str, extra: Headers = []) -> bytes:  # noqa: B006 - never changed
    """A whole response that closes the connection, written without the state of any."""
    content = b'{"detail":"%s"}' % detail.replace('"', "'").encode("ascii", "replace")
    lines = [b"HTTP/1.1 %d %s" % (status, _PHRASES.get(status, b"")), *(b"%s: %s" % pair for pair in extra)]
    lines += [b"content-type: application/json", b"content-length: %d" % len(content), b"connection: close"]
    return b"\r\n".join(lines) + b"\r\n\r\n" + content
