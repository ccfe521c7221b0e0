"""Finding sessions by title and by what was said in them; what was deleted leaves no trace in the index."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from nerve.domain.searching import wanted
from nerve.errors import NerveError
from nerve.store import search
from nerve.store.migrate import known_migrations, open_store
from nerve.store.rows import insert, run
from tests.sessions.session_house import START, House, play, system_session


async def found(house: House, text: str) -> list[str]:
    reply = await house.alice.get("/api/sessions/search", query={"q": text})
    assert reply.status == 200, reply.text
    return [row["id"] for row in reply.json["sessions"]]


async def say(house: House, session_id: str, text: str, role: str = "assistant") -> None:
    """Something that was said, without a turn's other effects."""
    await house.sql(
        "INSERT INTO messages (session_id, role, content, created_at) VALUES (?, ?, ?, '2026-01-01T00:00:00.000Z')",
        session_id,
        role,
        text,
    )


@pytest.mark.parametrize("text", ["unch pl", "LAUNCH", "launch plan", "plan)", "  Plan ", "p"])
async def test_any_part_of_a_title_will_do(house: House, text: str) -> None:
    session_id = await house.create(title="(Launch plan)")
    await house.create(title="Dinner")
    assert await found(house, text) == [session_id]


@pytest.mark.parametrize(
    ("title", "text"), [("Über uns", "über"), ("ÜBER UNS", "über u"), ("Straße", "STRASSE"), ("計画", "画")]
)
async def test_titles_in_any_script_are_found_in_any_case(house: House, title: str, text: str) -> None:
    session_id = await house.create(title=title)
    assert await found(house, text) == [session_id]


async def test_what_a_turn_said_is_found_from_both_sides(house: House) -> None:
    session_id, other = await house.create(title="A"), await house.create(title="B")
    await house.run(session_id, play("- say: The zebra is in the Café."))
    await house.run(other, play("- say: Nothing."))
    assert await found(house, "zebra") == [session_id]
    assert await found(house, "cafe zeb") == [session_id]  # every word, in any order, each perhaps only begun
    assert await found(house, "zebra nothing") == []  # not one word here and one there
    assert await found(house, "ebra") == []
    assert await found(house, "scenario") == [other, session_id]  # what the person wrote, newest activity first


async def test_a_row_is_that_of_the_lists(house: House) -> None:
    session_id = await house.create(title="Launch plan")
    listed = (await house.alice.get("/api/sessions")).json["sessions"]
    reply = await house.alice.get("/api/sessions/search", query={"q": "launch"})
    assert reply.json == {"sessions": [row for row in listed if row["id"] == session_id]}


async def test_all_but_archived_sessions_are_searched_newest_first(house: House) -> None:
    web, gone = await house.create(title="needle web"), await house.create(title="needle gone")
    starred = await house.create(title="needle starred")
    await house.alice.patch(f"/api/sessions/{starred}", json={"starred": True})
    cron = await system_session(house, "cron:needle:1")
    hidden = await system_session(house, "cron:needle:2", status="archived")
    await say(house, gone, "needle")
    await say(house, hidden, "needle")
    await house.archive(gone)
    await trio.sleep(1)
    await house.run(web, "hay")
    assert await found(house, "needle") == [web, starred, cron]
    assert await found(house, "hay") == [web]


async def test_at_most_a_hundred_are_found(house: House) -> None:
    for number in range(103):
        await system_session(house, f"many:{number:03}", updated_at=f"2026-01-01T00:00:00.{number:03}Z")
    assert await found(house, "many") == [f"many:{number:03}" for number in range(102, 2, -1)]


@pytest.mark.parametrize("query", [{}, {"q": ""}, {"q": " \t\n"}, {"q": "\x00\x1f"}])
async def test_nothing_to_look_for_is_refused(house: House, query: dict[str, str]) -> None:
    reply = await house.alice.get("/api/sessions/search", query=query)
    assert (reply.status, reply.json) == (400, {"detail": "The text to search for is empty."})


async def test_a_text_that_is_too_long_is_refused(house: House) -> None:
    assert await found(house, "x" * 200) == []
    reply = await house.alice.get("/api/sessions/search", query={"q": "x" * 201})
    assert (reply.status, reply.json["detail"][0]["loc"]) == (422, ["query", "q"])


SYNTAX = [
    '"',
    "*",
    "NOT",
    "a AND",
    "OR OR",
    "NEAR(a b, 2)",
    "content:zebra",
    "-zebra",
    "^zebra",
    "(zebra",
    '""*',
    "{a}",
    "zebra*",
]


@pytest.mark.parametrize("text", SYNTAX)
async def test_nothing_in_the_text_is_syntax(house: House, text: str) -> None:
    plain, literal = await house.create(title="A"), await house.create(title="B")
    await say(house, plain, "one zebra there")
    await say(house, literal, f"He typed {text} and left")
    ids = await found(house, text)
    signs_only = not any(c.isalnum() for c in text)
    assert (literal in ids) is not signs_only  # signs are no words; in titles they are found
    assert plain not in ids or text in ("-zebra", "^zebra", "(zebra", "zebra*")


