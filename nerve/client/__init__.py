"""A client of the contract, for trio: REST, one WebSocket, and sessions that are followed whatever becomes of the line.

``nerve.client.plain`` is the same for programs without an event loop.  Knows ``nerve.contract`` and no more.
"""

from nerve.client.agents import AgentChange, Roster, Transcript
from nerve.client.backoff import Backoff
from nerve.client.errors import ApiError, SessionGone, SocketEnded, TurnLost, TurnRefused, Unreachable
from nerve.client.following import CaughtUp, Disconnected, LineEvent, LiveEvent, Unanswered, Unconfirmed
from nerve.client.live import LiveSession
from nerve.client.rest import NerveClient, open_client
from nerve.client.socket import ClientSocket, ClientTurn, open_socket
from nerve.client.turns import Phase, TurnWatch

__all__ = [
    "AgentChange",
    "ApiError",
    "Backoff",
    "CaughtUp",
    "ClientSocket",
    "ClientTurn",
    "Disconnected",
    "LineEvent",
    "LiveEvent",
    "LiveSession",
    "NerveClient",
    "Phase",
    "Roster",
    "SessionGone",
    "SocketEnded",
    "Transcript",
    "TurnLost",
    "TurnRefused",
    "TurnWatch",
    "Unanswered",
    "Unconfirmed",
    "Unreachable",
    "open_client",
    "open_socket",
]
