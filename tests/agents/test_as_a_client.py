"""What the author of a client would try: reconnecting amid agents' work, following many, forks, restarts, archives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.agents.plays import Step, agent, play, say, shell, wait
from tests.agents.watching import Frame, Watcher
from tests.house import House, open_house

SECONDS = 20.0


async def session(house: House) -> str:
    return str((await house.owner.ok("sessions.create", {}))["id"])


@asynccontextmanager
async def watching(house: House, session_id: str, **query: Any) -> AsyncIterator[Watcher]:
    """Bound once this is entered."""
    async with house.owner.connect({"session_id": session_id, **query}) as socket, trio.open_nursery() as nursery:
        watcher = Watcher(socket)
        nursery.start_soon(watcher.read)
        await watcher.until(lambda: bool(watcher.of("session_status")), SECONDS)
        yield watcher
        nursery.cancel_scope.cancel()


async def tell(watcher: Watcher, kind: str, session_id: str, **fields: Any) -> None:
    await watcher.socket.send_json({"type": kind, "session_id": session_id, **fields})


async def start(watcher: Watcher, session_id: str, *steps: Step, **fields: Any) -> None:
    await tell(watcher, "message", session_id, content=play(*steps, **fields))


async def items(house: House, session_id: str, agent_id: str, **query: str) -> list[Frame]:
    path = {"session_id": session_id, "agent_id": agent_id}
    page = await house.owner.ok("agents.transcript", path=path, query={"limit": "500", **query})
    return list(page["items"])


def busy(name: str, words: int = 40, **fields: Any) -> Step:
    """It says one item every quarter of a second."""
    return agent(name, *[step for n in range(words) for step in (say(f"{name} {n}"), wait(0.25))], **fields)


def followed(watcher: Watcher, agent_id: str) -> list[int]:
    return [frame["item"]["seq"] for frame in watcher.of("agent_event") if frame["agent_id"] == agent_id]


async def test_a_tab_that_comes_back_amid_the_work_misses_nothing(house: House) -> None:
    """With ``after_seq`` it gets the turn's frames; of agents the snapshot, and a transcript that joins what it had."""
    session_id = await session(house)
    async with watching(house, session_id) as stays:
        async with watching(house, session_id) as leaves:
            await start(
                leaves, session_id, busy("back", background=True), *[say(f"{n} ", 0) for n in range(3)], wait(8)
            )
            await stays.until(lambda: bool(stays.views), SECONDS)
            agent_id = stays.named("back")["id"]
            await tell(leaves, "agent_subscribe", session_id, agent_id=agent_id)
            await leaves.until(lambda: len(followed(leaves, agent_id)) >= 3, SECONDS)
        seen = followed(leaves, agent_id)
        await trio.sleep(2)
        last_seq = max(frame.get("seq", 0) for frame in leaves.frames)
        async with watching(house, session_id, after_seq=last_seq) as back:
            assert back.views.keys() == {agent_id}
            await tell(back, "agent_subscribe", session_id, agent_id=agent_id)
            await back.until(lambda: bool(followed(back, agent_id)), SECONDS)
            # Subscribe first, then read what lies between; what comes twice is known by its number.
            missed = await items(house, session_id, agent_id, after_seq=str(seen[-1]))
            numbers = {*seen, *(item["seq"] for item in missed), *followed(back, agent_id)}
            assert numbers == set(range(seen[0], max(numbers) + 1))
            await back.until(lambda: bool(back.of("done")), SECONDS)
            await back.until(lambda: not back.live, SECONDS)
            await back.until(lambda: len(back.of("done")) == 2, SECONDS)  # that of the autonomous turn
            missed_frames = [f["seq"] for f in stays.frames if f.get("seq", 0) > last_seq]
            assert [f["seq"] for f in back.frames if "seq" in f] == missed_frames
        assert stays.views == back.views


