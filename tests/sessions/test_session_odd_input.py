"""Odd ids and texts are data: never a 5xx, never syntax."""

import random
from typing import Any
from urllib.parse import quote

import pytest
import trio

from tests.sessions.session_house import House

ODD = [
    "\0",
    "a\0b",
    "x" * 5000,
    "'; DROP TABLE sessions; --",
    '" OR 1=1 --',
    "%",
    "_",
    "*",
    "?",
    "a/b",
    "../main",
    "..",
    "\u202e",
    "🦉" * 40,
    "main ",
    " main",
    "MAIN",
    "NEAR(a b)",
    "\r\n",
    "￿",
]
CALLS: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("PATCH", "", {"title": "x"}),
    ("DELETE", "", None),
    ("GET", "/messages", None),
    ("GET", "/status", None),
    ("GET", "/events", None),
    ("POST", "/archive", None),
    ("POST", "/unarchive", None),
    ("POST", "/stop", {}),
    ("GET", "/queue", None),
    ("DELETE", "/queue/q_1", None),
]


@pytest.mark.req("GEN-05", "GEN-12", "GEN-01", "GEN-08")
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
async def test_odd_ids_name_nothing(house: House, odd: str) -> None:
    for method, path, body in CALLS:
        options = {} if body is None else {"json": body}
        reply = await house.alice.request(method, f"/api/sessions/{quote(odd, safe='')}{path}", **options)
        assert reply.status == 404, (method, path)
        assert "detail" in reply.json
        assert reply.headers["content-type"].startswith("application/json")
    for body in (
        {"message": "x", "session_id": odd},
        {"message": "x", "session_id": "main", "client_msg_id": odd[:200]},
    ):
        reply = await house.alice.post("/api/chat", json=body)
        assert reply.status in (200, 404)
    reply = await house.alice.delete(f"/api/sessions/main/queue/{quote(odd, safe='')}")
    assert reply.status == 404
    assert [row["id"] for row in (await house.alice.get("/api/sessions")).json["sessions"]] == ["main"]


@pytest.mark.req("GEN-12", "SESS-23", "SESS-44")
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
async def test_odd_texts_are_kept_as_they_are(house: House, odd: str) -> None:
    title = odd[:500]
    session_id = await house.create(title=title, model=title[:200] if title[:200].strip() else None)
    row = await house.row(session_id)
    assert row["title"] == (title.strip() or session_id)
    if title.strip():
        reply = await house.alice.patch(f"/api/sessions/{session_id}", json={"title": f"{title}!"[:500]})
        assert reply.json["title"] == f"{title}!"[:500].strip()
    assert (await house.alice.patch(f"/api/sessions/{session_id}", json={"parent_session_id": odd})).status == 404
    await house.run(session_id, f"{odd}.")
    messages = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    assert messages[0]["content"] == f"{odd}."


def noise(rng: random.Random, most: int) -> str:
    """Characters of every kind, letters and digits more often than chance would have it."""
    planes = [(32, 126), (48, 57), (0, 31), (0x80, 0x7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]
    return "".join(chr(rng.randint(*rng.choice(planes))) for _ in range(rng.randint(1, most)))


@pytest.mark.req("GEN-05", "GEN-06")
async def test_whatever_stands_in_a_path_or_a_query(house: House) -> None:
    rng = random.Random(7)
    for _ in range(40):
        segment, number = quote(noise(rng, 30), safe=""), quote(noise(rng, 6), safe="").encode()
        for path in (segment, f"{segment}/messages", f"{segment}/queue"):
            assert (await house.alice.get(f"/api/sessions/{path}")).status == 404
        for which in ("", "/archived", "/system"):
            reply = await house.alice.get(f"/api/sessions{which}", query=b"offset=" + number)
            assert reply.status in (200, 422)
        for name in (b"limit=", b"before_id="):
            reply = await house.alice.get("/api/sessions/main/messages", query=name + number)
            assert reply.status in (200, 422)


@pytest.mark.req("GEN-03", "GEN-04")
@pytest.mark.parametrize("content", [b"{", b"[]", b'"text"', b"\xff", b"null", b'{"title": "\\ud800"}', b"[" * 5000])
async def test_bodies_that_are_no_object(house: House, content: bytes) -> None:
    for method, path in (("POST", "/api/sessions"), ("PATCH", "/api/sessions/main"), ("POST", "/api/chat")):
        headers = {"content-type": "application/json"}
        reply = await house.alice.request(method, path, content=content, headers=headers)
        assert reply.status == 422, (method, path)


@pytest.mark.req("GEN-07")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/sessions"),
        ("DELETE", "/api/sessions/archived"),
        ("POST", "/api/sessions/main"),
        ("GET", "/api/sessions/main/archive"),
        ("GET", "/api/chat"),
        ("POST", "/api/sessions/main/queue"),
    ],
)
async def test_a_wrong_method(house: House, method: str, path: str) -> None:
    assert (await house.alice.request(method, path)).status == 405


@pytest.mark.req("GEN-11")
async def test_many_at_once(house: House) -> None:
    session_id = await house.create()
    titles = [f"title {n}" for n in range(30)]

    async def rename(title: str) -> None:
        assert (await house.alice.patch(f"/api/sessions/{session_id}", json={"title": title})).status == 200

    async with trio.open_nursery() as nursery:
        for title in titles:
            nursery.start_soon(rename, title)
            nursery.start_soon(house.create)
    changes = [event["details"] for event in await house.events(session_id) if event["event_type"] == "title_changed"]
    assert {change["title"] for change in changes} == set(titles)
    # Each change saw the one before it.
    chain = [session_id, *(change["title"] for change in reversed(changes))]
    assert [change["previous"] for change in reversed(changes)] == chain[:-1]
    assert len((await house.alice.get("/api/sessions")).json["sessions"]) == 32
