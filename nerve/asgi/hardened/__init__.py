"""Hypercorn's server on trio, hardened: nothing on the wire ends it, hangs it or fills it, and it is quicker.

HTTP/1.1 and WebSocket; no HTTP/2, not even as an upgrade, and no deflate.  Each module says which faults of
Hypercorn 0.18 it cures.  ``http1``, ``body``, ``handshake`` and ``frames`` do no I/O.
"""

from nerve.asgi.hardened import pinned

pinned.check()

from nerve.asgi.hardened.lifespan import LifespanFailed  # noqa: E402 - nothing of Hypercorn before the check
from nerve.asgi.hardened.limits import Limits  # noqa: E402
from nerve.asgi.hardened.pinned import WrongHypercorn  # noqa: E402
from nerve.asgi.hardened.worker import worker_serve  # noqa: E402

__all__ = ["LifespanFailed", "Limits", "WrongHypercorn", "worker_serve"]