async def test_the_ninth_agent_drops_the_first_and_leaving_drops_all(house: House) -> None:
    session_id, other = await session(house), await session(house)
    async with watching(house, session_id) as tab:
        await start(tab, session_id, *[busy(f"a{n}", background=True) for n in range(10)])
        await tab.until(lambda: len(tab.live) == 10, SECONDS)
        ids = [tab.named(f"a{n}")["id"] for n in range(10)]
        for agent_id in (*ids[:8], ids[0], ids[8]):  # asked for again, the first is not the newest for that
            await tell(tab, "agent_subscribe", session_id, agent_id=agent_id)
        await tell(tab, "agent_unsubscribe", session_id, agent_id=ids[3])
        await tell(tab, "agent_unsubscribe", session_id, agent_id=ids[3])
        await tell(tab, "agent_unsubscribe", session_id, agent_id="ag_000000000000")
        await trio.sleep(0.1)
        before = len(tab.of("agent_event"))
        await trio.sleep(1)
        heard = {frame["agent_id"] for frame in tab.of("agent_event")[before:]}
        assert heard == set(ids[1:9]) - {ids[3]}
        await tell(tab, "switch_session", other)
        await tab.until(lambda: tab.of("session_status")[-1]["session_id"] == other, SECONDS)
        await tell(tab, "agent_subscribe", other, agent_id=ids[5])  # not of the session that it is bound to
        await tab.until(lambda: bool(tab.of("error")), SECONDS)
        assert tab.of("error") == [{"type": "error", "session_id": other, "error": "agent_not_found"}]
        await tell(tab, "switch_session", session_id)
        await tab.until(lambda: tab.of("session_status")[-1]["session_id"] == session_id, SECONDS)
        before = len(tab.of("agent_event"))
        await trio.sleep(1)
        assert len(tab.of("agent_event")) == before


@pytest.mark.req("AGENT-28")
async def test_agents_stay_with_the_session_that_started_them(house: House) -> None:
    session_id = await session(house)
    async with watching(house, session_id) as tab:
        await start(tab, session_id, agent("done", say("x"), result="ok"), busy("back", background=True), say("over"))
        await tab.until(lambda: bool(tab.of("done")) and len(tab.views) == 2, SECONDS)
        fork = (await house.owner.ok("sessions.fork", {"source_session_id": session_id}))["id"]
        stranger = await session(house)
        for name in ("done", "back"):
            for operation in ("agents.get", "agents.transcript", "agents.output", "agents.stop"):
                body: Any = {} if operation == "agents.stop" else ...
                at = {"agent_id": tab.named(name)["id"]}
                answer = await house.owner.call(operation, body, path={**at, "session_id": fork})
                assert (answer.status, answer.code) == (404, "agent_in_other_session")
                assert answer.json["detail"]["owner_session_id"] == session_id
                answer = await house.owner.call(operation, body, path={**at, "session_id": stranger})
                assert (answer.status, answer.code) == (404, "agent_not_found")
        assert (await house.owner.ok("agents.list", path={"session_id": fork}))["agents"] == []
        async with watching(house, fork) as other:
            await tell(other, "agent_subscribe", fork, agent_id=tab.named("back")["id"])
            await other.until(lambda: bool(other.of("error")), SECONDS)
            assert other.of("error")[0]["error"] == "agent_not_found"
        assert tab.named("back")["status"] == "running"


@pytest.mark.req("AGENT-11")
async def test_a_restart_shows_what_lived_as_interrupted_with_all_that_it_had_said(tmp_path: Path) -> None:
    async with open_house(tmp_path / "home") as house:
        session_id = await session(house)
        async with watching(house, session_id) as tab:
            await start(tab, session_id, agent("early", say("x"), result="r"), busy("back", background=True), wait(60))
            await tab.until(lambda: len(tab.views) == 2, SECONDS)
            agent_id = tab.named("back")["id"]
            await tell(tab, "agent_subscribe", session_id, agent_id=agent_id)
            await trio.sleep(5)
            await house.copy_disk(tmp_path / "disk")
            before, seen, early = dict(tab.views), followed(tab, agent_id), tab.named("early")
    async with open_house(tmp_path / "home", disk=tmp_path / "disk") as house, watching(house, session_id) as tab:
        back = tab.named("back")
        assert (back["status"], back["end_reason"], back["attention"]) == (
            "interrupted",
            "gateway_restart",
            "interrupted",
        )
        assert back["rev"] > before[agent_id]["rev"]
        assert tab.named("early") == {**early, "rev": tab.named("early")["rev"]}
        kept = await items(house, session_id, agent_id)
        assert [item["seq"] for item in kept] == list(range(1, len(kept) + 1))
        assert kept[-1]["event"] == "interrupted"
        assert len(kept) >= seen[-1] - 1  # a quarter of a second may be lost
        # It is followed like any other, and nothing of it is told any more; a stop finds it ended.
        await tell(tab, "agent_subscribe", session_id, agent_id=agent_id)
        answer = await house.owner.call("agents.stop", {}, path={"session_id": session_id, "agent_id": agent_id})
        assert (answer.status, answer.json["stopping"]) == (200, [])
        await start(tab, session_id, busy("next", 2, background=True), say("on"))
        await tab.until(lambda: len(tab.views) == 3 and not tab.live, SECONDS)
        # The person's message has taken note of it; ids and numbers go on.
        assert tab.named("back")["attention"] is None
        assert tab.named("next")["rev"] > tab.named("back")["rev"] > back["rev"]
        assert followed(tab, agent_id) == []


