"""One line for each request and socket: who asked for what and how it ended, never a credential or a query."""

import logging
import re

from nerve.asgi.head import RequestHead

_log = logging.getLogger("nerve.access")
_UNSAFE = re.compile(r"[^!-~]")
_LONGEST = 512
_FORMAT = "%s %s %d %.1fms %dB %s %s %s"


def log_access(head: RequestHead, *, method: str, status: int, seconds: float, size: int, actor_id: str | None) -> None:
    """``status`` is the close code for a socket and 499 where the client left before its reply."""
    if not _log.isEnabledFor(logging.INFO):
        return
    line = (
        _plain(method),
        _plain(head.path.decode("latin-1")),
        status,
        seconds * 1000,
        size,
        head.request_id,
        _plain(head.peer) or "-",
        actor_id or "-",
    )
    # Not ``info``, which takes as long again to find out that it was called from here.
    _log.handle(_log.makeRecord(_log.name, logging.INFO, __file__, 0, _FORMAT, line, None))


def _plain(text: str) -> str:
    """Without anything that could forge a line or a column."""
    cut = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return _UNSAFE.sub(lambda found: f"\\x{ord(found[0]):02x}", cut) if _UNSAFE.search(cut) else cut
