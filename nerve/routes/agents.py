"""Sub-agents and background tasks over REST (contract chapter Agents)."""

from nerve.contract.caller import Caller
from nerve.contract.generated.agents import (
    AGENTS_GET,
    AGENTS_LIST,
    AGENTS_OUTPUT,
    AGENTS_STOP,
    AGENTS_TRANSCRIPT,
    AgentAtRest,
    AgentDetails,
    AgentOutput,
    AgentsGetParams,
    AgentsListParams,
    AgentsOutputParams,
    AgentsStopParams,
    AgentStopping,
    AgentsTranscriptParams,
    StopAgent,
    TranscriptPage,
)
from nerve.contract.generated.entities import AgentSnapshot
from nerve.contract.route import NoBody, Reply
from nerve.contract.unset import Unset
from nerve.errors import ErrorCode, NerveError
from nerve.routes.binding import bind
from nerve.services import Services

LARGEST_CURSOR = 10**15  # beyond every item; a greater number says the same


async def list_agents(services: Services, caller: Caller, params: AgentsListParams, body: NoBody) -> AgentSnapshot:
    return await services.supervisor.agents.snapshot(params.session_id, params.limit)


async def get(services: Services, caller: Caller, params: AgentsGetParams, body: NoBody) -> AgentDetails:
    return await services.supervisor.agents.details(params.session_id, params.agent_id)


async def transcript(
    services: Services, caller: Caller, params: AgentsTranscriptParams, body: NoBody
) -> TranscriptPage:
    before, after = _cursor(params.before_seq), _cursor(params.after_seq)
    if before is not None and after is not None:
        raise NerveError(ErrorCode.BAD_CURSOR)
    return await services.supervisor.agents.transcript(params.session_id, params.agent_id, before, after, params.limit)


def _cursor(text: str | Unset) -> int | None:
    if isinstance(text, Unset):
        return None
    if not (text.isascii() and text.isdigit()):
        raise NerveError(ErrorCode.BAD_CURSOR)
    digits = text.lstrip("0")
    return int(digits or "0") if len(digits) <= len(str(LARGEST_CURSOR)) else LARGEST_CURSOR


async def output(services: Services, caller: Caller, params: AgentsOutputParams, body: NoBody) -> AgentOutput:
    return await services.supervisor.agents.output(params.session_id, params.agent_id, params.tail_bytes)


async def stop(
    services: Services, caller: Caller, params: AgentsStopParams, stop: StopAgent
) -> AgentStopping | AgentAtRest | Reply[AgentStopping | AgentAtRest]:
    """Replies once the runtime has been asked; that it confirms is told by ``agent_update``."""
    asked = await services.supervisor.agents.stop(
        params.session_id, params.agent_id, caller.actor_id, cascade=stop.cascade
    )
    if not asked.stopping:
        return Reply(AgentAtRest(agent=asked.agent, stopping=[]), 200)
    return AgentStopping(agent=asked.agent, stopping=asked.stopping)


ENDPOINTS = (
    bind(AGENTS_LIST, list_agents),
    bind(AGENTS_GET, get),
    bind(AGENTS_TRANSCRIPT, transcript),
    bind(AGENTS_OUTPUT, output),
    bind(AGENTS_STOP, stop),
)