async def test_an_archived_session_still_shows_its_agents(house: House) -> None:
    session_id = await session(house)
    async with watching(house, session_id) as tab:
        await start(tab, session_id, busy("back", background=True), shell("job", 60, output=["x" * 10]), say("over"))
        await tab.until(lambda: bool(tab.of("done")) and len(tab.live) == 2, SECONDS)
        await trio.sleep(1)
        archived = await house.owner.ok("sessions.archive", path={"session_id": session_id}, query={"force": "true"})
        assert archived["archived_ids"] == [session_id]
        await tab.until(lambda: not tab.live, SECONDS)
        snapshot = await house.owner.ok("agents.list", path={"session_id": session_id})
        assert {view["id"]: view for view in snapshot["agents"]} == tab.views
        assert {view["end_reason"] for view in snapshot["agents"]} == {"archived"}
        kept = await items(house, session_id, tab.named("back")["id"])
        assert kept[-1]["event"] == "interrupted"
        await house.owner.ok("sessions.unarchive", path={"session_id": session_id})
        await start(tab, session_id, busy("again", 2, background=True))
        await tab.until(lambda: len(tab.views) == 3 and not tab.live, SECONDS)


async def test_many_stops_of_one_agent_settle_it_once(house: House) -> None:
    session_id = await session(house)
    async with watching(house, session_id) as tab:
        slow = agent("slow", busy("deep", background=True), wait(600), background=True, stop_seconds=2)
        await start(tab, session_id, slow, say("over"))
        await tab.until(lambda: len(tab.live) == 2, SECONDS)
        path = {"session_id": session_id, "agent_id": tab.named("slow")["id"]}
        statuses: list[int] = []

        async def stop(cascade: bool) -> None:
            statuses.append((await house.owner.call("agents.stop", {"cascade": cascade}, path=path)).status)

        async with trio.open_nursery() as nursery:
            for n in range(6):
                nursery.start_soon(stop, n % 2 == 0)
        assert statuses == [202] * 6
        await tab.until(lambda: not tab.live, SECONDS)
        kept = await items(house, session_id, tab.named("slow")["id"])
        assert [item["event"] for item in kept if item["kind"] == "lifecycle"] == [
            "started",
            "stop_requested",
            "stopped",
        ]
        assert (await house.owner.call("agents.stop", {}, path=path)).status == 200


async def test_a_play_does_not_go_on_by_itself_for_ever(house: House) -> None:
    """What an autonomous turn starts ends and starts an autonomous turn."""
    session_id = await session(house)
    async with watching(house, session_id) as tab:
        await start(tab, session_id, busy("first", 1, background=True), on_settled=[busy("next", 1, background=True)])
        await trio.sleep(120)
        assert not tab.live
        assert len(tab.of("auto_turn")) == 101  # a hundred as written, and the one that says that the last one ended
        running = [frame["is_running"] for frame in tab.of("session_running")]
        assert running[-1] is False


async def test_pages_cut_where_they_may(tmp_path: Path) -> None:
    """Texts of several bytes a letter, at limits that fall into the middle of one."""
    settings = {"agent": "backend: scripted, subagents: {transcript_item_max_bytes: 1024}"}
    texts = ["é" * 512, "é" * 513, "x" + "é" * 600, "😀" * 256, "xx" + "😀" * 300, "\u0000" * 1025, "x" * 1023]
    steps = [{"tool": "Bash", "input": {"command": text}, "result": text} for text in texts]
    async with open_house(tmp_path / "home", settings=settings) as house:
        session_id = await session(house)
        async with watching(house, session_id) as tab:
            await start(tab, session_id, agent("cut", *steps), say("over"))
            await tab.until(lambda: bool(tab.of("done")) and bool(tab.views), SECONDS)
            kept = await items(house, session_id, tab.named("cut")["id"])
            live = await house.owner.ok("agents.list", path={"session_id": session_id})
        assert live["agents"][0]["tool_uses"] == len(texts)
        results = [item for item in kept if item["kind"] == "tool_result"]
        assert [item["full_size"] for item in results] == [len(text.encode()) for text in texts]
        for item, text in zip(results, texts, strict=True):
            assert text.startswith(item["result"])
            assert item["truncated"] == (item["result"] != text) == (len(text.encode()) > 1024)
            assert 1024 - 4 < len(item["result"].encode()) <= 1024 or not item["truncated"]
        for before, after in pairwise(kept):
            assert after["seq"] == before["seq"] + 1
