"""Sub-agents and background tasks to try things on."""

from tests.conformance.subject import SocketTalk, new_session, script
from tests.spec_client import SpecClient

HELPER = "{agent: helper, background: true, steps: [{wait: 60}], result: done}"
SERVER = "{shell: server, command: make serve, output: [listening], seconds: 60}"


async def playing_agent(client: SpecClient, *steps: str) -> dict[str, str]:
    """The path of the first agent that the steps start, in a session of its own whose turn has ended."""
    session_id = await new_session(client)
    async with client.connect({"session_id": session_id}) as socket:
        talk = SocketTalk(socket, session_id)
        await talk.say(script(*steps))
        await talk.until("session_running", lambda frame: not frame["is_running"])
    snapshot = await client.ok("agents.list", path={"session_id": session_id})
    return {"session_id": session_id, "agent_id": snapshot["agents"][0]["id"]}
