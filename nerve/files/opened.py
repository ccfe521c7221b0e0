"""A file that is open to be sent."""

import os
from contextlib import suppress

PIECE_BYTES = 64 * 1024


class OpenedFile:
    """Owns the descriptor; closes it at the latest when nobody holds the object any more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read(self, offset: int) -> bytes:
        """A piece from there on; b"" at the end.  Blocks."""
        return os.pread(self._descriptor, PIECE_BYTES, offset)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()
