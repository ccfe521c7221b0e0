"""A fork's first turn branches its source's conversation; from then on the two have nothing in common."""

from functools import partial
from pathlib import Path

import pytest
import trio

from nerve.domain.attribution import Attribution
from nerve.errors import ErrorCode, NerveError
from nerve.store import forks
from nerve.store.forks import Copy
from nerve.store.inline import InlineDatabase
from tests.runtime.mortal_home import Home
from tests.runtime.tabs import tab
from tests.sessions.branches import RECALL, asked, conversations, fork, messages, remembered, talked, try_fork
from tests.sessions.session_house import ALICE, House, now, play

QUESTION = " ".join(RECALL.splitlines())
UNNAMED = play("- say: two", "- unmapped: true")
CRASHED = play("- say: two", "- crash: true")


def line(text: str) -> str:
    return " ".join(text.splitlines())


async def native(house: House, session_id: str) -> str:
    return str((await house.row(session_id))["sdk_session_id"])


@pytest.mark.req("SESS-55")
async def test_the_first_turn_branches_and_nothing_before(house: House) -> None:
    source = await talked(house, "one", "two", "three")
    own = await native(house, source)
    made = (await fork(house, source, (await messages(house, source))[2]["id"]))["id"]
    assert conversations(house) == {own: ["one", "two", "three"]}
    await talked(house, "four of the fork", session_id=made)
    branch = await native(house, made)
    assert branch != own
    assert conversations(house) == {own: ["one", "two", "three"], branch: ["one", "two", "four of the fork"]}
    assert (await house.row(made))["status"] == "active"
    started = (await house.events(made))[0]
    assert (started["event_type"], started["details"]) == ("started", {"sdk_session_id": branch})


@pytest.mark.req("SESS-55")
async def test_neither_writes_into_the_other(house: House) -> None:
    source = await talked(house, "one", "two")
    made = (await fork(house, source))["id"]
    rows = await messages(house, source)
    for n in range(3):
        await talked(house, f"source {n}", session_id=source)
        await talked(house, f"fork {n}", session_id=made)
    assert await remembered(house, source) == ["one", "two", "source 0", "source 1", "source 2"]
    assert await remembered(house, made) == ["one", "two", "fork 0", "fork 1", "fork 2"]
    assert (await messages(house, source))[: len(rows)] == rows
    assert (await asked(house, source))[:-1] == ["one", "two", "source 0", "source 1", "source 2"]
    assert (await asked(house, made))[:-1] == ["one", "two", "fork 0", "fork 1", "fork 2"]
    # Turns, frames, figures and the record of changes are each one's own.
    for table in ("turns", "frames", "session_events"):
        ((shared,),) = await house.sql(
            f"SELECT count(*) FROM {table} WHERE session_id NOT IN (?, ?, 'main')", source, made
        )
        assert shared == 0
    for session_id in (source, made):
        assert (await house.row(session_id))["message_count"] == len(await messages(house, session_id))


@pytest.mark.req("SESS-54", "SESS-55")
async def test_at_every_message_the_fork_remembers_what_it_shows(house: House) -> None:
    stopped, failed = play("- say: begun", "- wait: 20"), play("- say: oh", "- fail: no")
    source = await talked(house, "one", play("- say: two", "- usage: {input_tokens: 1}"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, source, stopped)
        await trio.sleep(1)
        await house.alice.post(f"/api/sessions/{source}/stop")
    await talked(house, failed, "five", session_id=source)
    for anchor in await messages(house, source):
        made = (await fork(house, source, anchor["id"]))["id"]
        shows = [line(text) for text in await asked(house, made)]
        assert await remembered(house, made) == shows


@pytest.mark.req("SESS-55")
async def test_what_the_source_does_before_the_first_turn_stays_its_own(house: House) -> None:
    source = await talked(house, "one")
    made = (await fork(house, source))["id"]
    await talked(house, "two", session_id=source)
    assert await remembered(house, made) == ["one"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, source, play("- wait: 3"))
        await trio.sleep(1)
        later = (await fork(house, source))["id"]
        assert await remembered(house, later) == ["one", "two"]


@pytest.mark.req("SESS-55")
@pytest.mark.parametrize("end", [UNNAMED, CRASHED])
async def test_so_it_is_when_the_end_has_no_name(house: House, end: str) -> None:
    source = await talked(house, "one", end)
    own = await native(house, source)
    made = await fork(house, source)
    assert made["sdk_session_id"] is None
    assert (await try_fork(house, made["id"])).status == 409
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, source, play("- say: three", "- wait: 3"))
        await trio.sleep(1)
        assert await remembered(house, made["id"]) == ["one", line(end)]
    assert (await remembered(house, source))[:2] == ["one", line(end)]
    # The copy that the branch was made of is gone, and so is all of it when the sessions are.
    assert conversations(house).keys() == {own, await native(house, made["id"])}
    unused = (await fork(house, made["id"], (await messages(house, made["id"]))[0]["id"]))["id"]
    for session_id in (unused, made["id"], source):
        await house.alice.delete(f"/api/sessions/{session_id}")
    assert conversations(house) == {}


