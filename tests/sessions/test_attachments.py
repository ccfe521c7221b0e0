"""Messages with files: what the agent gets, what everybody sees, and what becomes of the files."""

from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.adapters.protocol import PromptFile
from nerve.runtime.recovery import recover
from nerve.runtime.uploads import Uploads
from nerve.store.inline import InlineDatabase
from tests.runtime.puppets import COMPLETED, puppets
from tests.runtime.tabs import of, tab
from tests.sessions.branches import fork
from tests.sessions.forms import PNG, upload
from tests.sessions.session_house import ALICE, BOB, House, open_house, play

HELLO = play("- say: hello")


async def two_files(house: House, **query: str) -> list[str]:
    return [file["id"] for file in await upload(house.alice, ("plan.png", PNG), ("notes.txt", b"x"), **query)]


def shown(picture: str, text: str, content: str = HELLO) -> dict[str, Any]:
    """Content and blocks of a message with those two files."""
    return {
        "content": f"{content}\n\n[1 image(s) attached]",
        "blocks": [
            {"type": "text", "content": content},
            {
                "type": "image",
                "url": f"/api/files/uploads/{picture}",
                "filename": "plan.png",
                "media_type": "image/png",
            },
            {
                "type": "file",
                "url": f"/api/files/uploads/{text}",
                "filename": "notes.txt",
                "media_type": "application/octet-stream",
            },
        ],
    }


async def rows(house: House, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    return found


async def users_row(house: House, session_id: str) -> dict[str, Any]:
    (row,) = [row for row in await rows(house, session_id) if row["role"] == "user"]
    return row


async def statuses(house: House, *file_ids: str) -> list[int]:
    return [(await house.alice.get(f"/api/files/uploads/{file_id}")).status for file_id in file_ids]


def something_waits(frame: dict[str, Any]) -> bool:
    return frame["type"] == "queue_update" and frame["queue"] != []


async def sweep(house: House) -> None:
    await Uploads(house.services.database, house.services.effects, house.services.config.workspace).sweep()


@pytest.mark.req("WS-10")
async def test_a_message_over_the_socket(house: House) -> None:
    session_id = await house.create()
    picture, text = await two_files(house)
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as bob:
        await bob.say(session_id, HELLO, file_ids=[picture, text])
        (told,) = of(await alice.turn(), "user_message")
        assert {key: told[key] for key in ("content", "blocks", "actor_id")} == {
            **shown(picture, text),
            "actor_id": BOB,
        }
        await alice.switch("main")
        await alice.switch(session_id, after_seq=0)
        assert (await alice.until("user_message"))[-1] == told
    row = await users_row(house, session_id)
    assert {key: row[key] for key in ("content", "blocks")} == shown(picture, text)
    assert row["actor_id"] == BOB
    for block, content in zip(row["blocks"][1:], (PNG, b"x"), strict=True):
        assert (await house.alice.get(block["url"])).body == content
    assert await house.sql("SELECT DISTINCT session_id, actor_id, used_at IS NULL FROM uploads") == [
        (session_id, ALICE, 0)
    ]
    assert (await house.row(session_id))["title"] == "#!nerve-scenario - say: hello"


@pytest.mark.req("WS-10")
async def test_the_agent_gets_where_they_are(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    picture, text = await two_files(house)
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "Look", file_ids=[text, picture, text])  # twice is once
        puppet = await adapter.prompted()
        (prompt,) = puppet.prompts
        top = house.services.config.workspace / ".uploads" / "unsent"
        assert prompt.text == "Look"
        assert prompt.files == (
            PromptFile(top / f"{text}_notes.txt", "notes.txt", "application/octet-stream"),
            PromptFile(top / f"{picture}_plan.png", "plan.png", "image/png"),
        )
        assert [file.path.read_bytes() for file in prompt.files] == [b"x", PNG]
        puppet.say(COMPLETED)
        await alice.turn()
        await alice.say(session_id, "And now without")
        (_, second) = (await adapter.prompted(2)).prompts
        assert second.files == ()


@pytest.mark.parametrize("wrong", ["nobody", "", "../main", "0000000000000001\0", "another's"])
async def test_a_file_that_is_not_there_refuses_the_message(house: House, wrong: str) -> None:
    session_id, other = await house.create(), await house.create()
    (picture, text) = await two_files(house)
    if wrong == "another's":
        await house.alice.post(
            "/api/sessions/run-later",
            json={"session_id": other, "message": "x", "delay": "1h", "file_ids": [text]},
        )
        wrong = text
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, HELLO, client_msg_id="c1", file_ids=[picture, wrong])
        (error,) = of(await alice.until("error"), "error")
        assert (error["session_id"], error["error"], error["client_msg_id"]) == (session_id, "file_not_found", "c1")
        assert await rows(house, session_id) == []
        # Nothing of the refused message is left: neither is its id a duplicate, nor has its picture a session.
        assert await house.sql("SELECT count(*) FROM queue_entries") == [(0,)]
        assert (await house.sql("SELECT session_id FROM uploads WHERE id = ?", picture)) == [(None,)]
        await alice.say(session_id, HELLO, client_msg_id="c1", file_ids=[picture])
        await alice.turn()
    assert [block["type"] for block in (await users_row(house, session_id))["blocks"]] == ["text", "image"]


