"""The ASGI 3 interface as types, and what is known of a client that is no longer there."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import trio

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

# ASGI 2.4 asks for an OSError from send() to a client that has left; a trio server may let its own through.
GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


class ClientLeft(Exception):
    """The client disconnected before its reply: nobody is there to answer."""