# (a letter that this index's tokenizer does not know yet is no word to it)
TEXTS = st.text(st.characters(max_codepoint=0x24F), max_size=30) | st.text(max_size=30)


@given(text=TEXTS, other=TEXTS)
@settings(max_examples=40, deadline=None)
def test_any_text_can_be_searched_for_and_a_title_is_found_by_itself(text: str, other: str) -> None:
    with closing(open_store(":memory:")) as db:
        _session(db, "one", text)
        insert(db, "messages", session_id="one", role="user", content=other, created_at=START)
        for query in (text, other):
            try:
                looked_for = wanted(query)
            except NerveError:
                continue
            ids = [row[0] for row in search.sessions(db, looked_for)]
            assert ids in ([], ["one"])
            if query is text and looked_for.text == text.casefold():
                assert ids == ["one"]


# --- what is gone is gone -----------------------------------------------------------------------------------------


async def test_a_deleted_session_is_no_longer_found(house: House) -> None:
    session_id = await house.create(title="A")
    await say(house, session_id, "zebra")
    assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
    assert await found(house, "zebra") == []
    assert await house.sql("SELECT count(*) FROM message_words WHERE message_words MATCH 'zebra'") == [(0,)]


async def test_a_long_sessions_words_leave_in_bounded_steps(house: House) -> None:
    session_id, other = await house.create(title="A"), await house.create(title="B")
    for number in range(search.AT_ONCE * 2 + 3):
        await say(house, session_id, f"zebra {number}")
    await say(house, other, "zebra, the one that stays")
    await house.alice.delete(f"/api/sessions/{session_id}")
    assert await found(house, "zebra") == [other]
    left = []
    more = True
    while more:
        left.append((await house.sql("SELECT count(*) FROM forgotten_messages"))[0][0])
        more = await house.services.database.write(search.forget)
    assert left == [search.AT_ONCE + 3, 3]
    assert await house.sql("SELECT count(*) FROM message_words WHERE message_words MATCH 'zebra'") == [(1,)]


async def test_a_step_is_bounded_in_text_too(house: House) -> None:
    session_id = await house.create(title="A")
    for _ in range(4):
        await say(house, session_id, "word " * (search.AT_ONCE_CHARACTERS // 5 // 2 + 1))
    await house.sql("DELETE FROM messages WHERE session_id = ?", session_id)
    assert await house.services.database.write(search.forget)
    assert await house.sql("SELECT count(*) FROM forgotten_messages") == [(2,)]


async def test_words_far_into_a_message_are_not_indexed_and_leave_nothing_behind(house: House) -> None:
    session_id = await house.create(title="A")
    await say(house, session_id, "early " + "." * 65_530 + " late")
    assert (await found(house, "early"), await found(house, "late")) == ([session_id], [])
    await house.alice.delete(f"/api/sessions/{session_id}")
    assert await vocabulary(house) == set()


async def test_a_changed_message_is_found_by_its_new_words_only(house: House) -> None:
    session_id = await house.create(title="A")
    await say(house, session_id, "zebra")
    await house.sql("UPDATE messages SET content = 'giraffe'")
    assert (await found(house, "zebra"), await found(house, "giraffe")) == ([], [session_id])
    await house.sql("UPDATE messages SET blocks = '[]', native_turn_id = 'n'")
    assert await found(house, "giraffe") == [session_id]


async def vocabulary(house: House) -> set[str]:
    await house.sql("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'message_words', 'row')")
    return {row[0] for row in await house.sql("SELECT term FROM temp.vocabulary")}


def test_the_words_of_a_deleted_message_are_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "nerve.db"
    db = open_store(path)
    _session(db, "one", "A")
    with db:
        for number in range(300):
            secret = "xylophonist" if number == 150 else f"word{number}"
            insert(db, "messages", session_id="one", role="user", content=f"{secret} and more", created_at=START)
    assert b"xylophonist" in _bytes(path)
    run(db, "DELETE FROM messages WHERE content LIKE 'xylophonist%'")
    assert not search.forget(db)
    db.pragma("wal_checkpoint", "TRUNCATE")
    assert b"xylophonist" not in _bytes(path)
    assert b"word149" in _bytes(path)
    assert list(db.execute("PRAGMA integrity_check")) == [("ok",)]
    db.close()


def _bytes(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm"))


def test_an_upgrade_fills_the_index(tmp_path: Path) -> None:
    path = tmp_path / "nerve.db"
    old = open_store(path, migrations=known_migrations()[:1])
    _session(old, "one", "A")
    insert(old, "messages", session_id="one", role="user", content="the zebra of old", created_at=START)
    old.close()
    db = open_store(path)
    assert [row[0] for row in search.sessions(db, wanted("zebra"))] == ["one"]
    run(db, "DELETE FROM sessions")
    assert not search.forget(db)
    assert list(db.execute("SELECT rowid FROM message_words WHERE message_words MATCH 'zebra'")) == []
    db.close()


def _session(db: apsw.Connection, session_id: str, title: str) -> None:
    insert(
        db, "sessions", id=session_id, title=title, source="web", status="idle", backend="scripted", cwd="/",
        created_at=START, updated_at=START,
    )  # fmt: skip