@pytest.mark.parametrize("file_ids", ["f1", [1], None, {"f": 1}, ["f"] * 21])
async def test_what_is_no_list_of_ids(house: House, file_ids: Any) -> None:
    async with tab(house.alice, "main") as alice:
        await alice.send("message", session_id="main", content="x", file_ids=file_ids)
        await alice.until("error")
        assert await rows(house, "main") == []


async def test_a_duplicate_changes_nothing(house: House) -> None:
    session_id = await house.create()
    (picture, text) = await two_files(house)
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, HELLO, client_msg_id="c1", file_ids=[picture])
        await alice.turn()
        await alice.say(session_id, HELLO, client_msg_id="c1", file_ids=[text])
        await alice.until(lambda frame: "removed" in frame)
    assert await house.sql("SELECT session_id FROM uploads WHERE id = ?", text) == [(None,)]
    assert len(await rows(house, session_id)) == 2


async def test_a_file_can_be_sent_again_in_its_session(house: House) -> None:
    session_id = await house.create()
    (picture, _) = await two_files(house, session_id=session_id)
    async with tab(house.alice, session_id) as alice:
        for _ in range(2):
            await alice.say(session_id, HELLO, file_ids=[picture])
            await alice.turn()
    urls = [row["blocks"][1]["url"] for row in await rows(house, session_id) if row["role"] == "user"]
    assert urls == [f"/api/files/uploads/{picture}"] * 2


# --- later --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", ["none", "24h"])
@pytest.mark.parametrize("by", ["file_ids", "image_blocks"])
async def test_a_message_that_is_put_off(house: House, delay: str, by: str) -> None:
    session_id = await house.create()
    picture, text = await two_files(house)
    named: dict[str, Any] = {"file_ids": [picture, text]}
    if by == "image_blocks":
        named = {"file_ids": [text], "image_blocks": [{"type": "image", "url": f"/api/files/uploads/{picture}"}]}
    body = {"session_id": session_id, "message": HELLO, "delay": delay, **named}
    assert (await house.bob.post("/api/sessions/run-later", json=body)).status == 200
    await trio.sleep(0.0 if delay == "none" else 24 * 3600 - 60)
    await sweep(house)
    if delay == "24h":
        await trio.sleep(90)
    await sweep(house)  # a day is over, but a message waited with them
    await trio.sleep(1)
    row = await users_row(house, session_id)
    expected = shown(picture, text)
    if by == "image_blocks":
        expected["blocks"][1:] = reversed(expected["blocks"][1:])
    assert {key: row[key] for key in ("content", "blocks", "actor_id")} == {**expected, "actor_id": BOB}
    assert await statuses(house, picture, text) == [200, 200]


@pytest.mark.parametrize(
    "block",
    [
        {},
        {"url": "/api/files/uploads/"},
        {"url": "/api/files/uploads/../main"},
        {"url": "/api/files/uploads/nobody"},
        {"url": "http://evil.example/x.png"},
        {"url": "file:///etc/passwd"},
        {"url": None},
        {"url": ["/api/files/uploads/0000000000000001"]},
    ],
)
async def test_a_block_that_names_no_upload(house: House, block: dict[str, Any]) -> None:
    session_id = await house.create()
    await two_files(house)
    for delay in ("none", "1h"):
        body = {"session_id": session_id, "message": HELLO, "delay": delay, "image_blocks": [block]}
        assert (await house.alice.post("/api/sessions/run-later", json=body)).status == 404
    assert await house.sql("SELECT count(*) FROM session_wakeups") == [(0,)]
    assert await rows(house, session_id) == []


