"""One connection's failure ends that connection only.

In Hypercorn 0.18 an exception in a connection's task leaves ``trio.serve_listeners`` and ends the process: one header
that is no ASCII is enough.
"""

import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator

from nerve.asgi.hardened.wire import Gone

_log = logging.getLogger("nerve.asgi.server")


async def contained(what: str, function: Callable[[], Awaitable[object]]) -> bool:
    """Whether ``function`` ended by itself.  Its Exceptions are logged, once; Cancelled and its like pass.

    A peer that went away (Gone) is nothing to log.
    """
    try:
        await function()
    except Exception as exc:  # noqa: BLE001 - the connection's barrier
        tell(what, exc)
        return False
    except BaseExceptionGroup as group:
        ours, others = group.split(Exception)
        if ours is not None:
            tell(what, ours)
        if others is not None:
            raise others from None
        return False
    return True


def tell(what: str, exc: BaseException) -> None:
    """Log where it happened and what it was, but not its message: that may quote what the client sent."""
    for leaf in _leaves(exc):
        if isinstance(leaf, Gone):
            continue
        _log.error("%s failed: %s\n%s", what, type(leaf).__qualname__, "".join(traceback.format_tb(leaf.__traceback__)))


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for inner in exc.exceptions:
            yield from _leaves(inner)
    else:
        yield exc
