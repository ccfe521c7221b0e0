"""Words of tests about forks: making one, and hearing what an agent remembers."""

from pathlib import Path
from typing import Any

import orjson

from tests.asgi_client import Reply
from tests.sessions.session_house import House, play

RECALL = play("- say: '${history}'")


async def try_fork(house: House, source_id: str, at: Any = None, **body: Any) -> Reply:
    anchor = {} if at is None else {"at_message_id": str(at)}
    return await house.alice.post("/api/sessions/fork", json={"source_session_id": source_id, **anchor, **body})


async def fork(house: House, source_id: str, at: Any = None, **body: Any) -> dict[str, Any]:
    reply = await try_fork(house, source_id, at, **body)
    assert reply.status == 200, reply.text
    row: dict[str, Any] = reply.json
    return row


async def messages(house: House, session_id: str) -> list[dict[str, Any]]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages", query={"limit": 1000})
    assert reply.status == 200, reply.text
    return list(reply.json["messages"])


async def asked(house: House, session_id: str) -> list[str]:
    """What the session's people have said, as it shows it."""
    return [row["content"] for row in await messages(house, session_id) if row["role"] == "user"]


async def remembered(house: House, session_id: str) -> list[str]:
    """What the agent says it was told, without the question for it."""
    reply = await house.run(session_id, RECALL)
    *before, last = reply.json["response"].split("\n")
    assert last == " ".join(RECALL.splitlines())
    return list(before)


def conversations(house: House) -> dict[str, list[str]]:
    """The runtime's own record: native id to the messages in it."""
    directory: Path = house.services.config.paths.home / "scripted"
    return {
        path.stem: [line["text"] for line in map(orjson.loads, path.read_bytes().splitlines()) if "text" in line]
        for path in directory.glob("*.jsonl")
    }


async def talked(house: House, *words: str, session_id: str | None = None) -> str:
    """A session in which these were said, each in a turn of its own."""
    session_id = session_id or await house.create(title="Source")
    for each in words:
        reply = await house.alice.post("/api/chat", json={"message": each, "session_id": session_id})
        assert reply.status in (200, 502)  # 502: the play had it fail
    return session_id
