"""Bytes to models and back: routing, body limits, the HTTP and the WebSocket shell.

Owns the order in which a request is decided and every header of a reply.  Knows no handler, no store and no token: it
is handed its endpoints, an ``Admission`` and a ``SocketServer``.
"""

from nerve.asgi.app import App
from nerve.asgi.policy import Admission, HttpPolicy, SocketServer
from nerve.asgi.protocol import Message, Receive, Scope, Send
from nerve.asgi.socket import Socket, SocketClosed

__all__ = [
    "Admission",
    "App",
    "HttpPolicy",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "Socket",
    "SocketClosed",
    "SocketServer",
]
