"""Server frames made short, and what a recorded transcript holds of them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from nerve.client.socket import read_frame
from nerve.contract import codec
from nerve.contract.generated.frames_server import ServerFrame
from tests.contract.spec_reader import SERVER, TRANSCRIPTS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
_COUNTS = (
    *("total", "live", "starting", "running", "stopping", "completed", "failed", "stopped", "interrupted", "lost"),
    *("attention", "shells_live", "tokens"),
)
SUMMARY: dict[str, Any] = {**dict.fromkeys(_COUNTS, 0), "cost_usd": 0.0, "oldest_live_started_at": None}
CAPABILITIES = {
    "stop_task": True,
    "transcript": True,
    "output": True,
    "interrupt_spares_background": True,
    "quiet_after_minutes": 10,
}


def frame(kind: str, seq: int | None = None, session_id: str = "main", **fields: Any) -> ServerFrame:
    """A frame of a session as the codec reads it."""
    numbered = {} if seq is None else {"seq": seq}
    made = read_frame({"type": kind, "session_id": session_id, **numbered, **fields})
    assert made is not None
    return made


def token(seq: int, content: str = "x", session_id: str = "main") -> ServerFrame:
    return frame("token", seq, session_id, content=content)


def entry(client_msg_id: str | None, queue_id: str = "q_1", preview: str = "a message") -> dict[str, Any]:
    return {
        "queue_id": queue_id,
        "client_msg_id": client_msg_id,
        "preview": preview,
        "source": "web",
        "internal": False,
        "actor_id": "act_1",
        "created_at": codec.instant(NOW),
    }


AGENT: dict[str, Any] = next(
    one["payload"] for one in SERVER["agent_update"]["examples"] if one["name"] == "a running agent"
)["agents"][0]


def agent(agent_id: str, rev: int = 1, **fields: Any) -> dict[str, Any]:
    """A view of an agent that works in the background, called like its id."""
    plain = {"description": None, "activity": None, "summary": None, "model_changed": None}
    return {**AGENT, **plain, "id": agent_id, "label": agent_id, "session_id": "main", "rev": rev, **fields}


def agents(*views: dict[str, Any]) -> ServerFrame:
    return frame("agent_update", agents=list(views), summary={**SUMMARY, "total": len(views)})


def agent_item(seq: int, text: str = "x") -> dict[str, Any]:
    return {"seq": seq, "at": codec.instant(NOW), "kind": "text", "text": text}


def agent_event(agent_id: str, seq: int, text: str = "x") -> ServerFrame:
    return frame("agent_event", agent_id=agent_id, item=agent_item(seq, text))


def status(
    last_seq: int,
    *,
    running: bool = False,
    buffered: list[dict[str, Any]] | None = None,
    queue: list[dict[str, Any]] | None = None,
    session_id: str = "main",
    roster: list[dict[str, Any]] | None = None,
) -> ServerFrame:
    events = {} if buffered is None else {"buffered_events": buffered}
    snapshot = {
        "session_id": session_id,
        "agents": roster or [],
        "summary": SUMMARY,
        "capabilities": CAPABILITIES,
        "queue": queue or [],
        "generated_at": codec.instant(NOW),
    }
    return frame(
        "session_status",
        None,
        session_id,
        is_running=running,
        status="idle",
        last_seq=last_seq,
        agents=snapshot,
        **events,
    )


def removed(client_msg_id: str, reason: str, *, queue: list[dict[str, Any]] | None = None) -> ServerFrame:
    gone = {"queue_id": "q_1", "client_msg_id": client_msg_id, "reason": reason}
    return frame("queue_update", queue=queue or [], removed=[gone])


def message(seq: int, client_msg_id: str | None = None, content: str = "hello", actor_id: str = "act_1") -> ServerFrame:
    said = {"content": content, "blocks": None, "actor_id": actor_id, "client_msg_id": client_msg_id}
    return frame("user_message", seq, **said)


COLOURS = {
    "question": "Which colour?",
    "header": "colour",
    "options": [{"label": "Red", "description": "Warm"}, {"label": "Blue", "description": "Cool"}],
    "multiSelect": False,
}


def asked(
    seq: int,
    interaction_id: str = "i_1",
    kind: str = "question",
    tool_input: dict[str, Any] | None = None,
    *,
    agent: str | None = None,
) -> ServerFrame:
    """An interaction; without ``tool_input`` it asks for a colour."""
    by = None if agent is None else {"agent_id": None, "task_id": "task1", "label": agent}
    given = {"questions": [COLOURS]} if tool_input is None else tool_input
    fields = {"interaction_type": kind, "tool_name": "AskUserQuestion", "tool_input": given, "agent": by}
    return frame("interaction", seq, interaction_id=interaction_id, **fields)


def resolved(seq: int, interaction_id: str = "i_1") -> ServerFrame:
    return frame("interaction_resolved", seq, interaction_id=interaction_id)


def connections(name: str) -> Iterator[list[dict[str, Any]]]:
    """The steps of a transcript of spec/, one list for each connection or switch with ``after_seq``."""
    steps: list[dict[str, Any]] = []
    for step in TRANSCRIPTS[name]:
        begins = "open" in step or step.get("client", {}).get("type") == "switch_session"
        if begins and steps:
            yield steps
            steps = []
        steps.append(step)
    yield steps
