"""Making sessions: what is kept, whose they are, where they work."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from attrs import define, evolve

from nerve.adapters.protocol import AgentClient, Availability, SessionSpec
from nerve.adapters.scripted import ScriptedAdapter
from nerve.runtime.backends import Backends
from nerve.runtime.creation import SessionMaker
from nerve.runtime.house import SYSTEM_ACTOR
from nerve.store.inline import open_inline
from tests.sessions.session_house import ALICE, BOB, House, open_house, play, system_session


@pytest.mark.req("SESS-22", "SESS-23", "SESS-24", "SESS-25", "SESS-26", "SESS-28", "SESS-29", "SESS-33")
async def test_a_session_is_its_makers(house: House) -> None:
    reply = await house.alice.post("/api/sessions", json={"title": "  Launch plan\n"})
    assert reply.status == 200
    made = reply.json
    assert (made["title"], made["source"], made["status"]) == ("Launch plan", "web", "created")
    assert (made["created_by_actor_id"], made["caused_by_actor_id"]) == (ALICE, ALICE)
    assert len(made["id"]) == 8
    assert set(made["id"]) <= set("0123456789abcdef")
    assert (made["metadata"], made["starred"], made["quarantined"]) == ({}, False, False)
    assert made["created_at"] == made["updated_at"]
    assert made["created_at"].endswith("Z")
    assert await house.row(made["id"]) == made


@pytest.mark.req("SESS-29")
async def test_the_cause_is_never_changed(house: House) -> None:
    session_id = await house.create()
    await house.bob.patch(f"/api/sessions/{session_id}", json={"title": "Bob's title", "starred": True})
    await house.bob.post("/api/chat", json={"message": "Hello", "session_id": session_id})
    row = await house.row(session_id)
    assert (row["created_by_actor_id"], row["caused_by_actor_id"]) == (ALICE, ALICE)


async def test_an_agents_tool_makes_a_session_for_its_cause(house: House) -> None:
    made = (await house.alice.with_(token="tool").post("/api/sessions", json={})).json
    assert (made["created_by_actor_id"], made["caused_by_actor_id"]) == (SYSTEM_ACTOR, ALICE)


@pytest.mark.req("SESS-27")
async def test_an_unknown_cause_reads_null(house: House) -> None:
    session_id = await house.create()
    await house.sql(
        "UPDATE sessions SET created_by_actor_id = NULL, caused_by_actor_id = NULL WHERE id = ?", session_id
    )
    row = await house.row(session_id)
    assert (row["created_by_actor_id"], row["caused_by_actor_id"]) == (None, None)


@pytest.mark.parametrize("title", [None, "", "  \t"])
async def test_without_a_title_the_id_is_the_title(house: House, title: str | None) -> None:
    session_id = await house.create(title=title)
    assert (await house.row(session_id))["title"] == session_id


async def test_no_body_at_all_makes_a_session_too(house: House) -> None:
    reply = await house.alice.post("/api/sessions")
    assert (reply.status, reply.json["source"]) == (200, "web")


async def test_model_backend_and_source_may_be_asked_for(house: House) -> None:
    row = await house.row(await house.create(model=" scripted-large ", backend="scripted", source="api"))
    assert (row["model"], row["backend"], row["backend_reason"], row["source"]) == (
        "scripted-large",
        "scripted",
        None,
        "api",
    )


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({"backend": "oracle"}, 400, "There is no agent runtime called oracle."),
        ({"backend": "claude"}, 503, "The agent runtime claude is not available on this server."),
        ({"model": " "}, 400, "The model is empty."),
        ({"cwd": "relative/path"}, 400, "The working directory has to be an absolute path without '..'."),
        ({"cwd": "/tmp/../relative"}, 400, "The working directory has to be an absolute path without '..'."),
        ({"cwd": "/dev/null/below"}, 400, "The working directory can't be used: Not a directory."),
        ({"cwd": "/with\0nul"}, 400, "The working directory can't be used."),
    ],
)
async def test_what_cannot_be_made_is_refused_and_leaves_nothing(
    house: House, body: dict[str, str], status: int, detail: str
) -> None:
    reply = await house.alice.post("/api/sessions", json=body)
    assert (reply.status, reply.json) == (status, {"detail": detail})
    assert await house.sql("SELECT id FROM sessions") == [("main",)]


@pytest.mark.parametrize("body", [{"title": 5}, {"source": "cron"}, {"title": "x" * 501}, {"cwd": ["/"]}])
async def test_a_body_of_the_wrong_shape_is_422(house: House, body: dict[str, object]) -> None:
    reply = await house.alice.post("/api/sessions", json=body)
    assert reply.status == 422
    assert [problem["loc"] for problem in reply.json["detail"]] == [["body", *body]]


async def test_the_working_directory_is_made_and_defaults_to_the_workspace(house: House, tmp_path: Path) -> None:
    wanted = tmp_path / "a" / "b"
    row = await house.row(await house.create(cwd=str(wanted)))
    assert row["cwd"] == str(wanted)
    assert wanted.is_dir()
    row = await house.row(await house.create())
    assert row["cwd"] == str(house.services.config.workspace)
    assert house.services.config.workspace.is_dir()


class Absent(ScriptedAdapter):
    async def availability(self) -> Availability:
        return Availability(False, "no credential for claude")


async def test_the_fallback_says_why_it_stands_in(house: House, tmp_path: Path) -> None:
    runtime = house.supervisor.house
    absent = Absent(tmp_path, tmp_path, runtime.effects)
    backends = Backends("claude", {**runtime.backends.adapters, "claude": absent})
    house.supervisor.house = evolve(runtime, backends=backends)
    row = await house.row(await house.create())
    assert (row["backend"], row["backend_reason"]) == ("scripted", "no credential for claude")


@define(eq=False)
class Late:
    """A runtime that has no credential at first; it speaks with the scripted runtime's voice."""

    _inner: ScriptedAdapter
    usable: bool = False
    name: str = "claude"
    default_model: str = "claude-large"

    async def availability(self) -> Availability:
        return Availability(self.usable, None if self.usable else "no credential for claude")

    def open(self, session: SessionSpec) -> AbstractAsyncContextManager[AgentClient]:
        return self._inner.open(session)

    async def forget_session(self, session_id: str) -> None:
        await self._inner.forget_session(session_id)

    async def forget(self, native_id: str) -> None:
        await self._inner.forget(native_id)