async def test_a_copy_is_forgotten_with_its_fork(house: House) -> None:
    source = await talked(house, "one", UNNAMED)
    made = (await fork(house, source))["id"]
    assert len(conversations(house)) == 2
    await house.alice.delete(f"/api/sessions/{made}")
    assert conversations(house) == {await native(house, source): ["one", UNNAMED]}


@pytest.mark.req("GEN-11")
@pytest.mark.parametrize("pause", range(12))
async def test_a_fork_while_the_source_begins_a_turn_keeps_to_what_it_shows(house: House, pause: int) -> None:
    source = await talked(house, "one", UNNAMED)
    made: list[str] = []

    async def try_it() -> None:
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        reply = await try_fork(house, source)
        assert reply.status in (200, 409)
        made.extend([reply.json["id"]] if reply.status == 200 else [])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(try_it)
        nursery.start_soon(house.run, source, play("- say: three", "- wait: 1"))
    for session_id in made:
        shows = [line(text) for text in await asked(house, session_id)]
        assert await remembered(house, session_id) == shows
    known = {await native(house, session_id) for session_id in [source, *made]}
    assert conversations(house).keys() == known


async def test_a_copy_from_before_another_turn_is_of_no_use(house: House) -> None:
    source = await talked(house, "one", UNNAMED)
    ((turn,),) = await house.sql("SELECT id FROM turns WHERE session_id = ? AND native_turn_id IS NULL", source)
    copy = Copy("scripted", "native-of-then", turn)
    write = partial(house.services.database.write, forks.fork, source, None, None, Attribution(ALICE, ALICE), copy)
    await talked(house, UNNAMED, session_id=source)
    with pytest.raises(NerveError) as refused:
        await write(house.services.effects.new_id, now())
    assert refused.value.code is ErrorCode.ANCHOR_NOT_MAPPED
    await talked(house, "three", session_id=source)  # now the end has a name, and no copy is needed
    assert await remembered(house, (await write(house.services.effects.new_id, now())).id) == [
        "one",
        *[line(UNNAMED)] * 2,
        "three",
    ]


@pytest.mark.req("SESS-55")
async def test_a_fork_of_a_fork(house: House) -> None:
    source = await talked(house, "one", "two")
    middle = await talked(house, "three", "four", session_id=(await fork(house, source))["id"])
    await talked(house, "elsewhere", session_id=source)
    for anchor in [*await messages(house, middle), None]:
        made = (await fork(house, middle, anchor and anchor["id"]))["id"]
        shows = await asked(house, made)
        assert await remembered(house, made) == shows
        assert (await house.row(made))["parent_session_id"] == middle
    assert await asked(house, middle) == ["one", "two", "three", "four"]


@pytest.mark.req("SESS-55")
async def test_two_forks_whose_first_turns_come_at_once(house: House) -> None:
    source = await talked(house, "one", "two")
    made = [(await fork(house, source))["id"] for _ in range(4)]
    async with trio.open_nursery() as nursery:
        for n, session_id in enumerate([*made, source]):
            nursery.start_soon(partial(talked, house, f"own {n}", session_id=session_id))
    for n, session_id in enumerate([*made, source]):
        assert await remembered(house, session_id) == ["one", "two", f"own {n}"]
    assert len({await native(house, session_id) for session_id in [*made, source]}) == 5


async def test_a_fork_outlives_its_source(house: House) -> None:
    source = await talked(house, "one", "two")
    first, second = [(await fork(house, source, (await messages(house, source))[0]["id"]))["id"] for _ in range(2)]
    await house.alice.delete(f"/api/sessions/{source}")
    assert (await house.row(first))["parent_session_id"] is None
    assert await remembered(house, first) == ["one"]
    assert len(conversations(house)) == 2  # the second fork still needs what the first one has branched
    assert await remembered(house, second) == ["one"]
    assert conversations(house).keys() == {await native(house, first), await native(house, second)}


