"""Transcripts: numbered without a gap, paged from either side, cut at a number of bytes, never late."""

from typing import Any

import pytest

from nerve.adapters.subagents import (
    AgentActed,
    AgentEnded,
    AgentOutcome,
    AgentText,
    AgentToolFinished,
    AgentToolStarted,
)
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.limits import Limits
from nerve.runtime.recovery import recover
from nerve.store.inline import InlineDatabase
from tests.roster.rostering import WORKER, Stage, ask, page, roster, spawned, staged, started, stop_agent, views
from tests.runtime.tabs import tab
from tests.sessions.session_house import House, open_house, play

LIFECYCLE = {"seq", "at", "kind", "event", "run", "reason", "actor_id"}
CALL = {"seq", "at", "kind", "tool_use_id", "tool", "input", "input_truncated", "child_agent_id"}
RESULT = {"seq", "at", "kind", "tool_use_id", "result", "is_error", "truncated", "full_size"}
TEXT = {"seq", "at", "kind", "text"}
MAX = 16_384  # the default of agent.subagents.transcript_item_max_bytes


async def acted(stage: Stage, *texts: str) -> str:
    """The agent that has said this; its id."""
    stage.puppet.say(spawned(), started())
    stage.puppet.say(*(AgentActed("ref-1", AgentText(text)) for text in texts))
    await stage.told()
    return str((await stage.only())["id"])


def numbers(found: dict[str, Any]) -> list[int]:
    return [item["seq"] for item in found["items"]]