async def test_a_session_on_the_fallback_moves_at_its_next_turn_once_it_can(house: House, tmp_path: Path) -> None:
    runtime = house.supervisor.house
    late = Late(ScriptedAdapter(tmp_path / "late", tmp_path, runtime.effects))
    house.supervisor.house = evolve(runtime, backends=Backends("claude", {**runtime.backends.adapters, "claude": late}))
    chosen = await house.create(backend="scripted")
    fallen = await house.create()
    for session_id in (chosen, fallen):
        await house.run(session_id, play("- say: one"))
    before = await house.row(fallen)
    late.usable = True
    for session_id in (chosen, fallen):
        await house.run(session_id, play("- say: two"))
    after = await house.row(fallen)
    assert (after["backend"], after["backend_reason"]) == ("claude", None)
    assert after["sdk_session_id"] != before["sdk_session_id"]
    (moved,) = [event for event in await house.events(fallen) if event["event_type"] == "backend_changed"]
    assert moved["actor_id"] is None
    assert (await house.row(chosen))["backend"] == "scripted"
    assert (await house.row(await house.create()))["backend"] == "claude"


@pytest.mark.req("GEN-10", "SESS-29")
async def test_sessions_survive_a_restart(tmp_path: Path) -> None:
    with open_inline(tmp_path / "nerve.db") as database:
        async with open_house(database, tmp_path / "home") as house:
            session_id = await house.create(title="Kept")
            await house.run(session_id, play("- say: Hello"))
            gone = await house.create()
            await house.archive(gone)
            before = [await house.row(i) for i in ("main", session_id, gone)]
            await house.supervisor.drain()
    with open_inline(tmp_path / "nerve.db") as database:
        async with open_house(database, tmp_path / "home", born=1) as house:
            after = [await house.row(i) for i in ("main", session_id, gone)]
            assert [row["id"] for row in (await house.alice.get("/api/sessions")).json["sessions"]] == [
                session_id,
                "main",
            ]
            texts = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
            assert [message["content"] for message in texts][1] == "Hello"
            assert (await house.run(session_id, play('- say: "${history}"'))).json["response"].startswith("#!nerve")
    assert [row.pop("status") for row in before] == ["created", "active", "archived"]
    assert [row.pop("status") for row in after] == ["created", "idle", "archived"]
    assert after == before


async def test_main_is_made_once(house: House) -> None:
    services = house.services
    await house.alice.patch("/api/sessions/main", json={"title": "Renamed"})
    maker = SessionMaker(services.database, house.supervisor, services.effects, services.config.workspace)
    assert await maker.ensure_main(SYSTEM_ACTOR) is False
    assert (await house.row("main"))["title"] == "Renamed"
    (created,) = [event for event in await house.events("main") if event["event_type"] == "created"]
    assert (created["details"], created["actor_id"]) == ({"source": "system"}, SYSTEM_ACTOR)


async def test_an_id_that_is_taken_is_not_given_again(house: House) -> None:
    taken = house.services.effects.new_id("session")
    await system_session(house, f"{int(taken, 16) + 1:08x}")
    assert await house.create() == f"{int(taken, 16) + 2:08x}"


async def test_two_people_two_makers(house: House) -> None:
    made = (await house.bob.post("/api/sessions", json={})).json
    assert (made["created_by_actor_id"], made["caused_by_actor_id"]) == (BOB, BOB)


@pytest.mark.parametrize("below", ["", "scripted", "not/there/yet"])
async def test_no_session_works_in_the_servers_own_directory(house: House, below: str) -> None:
    home = house.services.config.paths.home
    reply = await house.alice.post("/api/sessions", json={"cwd": str(home / below)})
    assert (reply.status, reply.json) == (
        400,
        {"detail": "The working directory can't be in the server's own directory."},
    )
    assert not (home / "not").exists()
