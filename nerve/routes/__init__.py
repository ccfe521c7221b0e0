"""The front door: every endpoint of the server, by chapter of the contract.

Each module holds the handlers of one chapter and ends with the table of its endpoints.  A documented operation without
a handler, or with two, never starts: importing this package fails.
"""

from collections import Counter

from nerve.contract.generated.routes import ROUTES
from nerve.contract.route import Endpoint
from nerve.routes import (
    accounts,
    actors,
    agents,
    auth,
    chat,
    files,
    health,
    meta,
    queue,
    scheduling,
    search,
    sessions,
    setup,
    streams,
)
from nerve.services import Services


def complete(endpoints: tuple[Endpoint[Services], ...]) -> tuple[Endpoint[Services], ...]:
    """The table itself if it has each operation of spec/ exactly once.  Raises RuntimeError."""
    bound = Counter(endpoint.route.operation_id for endpoint in endpoints)
    declared = Counter(route.operation_id for route in ROUTES)
    if bound != declared:
        wrong = sorted(((bound - declared) + (declared - bound)).keys())
        raise RuntimeError(f"operations and handlers differ: {', '.join(wrong)}")
    return endpoints


ENDPOINTS: tuple[Endpoint[Services], ...] = complete(
    (
        *health.ENDPOINTS,
        *meta.ENDPOINTS,
        *auth.ENDPOINTS,
        *setup.ENDPOINTS,
        *accounts.ENDPOINTS,
        *actors.ENDPOINTS,
        *sessions.ENDPOINTS,
        *scheduling.ENDPOINTS,
        *search.ENDPOINTS,
        *streams.ENDPOINTS,
        *files.ENDPOINTS,
        *chat.ENDPOINTS,
        *queue.ENDPOINTS,
        *agents.ENDPOINTS,
    )
)
