"""Searching sessions (sessions-and-agents.md section 3)."""

from nerve.contract.caller import Caller
from nerve.contract.generated.search import SEARCH_SESSIONS, FoundSessions, SearchSessionsParams
from nerve.contract.route import NoBody
from nerve.domain.searching import wanted
from nerve.routes.binding import bind
from nerve.services import Services
from nerve.store import search
from nerve.store.session_feeds import with_live


async def find_sessions(
    services: Services, caller: Caller, params: SearchSessionsParams, body: NoBody
) -> FoundSessions:
    rows = await services.database.read_large(search.sessions, wanted(params.q))
    return FoundSessions(sessions=[with_live(row, services.supervisor.live(row[0])) for row in rows])


ENDPOINTS = (bind(SEARCH_SESSIONS, find_sessions),)
