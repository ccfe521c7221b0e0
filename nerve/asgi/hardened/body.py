"""The framing of a request body, strictly: a length, or chunks.  No I/O.

h11 reads chunks leniently (bare line feeds, white space, any trailer); a proxy in front that reads them in another way
would see other requests than this server, which is how requests are smuggled.
"""

import re

_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\t\x20-\x7e\x80-\xff]*)?")
_LINE_BYTES = 1024


class BadBody(Exception):
    """The bytes are no body of the announced framing."""


class SizedBody:
    """As many bytes as Content-Length says."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.complete = size == 0

    def take(self, buffer: bytearray) -> bytes:
        """Body bytes from the front of ``buffer``; b"" if it has none."""
        part = bytes(buffer[: self._left])
        del buffer[: len(part)]
        self._left -= len(part)
        self.complete = self._left == 0
        return part


class ChunkedBody:
    """Chunks; their extensions are dropped, trailers are refused: nothing here has a use for them."""

    def __init__(self) -> None:
        self._left = 0
        self._after_chunk = False
        self._last = False
        self.complete = False

    def take(self, buffer: bytearray) -> bytes:
        """Body bytes from the front of ``buffer``, of all chunks that are in it.  Raises BadBody."""
        parts = []
        while not self.complete:
            if self._left:
                part = bytes(buffer[: self._left])
                if not part:
                    break
                del buffer[: len(part)]
                self._left -= len(part)
                self._after_chunk = self._left == 0
                parts.append(part)
            elif not self._take_line(buffer):
                break
        return b"".join(parts)

    def _take_line(self, buffer: bytearray) -> bool:
        """The end of a chunk, the head of the next one, or the end of all; False if it has not come yet."""
        end = buffer.find(b"\r\n", 0, _LINE_BYTES)
        if end < 0:
            if len(buffer) >= _LINE_BYTES or b"\n" in buffer:
                raise BadBody("a chunk's head has no end")
            if (self._after_chunk or self._last) and bytes(buffer) not in (b"", b"\r"):
                raise BadBody("a chunk has no end")
            return False
        line = bytes(buffer[:end])
        if self._after_chunk or self._last:
            if line:
                raise BadBody("a chunk is longer than it says" if self._after_chunk else "trailers are not taken")
            self.complete = self._last
            self._after_chunk = False
        elif (found := _CHUNK_LINE.fullmatch(line)) is None:
            raise BadBody("a chunk's size is no number")
        else:
            self._left = int(found[1], 16)
            self._last = self._left == 0
        del buffer[: end + 2]
        return True


Body = SizedBody | ChunkedBody