async def test_a_conversation_that_is_lost_begins_afresh_and_has_no_anchors(house: House) -> None:
    source = await talked(house, "one", "two")
    made = (await fork(house, source))["id"]
    for path in (house.services.config.paths.home / "scripted").glob("*.jsonl"):
        path.unlink()
    assert await remembered(house, made) == []
    for row in (await messages(house, made))[:4]:
        assert (await try_fork(house, made, row["id"])).status == 409
    again = (await fork(house, made))["id"]
    assert await remembered(house, again) == [QUESTION]


async def test_an_agent_that_is_cut_off_in_the_first_turn_keeps_its_branch(house: House) -> None:
    source = await talked(house, "one")
    made = (await fork(house, source))["id"]
    assert (await try_fork(house, made)).status == 409
    await talked(house, CRASHED, session_id=made)
    branch = await native(house, made)
    assert await remembered(house, made) == ["one", line(CRASHED)]
    assert await native(house, made) == branch
    assert await remembered(house, source) == ["one"]


BACKGROUND = play(
    "steps:",
    "- agent: helper",
    "  background: true",
    "  steps: [{wait: 5}]",
    "  result: helped",
    "- say: two",
    "on_settled:",
    "- say: it is done",
)


@pytest.mark.req("SESS-54", "SESS-55")
async def test_a_turn_that_began_by_itself_is_an_anchor_too(house: House) -> None:
    source = await talked(house, "one", BACKGROUND)
    await trio.sleep(30)
    by_itself = (await messages(house, source))[-1]
    assert by_itself["content"] == "it is done"
    for at in (None, by_itself["id"]):
        made = (await fork(house, source, at))["id"]
        await talked(house, "three", session_id=source)
        assert await remembered(house, made) == ["one", line(BACKGROUND)]
        assert len(await messages(house, made)) == 7


async def test_what_the_runtime_could_not_take_down_is_no_anchor(house: House) -> None:
    source = await talked(house, "one")
    record = house.services.config.paths.home / "scripted" / f"{await native(house, source)}.jsonl"
    kept = record.read_bytes()
    record.unlink()  # its runtime is open, and now fails to write
    await talked(house, "two", session_id=source)
    record.write_bytes(kept)
    one, _, *lost = await messages(house, source)
    assert "can't be written" in lost[-1]["content"]
    for row in lost:
        assert (await try_fork(house, source, row["id"])).status == 409
    for at in (one["id"], None):
        assert await remembered(house, (await fork(house, source, at))["id"]) == ["one"]


# --- over a restart and a kill ------------------------------------------------------------------------------------


@pytest.fixture
def home(database: InlineDatabase, tmp_path: Path) -> Home:
    return Home(database, tmp_path / "home")


@pytest.mark.req("SESS-55", "GEN-10")
@pytest.mark.parametrize("end", ["two", UNNAMED])
async def test_a_kill_between_the_fork_and_its_first_turn(home: Home, end: str) -> None:
    async with home.life() as life:
        source = await talked(life.house, "one", end)
        made = (await fork(life.house, source))["id"]
        await talked(life.house, "three", session_id=source)
        life.kill()
    async with home.life() as life:
        assert (await life.house.row(made))["status"] == "created"
        assert await remembered(life.house, made) == ["one", line(end)]
        assert await remembered(life.house, source) == ["one", line(end), "three"]


@pytest.mark.req("SESS-54", "SESS-55")
async def test_what_a_kill_interrupted_is_forked_as_far_as_it_came(home: Home) -> None:
    cut = play("- say: 'begun '", "- wait: 600")
    async with home.life() as life:
        source = await talked(life.house, "one")
        async with tab(life.house.alice, source) as alice:
            await alice.say(source, cut)
            await alice.until("token")
        life.kill()
    async with home.life() as life:
        rows = await messages(life.house, source)
        assert [row["role"] for row in rows] == ["user", "assistant"] * 2
        for row in rows[2:]:
            assert (await try_fork(life.house, source, row["id"])).status == 409
        made = (await fork(life.house, source))["id"]
        await talked(life.house, "three", session_id=source)
        assert await remembered(life.house, made) == ["one", line(cut)]
