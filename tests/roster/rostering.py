"""What tests of the roster say again and again: agents by REST, and what a puppet of a runtime tells of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from attrs import frozen

from nerve.adapters.subagents import AgentSpawned, AgentStarted
from nerve.contract.generated.entities import AgentKind, AgentStatus
from nerve.domain.agents import AgentRecord
from tests.asgi_client import Reply
from tests.runtime.puppets import COMPLETED, Puppet, PuppetAdapter, puppets
from tests.runtime.tabs import Tab, tab
from tests.sessions.session_house import START, House

View = dict[str, Any]

WORKER = "- {agent: build-api, background: true, steps: [wait: 600], result: Built.}"
SERVER = "- {shell: server, command: npm start, output: ['listening on port 3000'], seconds: 600}"


async def roster(house: House, session_id: str, **query: Any) -> dict[str, Any]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/agents", query=query)
    assert reply.status == 200, reply.text
    return dict(reply.json)


async def views(house: House, session_id: str) -> dict[str, View]:
    """Of all agents of the session, by name."""
    return {view["name"]: view for view in (await roster(house, session_id, limit=500))["agents"]}


async def ask(house: House, session_id: str, agent_id: str, what: str = "", **query: Any) -> Reply:
    path = f"/api/sessions/{session_id}/agents/{agent_id}" + (f"/{what}" if what else "")
    return await house.alice.get(path, query=query)


async def page(house: House, session_id: str, agent_id: str, **query: Any) -> dict[str, Any]:
    reply = await ask(house, session_id, agent_id, "transcript", **query)
    assert reply.status == 200, reply.text
    return dict(reply.json)


async def stop_agent(house: House, session_id: str, agent_id: str, **body: Any) -> Reply:
    return await house.alice.post(f"/api/sessions/{session_id}/agents/{agent_id}/stop", json=body)


async def stop(house: House, session_id: str, **body: Any) -> dict[str, Any]:
    reply = await house.alice.post(f"/api/sessions/{session_id}/stop", json=body)
    assert reply.status == 200, reply.text
    return dict(reply.json)


def spawned(ref: str = "ref-1", **facts: Any) -> AgentSpawned:
    known = {"kind": AgentKind.AGENT, "background": True, "name": ref, "spawn_tool_use_id": f"call-{ref}"}
    return AgentSpawned(ref=ref, **{**known, **facts})


def started(ref: str = "ref-1", **facts: Any) -> AgentStarted:
    return AgentStarted(ref=ref, **{"task_id": f"task-{ref}", "task_type": "local_agent", **facts})


def over(session_id: str, number: int, **facts: Any) -> AgentRecord:
    """The record of an agent that was started and has ended before START, the later the greater its number."""
    at = START - timedelta(seconds=1_000 - number)
    known: dict[str, Any] = {"id": f"ag_{number:012x}", "name": f"a{number}", "ref": f"ref-{number}"}
    known |= {"created_at": at, "started_at": at, "ended_at": at, "rev": 1, "status": AgentStatus.STOPPED}
    return AgentRecord(session_id=session_id, backend="scripted", kind=AgentKind.AGENT, **{**known, **facts})


@frozen
class Stage:
    """A session whose runtime is a puppet, and a tab of alice's that is bound to it."""

    house: House
    adapter: PuppetAdapter
    puppet: Puppet
    session_id: str
    tab: Tab

    async def only(self) -> View:
        (view,) = (await roster(self.house, self.session_id))["agents"]
        return dict(view)

    async def told(self) -> None:
        """What the puppet has said so far has been heard."""
        await self.tab.quiet(0.01)


@asynccontextmanager
async def staged(house: House) -> AsyncIterator[Stage]:
    """A turn has ended on it, so that the runtime is open and nothing runs."""
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        puppet.say(COMPLETED)
        await alice.turn()
        yield Stage(house, adapter, puppet, session_id, alice)