@pytest.mark.req("AGENT-29", "AGENT-38", "AGENT-39")
async def test_each_kind_of_item_has_its_keys(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(
            spawned(),
            started(),
            AgentActed("ref-1", AgentText("Let me see", thinking=True)),
            AgentActed("ref-1", AgentText("One test fails.")),
            AgentActed("ref-1", AgentToolStarted("call-1", "Bash", {"command": "pytest -q"})),
            AgentActed("ref-1", AgentToolFinished("call-1", "212 passed, 1 failed", is_error=True)),
            AgentEnded(ref="ref-1", outcome=AgentOutcome.COMPLETED),
        )
        await stage.told()
        agent = await stage.only()
        found = await page(house, stage.session_id, agent["id"])
    assert found.keys() == {"agent_id", "items", "first_seq", "last_seq", "has_more_before"}
    assert (found["agent_id"], found["first_seq"], found["last_seq"]) == (agent["id"], 1, 6)
    begun, thought, said, call, result, ended = found["items"]
    for item, keys in ((begun, LIFECYCLE), (thought, TEXT), (said, TEXT), (call, CALL), (result, RESULT)):
        assert item.keys() == keys
    assert (begun["kind"], begun["event"], begun["run"]) == ("lifecycle", "started", 1)
    assert (thought["kind"], thought["text"]) == ("thinking", "Let me see")
    assert (said["kind"], said["text"]) == ("text", "One test fails.")
    assert (call["kind"], call["tool"], call["input"]) == ("tool_call", "Bash", {"command": "pytest -q"})
    assert (call["input_truncated"], call["child_agent_id"]) == (False, None)
    assert (result["kind"], result["result"], result["is_error"]) == ("tool_result", "212 passed, 1 failed", True)
    assert (result["truncated"], result["full_size"]) == (False, 20)
    assert (ended["event"], ended["reason"], ended["actor_id"]) == ("completed", "completed", None)


@pytest.mark.req("AGENT-30", "AGENT-31", "AGENT-32", "AGENT-33")
async def test_pages_from_every_side_have_no_gap_and_no_repeat(house: House) -> None:
    async with staged(house) as stage:
        agent_id = await acted(stage, *(str(number) for number in range(2, 24)))
        everything = (await page(house, stage.session_id, agent_id))["items"]
        assert [item["seq"] for item in everything] == list(range(1, 24))
        assert [item["text"] for item in everything[1:]] == [str(number) for number in range(2, 24)]
        for limit in (1, 2, 7, 22, 23, 24):
            tail = await page(house, stage.session_id, agent_id, limit=limit)
            assert tail["items"] == everything[-limit:]
            assert tail["has_more_before"] is (limit < 23)
            back, found = tail, list(tail["items"])
            while back["has_more_before"]:
                back = await page(house, stage.session_id, agent_id, limit=limit, before_seq=back["first_seq"])
                assert len(back["items"]) <= limit
                found = back["items"] + found
            assert found == everything
            found = []
            while (ahead := await page(house, stage.session_id, agent_id, limit=limit, after_seq=len(found)))["items"]:
                assert ahead["has_more_before"] is (found != [])
                found += ahead["items"]
            assert found == everything


@pytest.mark.req("AGENT-32", "AGENT-33")
@pytest.mark.parametrize(
    ("cursor", "wanted", "more"),
    [
        ({"before_seq": 0}, [], False),
        ({"before_seq": 1}, [], False),
        ({"before_seq": 3}, [1, 2], False),
        ({"before_seq": "003"}, [1, 2], False),
        ({"before_seq": 10**30}, [1, 2, 3, 4], False),
        ({"after_seq": 0}, [1, 2, 3, 4], False),
        ({"after_seq": 3}, [4], True),
        ({"after_seq": 4}, [], True),
        ({"after_seq": 10**30}, [], True),
    ],
)
async def test_cursors_at_the_edges(house: House, cursor: dict[str, Any], wanted: list[int], more: bool) -> None:
    async with staged(house) as stage:
        found = await page(house, stage.session_id, await acted(stage, "a", "b", "c"), **cursor)
    assert (numbers(found), found["has_more_before"]) == (wanted, more)
    assert (found["first_seq"], found["last_seq"]) == ((wanted[0], wanted[-1]) if wanted else (None, None))


@pytest.mark.req("AGENT-34", "AGENT-35")
@pytest.mark.parametrize(
    "cursor",
    [
        {"before_seq": 1, "after_seq": 1},
        *({name: text} for name in ("before_seq", "after_seq") for text in ("-1", "1.5", "x", "", "+1", "1e3", "٣")),
    ],
    ids=str,
)
async def test_a_bad_cursor(house: House, cursor: dict[str, Any]) -> None:
    async with staged(house) as stage:
        reply = await ask(house, stage.session_id, await acted(stage, "a"), "transcript", **cursor)
    assert (reply.status, reply.json["detail"]["code"]) == (400, "bad_cursor")


@pytest.mark.req("AGENT-36")
async def test_a_page_holds_500_at_most(house: House) -> None:
    async with staged(house) as stage:
        agent_id = await acted(stage, *(["x"] * 601))
        for limit, size in ((0, 1), (None, 200), (500, 500), (501, 500), (10**9, 500)):
            query = {} if limit is None else {"limit": limit}
            assert len(numbers(await page(house, stage.session_id, agent_id, **query))) == size


@pytest.mark.req("AGENT-30", "AGENT-37")
async def test_what_waits_to_be_written_is_on_the_page_already(house: House) -> None:
    """Items are written a quarter of a second later; no reader sees the difference."""
    async with staged(house) as stage:
        agent_id = await acted(stage, "a", "b")
        await stage.tab.quiet(1)
        stage.puppet.say(*(AgentActed("ref-1", AgentText(text)) for text in ("c", "d")))
        await stage.told()
        assert await house.sql("SELECT count(*) FROM session_agent_items") == [(3,)]
        assert numbers(await page(house, stage.session_id, agent_id)) == [1, 2, 3, 4, 5]
        assert await house.sql("SELECT count(*) FROM session_agent_items") == [(3,)]
        assert numbers(await page(house, stage.session_id, agent_id, before_seq=5, limit=3)) == [2, 3, 4]
        assert numbers(await page(house, stage.session_id, agent_id, after_seq=2)) == [3, 4, 5]
        await stage.tab.quiet(1)
        assert await house.sql("SELECT count(*) FROM session_agent_items") == [(5,)]
        assert numbers(await page(house, stage.session_id, agent_id)) == [1, 2, 3, 4, 5]


@pytest.mark.req("AGENT-37")
async def test_fifty_items_are_written_at_once(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned(), started(), *(AgentActed("ref-1", AgentText("x")) for _ in range(60)))
        await stage.told()
        ((written,),) = await house.sql("SELECT count(*) FROM session_agent_items")
        assert written >= 50


@pytest.mark.req("AGENT-30", "AGENT-37")
async def test_a_full_disk_loses_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(house) as stage:
        agent_id = await acted(stage, "a")
        database, write = house.services.database, house.services.database.write

        async def refuse(*args: Any) -> None:
            raise NerveError(ErrorCode.STORE_FULL)

        monkeypatch.setattr(database, "write", refuse)
        stage.puppet.say(*(AgentActed("ref-1", AgentText(str(number))) for number in range(100)))
        await stage.tab.quiet(2)
        assert numbers(await page(house, stage.session_id, agent_id, limit=500)) == list(range(1, 103))
        monkeypatch.setattr(database, "write", write)
        await stage.tab.quiet(2)
        assert await house.sql("SELECT count(*), max(seq) FROM session_agent_items") == [(102, 102)]
        assert numbers(await page(house, stage.session_id, agent_id, limit=500)) == list(range(1, 103))


@pytest.mark.req("AGENT-30")
async def test_numbers_go_on_after_a_restart(database: InlineDatabase, tmp_path: Any) -> None:
    async with open_house(database, tmp_path / "home") as house, staged(house) as stage:
        agent_id = await acted(stage, "a")
        session_id = stage.session_id
        await stage.tab.quiet(1)
    async with open_house(database, tmp_path / "home", born=1, recovered=False) as house:
        await recover(house.supervisor.house, "generation-2")
        found = await page(house, session_id, agent_id)
    assert numbers(found) == [1, 2, 3]
    assert (found["items"][-1]["event"], found["items"][-1]["reason"]) == ("interrupted", "gateway_restart")


# --- cuts ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("AGENT-40")
@pytest.mark.parametrize("character", ["x", "ü", "€", "🙂"])
@pytest.mark.parametrize("before", range(4))
async def test_a_cut_is_never_within_a_character(house: House, character: str, before: int) -> None:
    text = "a" * before + character * (MAX + 1)
    async with staged(house) as stage:
        agent_id = await acted(stage)
        stage.puppet.say(AgentActed("ref-1", AgentToolFinished("call-1", text)))
        stage.puppet.say(AgentActed("ref-1", AgentToolStarted("call-2", "Write", {"content": text, "path": "x"})))
        await stage.told()
        _, result, call = (await page(house, stage.session_id, agent_id))["items"]
    shown = result["result"]
    assert text.startswith(shown)
    assert MAX - len(character.encode()) < len(shown.encode()) <= MAX
    assert (result["truncated"], result["full_size"]) == (True, len(text.encode()))
    assert text.startswith(call["input"]["content"])
    assert len(call["input"]["content"].encode()) <= MAX
    assert call["input_truncated"] is True
    assert call["full_size"] > len(text.encode())


@pytest.mark.req("AGENT-40")
async def test_the_bound_itself_is_not_cut_and_the_configuration_sets_it(
    database: InlineDatabase, tmp_path: Any
) -> None:
    limits = Limits(transcript_item_bytes=10)
    async with open_house(database, tmp_path / "home", limits=limits) as house, staged(house) as stage:
        agent_id = await acted(stage)
        for text in ("1234567890", "12345678901"):
            stage.puppet.say(AgentActed("ref-1", AgentToolFinished("call", text)))
        await stage.told()
        _, whole, cut = (await page(house, stage.session_id, agent_id))["items"]
    assert (whole["result"], whole["truncated"], whole["full_size"]) == ("1234567890", False, 10)
    assert (cut["result"], cut["truncated"], cut["full_size"]) == ("1234567890", True, 11)


@pytest.mark.req("AGENT-27", "AGENT-41", "AGENT-46", "AGENT-56")
async def test_an_unknown_agent(house: House) -> None:
    session_id = await house.create()
    path = f"/api/sessions/{session_id}/agents/ag_nobody"
    for reply in (
        await house.alice.get(path),
        await house.alice.get(f"{path}/transcript"),
        await house.alice.get(f"{path}/output"),
        await house.alice.post(f"{path}/stop", json={}),
    ):
        assert (reply.status, reply.json["detail"]["code"]) == (404, "agent_not_found")


@pytest.mark.req("AGENT-28")
async def test_an_agent_of_the_session_that_this_one_came_from(house: House) -> None:
    session_id, stranger = await house.create(), await house.create()
    await house.run(session_id, play(WORKER))
    lineage = [session_id]
    for _ in range(2):  # a fork, and a fork of that
        fork = (await house.alice.post("/api/sessions/fork", json={"source_session_id": lineage[-1]})).json
        await house.run(fork["id"])
        lineage.append(fork["id"])
    agent_id = (await views(house, session_id))["build-api"]["id"]
    for fork_id in lineage[1:]:
        assert (await roster(house, fork_id))["agents"] == []
        for what in ("", "transcript", "output"):
            reply = await ask(house, fork_id, agent_id, what)
            detail = reply.json["detail"]
            assert (reply.status, detail["code"]) == (404, "agent_in_other_session")
            assert detail["owner_session_id"] == session_id
        assert (await stop_agent(house, fork_id, agent_id)).json["detail"]["code"] == "agent_in_other_session"
    reply = await ask(house, stranger, agent_id)
    assert (reply.status, reply.json["detail"]["code"]) == (404, "agent_not_found")
    assert (await views(house, session_id))["build-api"]["status"] == "running"


async def test_a_fork_knows_at_once_whose_an_agent_is(house: House) -> None:
    """Also while the agent is on its way to the disk."""
    session_id = await house.create()
    await house.run(session_id, play("- say: hello"))
    fork = (await house.alice.post("/api/sessions/fork", json={"source_session_id": session_id})).json
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(WORKER, "- wait: 600"))
        await alice.until("tool_use")
        runner = house.supervisor.agents.roster(session_id)
        assert runner is not None
        (agent_id,) = runner.records
        assert await house.sql("SELECT * FROM session_agents") == []
        reply = await ask(house, fork["id"], agent_id)
        assert reply.json["detail"]["code"] == "agent_in_other_session"