async def test_what_is_replaced_or_taken_back_lets_its_files_go(house: House) -> None:
    session_id = await house.create()
    picture, text = await two_files(house)
    for file_ids in ([picture], []):
        body = {"session_id": session_id, "message": HELLO, "delay": "24h", "file_ids": file_ids}
        await house.alice.post("/api/sessions/run-later", json=body)
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- wait: 5"))
        await alice.until("session_running")
        await alice.say(session_id, HELLO, file_ids=[text])
        queue_id = (await alice.until(something_waits))[-1]["queue"][0]["queue_id"]
        assert (await house.alice.delete(f"/api/sessions/{session_id}/queue/{queue_id}")).status == 200
        await alice.turn()
    await trio.sleep(25 * 3600)
    await sweep(house)
    assert await statuses(house, picture, text) == [404, 404]
    assert await house.sql("SELECT count(*) FROM message_uploads") == [(0,)]


async def test_what_waits_in_a_queue_keeps_its_files_over_a_restart(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home") as house:
        session_id = await house.create()
        (picture, text) = await two_files(house)
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- wait: 1000"))
            await alice.until("session_running")
            await alice.say(session_id, HELLO, file_ids=[picture, text])
            await alice.until(something_waits)
    async with open_house(database, tmp_path / "home", born=1, recovered=False) as house:
        await house.supervisor.go_on((await recover(house.supervisor.house, "2")).waiting)
        await house.run(session_id, play("- say: next"))
        row = [row for row in await rows(house, session_id) if row["role"] == "user"][1]
        assert {key: row[key] for key in ("content", "blocks")} == shown(picture, text)


# --- the end ------------------------------------------------------------------------------------------------------


@pytest.mark.req("SESS-39")
async def test_a_deleted_session_takes_its_files_along(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    sent, kept = await two_files(house, session_id=session_id)
    (foreign,) = await upload(house.alice, ("other.txt", b"x"), session_id=other)
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, HELLO, file_ids=[sent])
        await alice.turn()
    assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
    assert await statuses(house, sent, kept, foreign["id"]) == [404, 404, 200]
    top = house.services.config.workspace / ".uploads"
    assert [path.name for path in top.rglob("*_*")] == [f"{foreign['id']}_other.txt"]
    assert not (top / session_id).exists()
    assert await house.sql("SELECT count(*) FROM message_uploads") == [(0,)]


async def test_a_file_that_forks_show_stays_as_long_as_any_of_them(house: House) -> None:
    session_id = await house.create()
    picture, late = await two_files(house)
    async with tab(house.alice, session_id) as alice:
        for file_id in (picture, late):
            await alice.say(session_id, HELLO, file_ids=[file_id])
            await alice.turn()
    whole = (await fork(house, session_id))["id"]
    early = (await fork(house, session_id, (await rows(house, session_id))[1]["id"]))["id"]
    assert [row["blocks"] for row in await rows(house, whole)] == [
        row["blocks"] for row in await rows(house, session_id)
    ]
    await house.alice.delete(f"/api/sessions/{session_id}")
    assert await statuses(house, picture, late) == [200, 200]
    await house.alice.delete(f"/api/sessions/{whole}")
    assert await statuses(house, picture, late) == [200, 404]
    # What a fork has come by it can send again, as its own.
    async with tab(house.alice, early) as alice:
        await alice.say(early, HELLO, file_ids=[picture])
        await alice.turn()
    await house.alice.delete(f"/api/sessions/{early}")
    assert await statuses(house, picture, late) == [404, 404]
    assert not [path for path in (house.services.config.workspace / ".uploads").rglob("*") if path.is_file()]


async def test_files_of_a_link_put_in_their_place_are_not_touched(house: House, tmp_path: Path) -> None:
    session_id = await house.create()
    (file,) = await upload(house.alice, ("a.txt", b"x"), session_id=session_id)
    folder = house.services.config.workspace / ".uploads" / session_id
    outside = tmp_path / "outside"
    folder.rename(outside)
    folder.symlink_to(outside)
    assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
    assert [path.name for path in outside.iterdir()] == [f"{file['id']}_a.txt"]
