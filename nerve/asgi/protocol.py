"""The ASGI 3 interface as types, and what is known of a client that is no longer there."""

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import trio

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

Watch = Callable[[], AbstractAsyncContextManager[object]]

OnProgress = Callable[[Callable[[], None]], None]

# Our server's extension, a Watch: it gives a block to work in that is cancelled when the client leaves.  Cheaper than a
# task that waits in ``receive``, and only for a request whose body was read to its end.
WATCH = "nerve.watch"

# Our server's extension for sockets: what it is given is called whenever the peer has taken some of what waits, which
# may be a small part of one great message.
PROGRESS = "nerve.progress"

# ASGI 2.4 asks for an OSError from send() to a client that has left; a trio server may let its own through.
GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


class ClientLeft(Exception):
    """The client disconnected before its reply: nobody is there to answer."""
