"""A client of the contract: REST over httpx, WebSocket over trio-websocket.  Knows ``nerve.contract`` and no more."""

from nerve.client.rest import NerveClient, Refusal, open_client
from nerve.client.socket import ClientSocket, ClientTurn, SocketEnded, TurnRefused, open_socket

__all__ = [
    "ClientSocket",
    "ClientTurn",
    "NerveClient",
    "Refusal",
    "SocketEnded",
    "TurnRefused",
    "open_client",
    "open_socket",
]
