"""The bytes of one response: its head, and a body of the length that was announced, in chunks, or up to the end.

No I/O.  What an app says wrongly is its own mistake (BadResponse) and never reaches the wire.
"""

import re
from http import HTTPStatus

Headers = list[tuple[bytes, bytes]]

TOKEN = rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+"
_LINES = re.compile(rb"(?:" + TOKEN + rb": [\t\x20-\x7e\x80-\xff]*\r\n)*")
_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode("ascii")) for status in HTTPStatus
}
_CLOSE, _CHUNKED = b"connection: close\r\n", b"transfer-encoding: chunked\r\n"
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection"})


class BadResponse(Exception):
    """Our own mistake: the app's response is not what its head announced."""


class Response:
    """``start``, any number of ``part``, ``end``.  ``head_only`` for HEAD; ``old`` for HTTP/1.0."""

    def __init__(self, *, head_only: bool, old: bool, close: bool) -> None:
        self._bodyless = head_only
        self._old = old
        self._left: int | None = None  # bytes of the announced length; None for chunks, or up to the end
        self._chunked = False
        self.closing = close  # whether this is the connection's last one
        self.complete = False

    def start(self, status: int, headers: Headers) -> bytes:
        """The head.  Raises BadResponse.

        Connection and Transfer-Encoding are the server's: of the app's, only ``close`` counts.
        """
        if not 200 <= status <= 999:
            raise BadResponse(f"{status} is no status of a response")
        framing = [pair for pair in headers if pair[0].lower() in _FRAMING]
        if framing:
            headers = [pair for pair in headers if pair not in framing]
        block = b"".join([b"%s: %s\r\n" % pair for pair in headers])
        if block.count(b"\r\n") != len(headers) or _LINES.fullmatch(block) is None:
            raise BadResponse("the response has an impossible header")
        empty = self._bodyless or status in (204, 304)
        block += self._frame(framing, empty=empty, lengthless=status == 204)
        self._bodyless = empty
        return (_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status) + block + b"\r\n"

    def _frame(self, framing: Headers, *, empty: bool, lengthless: bool) -> bytes:
        lines, lengths = b"", []
        for name, value in framing:
            match name.lower():
                case b"content-length":
                    lengths.append(value.strip())
                case b"connection" if b"close" in value.lower():
                    self.closing = True
        if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
            raise BadResponse("the response's length is no length")
        if lengths and not lengthless:
            lines = b"content-length: %s\r\n" % lengths[0]
            self._left = int(lengths[0])
        elif self._old:
            self.closing = True
        elif not empty:
            self._chunked = True
            lines = _CHUNKED
        return lines + _CLOSE if self.closing else lines

    def part(self, data: bytes) -> bytes:
        """A piece of the body; a request or status that has none drops it.  Raises BadResponse."""
        if self._bodyless or not data:
            return b""
        if self._chunked:
            return b"%x\r\n%s\r\n" % (len(data), data)
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise BadResponse("the response's body is longer than announced")
        return data

    def end(self) -> bytes:
        """Raises BadResponse."""
        if self._left and not self._bodyless:
            raise BadResponse("the response's body is shorter than announced")
        self.complete = True
        return b"0\r\n\r\n" if self._chunked else b""


def refusal(status: int, detail: str, extra: Headers) -> bytes:
    """A whole response that closes the connection, whatever was said before."""
    content = b'{"detail":"%s"}' % detail.replace('"', "'").encode("ascii", "replace")
    response = Response(head_only=False, old=False, close=True)
    length = (b"content-length", b"%d" % len(content))
    head = response.start(status, [*extra, (b"content-type", b"application/json"), length])
    return head + response.part(content)
