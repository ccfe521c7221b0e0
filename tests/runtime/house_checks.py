"""What holds of a home once everybody has come and nothing goes on any more."""

import re
from itertools import pairwise

import orjson

from tests.runtime.house_clients import Client
from tests.runtime.house_game import MESSAGES, Game
from tests.runtime.tabs import Frame
from tests.sessions.session_house import House

SENT = re.compile(r"- think: (c\d+-\d)")
# What a request may be answered: it came too late, an answer was none, the server ends.
ERRORS = {"session_not_found", "interaction_not_found", "bad_frame", "The server is shutting down."}
RECALLS = "- say: '${history}'"


async def check(game: Game) -> None:
    for session_id in game.sessions:
        await check_turns(game, session_id)
        await check_history(game, session_id)
        await check_memory(game.house, session_id)
        await check_record(game.house, session_id)
        await check_log(game, session_id)
        status = await game.status(session_id)
        assert not status["is_running"]
        assert not status["awaiting_input"]
        for client in game.clients:
            assert not client.running.get(session_id)
            assert not client.awaiting.get(session_id)
    await check_remains(game)


async def check_remains(game: Game) -> None:
    for table in ("frames", "turns", "messages", "queue_entries", "pending_interactions"):
        owners = {row[0] for row in await game.house.sql(f"SELECT DISTINCT session_id FROM {table}")}
        assert owners <= set(game.sessions), "something of a deleted session was left"
    assert await game.house.sql("SELECT count(*) FROM pending_interactions") == [(0,)]
    assert await game.house.sql("SELECT count(*) FROM queue_entries") == [(0,)]
    errors = {error for client in game.clients for error in client.errors}
    assert errors <= ERRORS, errors


async def check_turns(game: Game, session_id: str) -> None:
    rows = await game.house.sql(
        "SELECT client_msg_id, started_at, ended_at, assistant_message_id, state FROM turns WHERE session_id = ?"
        " ORDER BY first_seq",
        session_id,
    )
    assert all(message is not None and state != "running" for _, _, _, message, state in rows)
    assert all(before[2] <= after[1] for before, after in pairwise(rows)), "two turns at a time"
    ran = [row[0] for row in rows]
    assert len(ran) == len(set(ran)), "a message ran twice"
    for number, client in enumerate(game.clients):
        said = [sent for by, where, sent in game.sent if (by, where) == (number, session_id)]
        assert [sent for sent in ran if sent in client.own] == [sent for sent in said if sent in ran], "out of order"
        if not game.refused and not game.emptied:
            acknowledged = {sent for each in game.clients for sent in each.queued - each.removed}
            assert {sent for sent in said if sent in acknowledged} <= set(ran), "a message was lost"


async def check_history(game: Game, session_id: str) -> None:
    """A fork's history begins with what it was made of, whatever its source has done since."""
    rows = [row[1:] for row in await game.house.sql(MESSAGES, session_id)]
    copied = game.copied.get(session_id, [])
    assert rows[: len(copied)] == copied
    own = rows[len(copied) :]
    assert [role for role, *_ in own] == ["user", "assistant"] * (len(own) // 2)
    for *_, blocks in rows:
        calls = [block for block in orjson.loads(blocks or "[]") if block["type"] == "tool_call"]
        assert all(isinstance(call["result"], str) for call in calls), "a tool call without a result"
        assert len({call["tool_use_id"] for call in calls}) == len(calls)


async def check_memory(house: House, session_id: str) -> None:
    """An agent remembers what the history of its session holds, in that order, and all of it that was answered."""
    ended = await house.sql("SELECT client_msg_id FROM turns WHERE session_id = ? AND state = 'completed'", session_id)
    completed = {row[0] for row in ended}
    before: list[str] = []
    asked = False
    for _, role, content, _, _ in await house.sql(MESSAGES, session_id):
        if role == "user":
            before += SENT.findall(content)
            asked = RECALLS in content
        elif asked and before[-1] in completed:
            remembered = SENT.findall(content)
            assert remembered == [sent for sent in before if sent in remembered], "what was never said here"
            assert {sent for sent in before if sent in completed} <= set(remembered), "what was forgotten"


async def check_record(house: House, session_id: str) -> None:
    """The runtime's own record holds every turn that a message is a place of, and nothing that the history lacks.

    Of a fork that has not run it is what its first turn will branch: all that it shows is there.
    """
    ((native, pending),) = await house.sql("SELECT sdk_session_id, fork_pending FROM sessions WHERE id = ?", session_id)
    record = house.services.config.paths.home / "scripted" / f"{native}.jsonl"
    lines = [orjson.loads(line) for line in record.read_bytes().splitlines()] if native is not None else []
    turns = [line for line in lines if "turn" in line]
    places = await house.sql(
        "SELECT DISTINCT native_turn_id FROM messages WHERE session_id = ? AND native_turn_id IS NOT NULL", session_id
    )
    assert {place for (place,) in places} <= {line["turn"] for line in turns}, "a message is a place that is nowhere"
    shown = [content for _, role, content, _, _ in await house.sql(MESSAGES, session_id) if role == "user"]
    known = iter(shown)
    assert pending or all(line["text"] in known for line in turns), "the agent knows more than its session shows"


async def check_log(game: Game, session_id: str) -> None:
    rows = await game.house.sql("SELECT seq, frame FROM frames WHERE session_id = ? ORDER BY seq", session_id)
    stored: dict[int, Frame] = {seq: orjson.loads(frame) for seq, frame in rows}
    for begins, ends, key in (
        ("tool_use", "tool_result", "tool_use_id"),
        ("interaction", "interaction_resolved", "interaction_id"),
    ):
        begun = [frame[key] for frame in stored.values() if frame["type"] == begins]
        ended = [frame[key] for frame in stored.values() if frame["type"] == ends]
        assert sorted(begun) == sorted(ended) == sorted(set(begun)), f"{begins} without one {ends}"
    for client in game.clients:
        _check_view(client, session_id, stored)


def _check_view(client: Client, session_id: str, stored: dict[int, Frame]) -> None:
    view = client.view(session_id)
    view.check(stored, client.own)
    late = [frame for seq, frame in stored.items() if seq > view.cursor]
    assert all(frame.get("client_msg_id") in client.own for frame in late), "a frame never came"
