"""The front door: every endpoint of the server, by chapter of the contract.

Each module holds the handlers of one chapter and ends with the table of its endpoints; ``asgi/`` refuses to start when
this table and the generated route table differ.
"""

from nerve.contract.route import Endpoint
from nerve.routes import accounts, actors, auth, chat, health, meta, queue, sessions, setup
from nerve.services import Services

ENDPOINTS: tuple[Endpoint[Services], ...] = (
    *health.ENDPOINTS,
    *meta.ENDPOINTS,
    *auth.ENDPOINTS,
    *setup.ENDPOINTS,
    *accounts.ENDPOINTS,
    *actors.ENDPOINTS,
    *sessions.ENDPOINTS,
    *chat.ENDPOINTS,
    *queue.ENDPOINTS,
)
