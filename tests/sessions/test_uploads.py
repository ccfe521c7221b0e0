"""Files that people send: kept whole or not at all, given back as they were, gone when nobody needs them."""

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.files.arrival import Arrival
from nerve.runtime.uploads import BUFFER_BYTES, FILE_BYTES, SWEEP_SECONDS, Uploads
from nerve.store.inline import InlineDatabase
from tests.asgi_client import Reply
from tests.sessions.forms import CUT, PNG, TYPE, form, part, raw_part, send, upload
from tests.sessions.session_house import ALICE, House, open_house
from tests.sessions.test_session_full_disk import FullDisk

DAY = 24 * 3600.0


def on_disk(house: House) -> list[str]:
    """Every file below the directory of uploads."""
    top = house.services.config.workspace / ".uploads"
    return sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file())


async def records(house: House) -> int:
    ((count,),) = await house.sql("SELECT count(*) FROM uploads")
    return int(count)


async def nothing_kept(house: House) -> bool:
    return on_disk(house) == [] and await records(house) == 0


async def fetch(house: House, file_id: str) -> Reply:
    return await house.alice.get(f"/api/files/uploads/{file_id}")


async def test_what_is_sent_is_there_as_it_was(house: House) -> None:
    session_id = await house.create()
    great = os.urandom(3 * BUFFER_BYTES + 17)
    picture, text, empty, large = await upload(
        house.alice,
        ("plan.png", PNG),
        ("notes.txt", b"one\r\ntwo"),
        ("empty", b""),
        ("great.bin", great),
        session_id=session_id,
    )
    assert [file["id"] for file in (picture, text)] == ["0000000000000001", "0000000000000002"]
    assert {key: value for key, value in picture.items() if key != "id"} == {
        "filename": "plan.png",
        "media_type": "image/png",
        "file_type": "image",
        "size": len(PNG),
    }
    assert [(f["file_type"], f["media_type"], f["size"]) for f in (text, empty, large)] == [
        ("file", "application/octet-stream", 8),
        ("file", "application/octet-stream", 0),
        ("file", "application/octet-stream", len(great)),
    ]
    for file, content in ((picture, PNG), (text, b"one\r\ntwo"), (empty, b""), (large, great)):
        reply = await fetch(house, file["id"])
        assert (reply.status, reply.body) == (200, content)
    assert on_disk(house) == [
        f"{session_id}/0000000000000001_plan.png",
        f"{session_id}/0000000000000002_notes.txt",
        f"{session_id}/0000000000000003_empty",
        f"{session_id}/0000000000000004_great.bin",
    ]
    for path in (house.services.config.workspace / ".uploads").rglob("*_*"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert await house.sql("SELECT DISTINCT session_id, actor_id FROM uploads") == [(session_id, ALICE)]


async def test_a_session_can_come_later(house: House) -> None:
    await upload(house.alice, ("a.txt", b"x"))
    assert on_disk(house) == ["unsent/0000000000000001_a.txt"]
    assert await house.sql("SELECT session_id FROM uploads") == [(None,)]


@pytest.mark.parametrize(
    ("content", "claimed", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "text/html", ("image", "image/png")),
        (b"\xff\xd8\xff\xe0", None, ("image", "image/jpeg")),
        (b"GIF89a...", None, ("image", "image/gif")),
        (b"RIFF\0\0\0\0WEBPVP8 ", None, ("image", "image/webp")),
        (b"<svg onload='alert(1)'/>", "image/svg+xml", ("file", "image/svg+xml")),
        (b"<script>", "text/html; charset=utf-8", ("file", "text/html")),
        (b"alert(1)", "text/javascript", ("file", "text/javascript")),
        (b"%PDF-1.7", "application/pdf", ("file", "application/pdf")),
        (b"no picture", "image/png", ("file", "application/octet-stream")),
        (b"x", "text/html\x00", ("file", "application/octet-stream")),
        (b"x", "a" * 200 + "/b", ("file", "application/octet-stream")),
    ],
)
async def test_nothing_that_is_given_back_is_a_page_or_a_script(
    house: House, content: bytes, claimed: str | None, kind: tuple[str, str]
) -> None:
    lines = () if claimed is None else (f"Content-Type: {claimed}",)
    (file,) = (await send(house.alice, form(part("a.html", content, *lines)))).json["files"]
    assert (file["file_type"], file["media_type"]) == kind
    reply = await fetch(house, file["id"])
    assert reply.body == content
    shown = kind[0] == "image"
    assert reply.headers["content-type"] == (kind[1] if shown else "application/octet-stream")
    assert reply.headers["content-disposition"].startswith("inline;" if shown else "attachment;")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert reply.headers["x-frame-options"] == "DENY"
    head = await house.alice.head(f"/api/files/uploads/{file['id']}")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(content)))


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("..", "file"),
        ("/etc/shadow", "shadow"),
        ("C:\\Users\\me\\plan.doc", "plan.doc"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("%2e%2e%2fpasswd", "%2e%2e%2fpasswd"),
        ("%252e%252e", "%252e%252e"),
        ("a\x00b.txt", "ab.txt"),
        (".bashrc", "bashrc"),
        ("x" * 1000 + ".png", "x" * 116 + ".png"),
        ("ü" * 100 + ".txt", "ü" * 58 + ".txt"),
        ("‮gpj.exe", "gpj.exe"),
        ("a%22;b.txt", 'a";b.txt'),
    ],
)
async def test_a_name_is_only_a_name(house: House, sent: str, name: str) -> None:
    outside = sorted(house.services.config.workspace.parent.rglob("*"))
    (file,) = await upload(house.alice, (sent, b"x"))
    assert file["filename"] == name
    assert on_disk(house) == [f"unsent/{file['id']}_{name}"]
    grown = {path for path in house.services.config.workspace.parent.rglob("*") if path not in outside}
    assert all(path.is_relative_to(house.services.config.workspace / ".uploads") for path in grown)
    disposition = (await fetch(house, file["id"])).headers["content-disposition"]
    assert re.fullmatch(r"attachment; filename=\"[^\"\\%]*\"; filename\*=UTF-8''[\w.%-]+", disposition, re.ASCII)


# --- bounds -------------------------------------------------------------------------------------------------------


async def test_the_size_of_a_file_is_bounded_exactly(house: House) -> None:
    (file,) = await upload(house.alice, ("most.bin", bytes(FILE_BYTES)))
    assert file["size"] == FILE_BYTES
    reply = await send(house.alice, form(part("a.txt", b"x"), part("great.bin", bytes(FILE_BYTES + 1))))
    assert (reply.status, reply.json["detail"]) == (
        413,
        f"The file great.bin is larger than {FILE_BYTES} bytes; nothing was kept.",
    )
    assert len(on_disk(house)) == await records(house) == 1


async def test_a_request_is_refused_by_its_head_or_when_it_has_become_too_great(house: House) -> None:
    limit = 50 * 1024 * 1024
    headers = {"content-type": TYPE, "content-length": str(limit + 1)}
    async with house.alice.open("POST", "/api/files/upload", headers=headers, end_body=False) as exchange:
        with trio.fail_after(30):
            await exchange.answered.wait()
        assert exchange.status == 413
        exchange.disconnect()
    pieces = (form(part("a.txt", b"x")), *[bytes(1024 * 1024)] * 50)  # the form is over; the bytes are not
    assert (await send(house.alice, pieces)).status == 413
    assert await nothing_kept(house)


async def test_files_are_counted(house: House) -> None:
    twenty = [part(f"{n}.txt", b"x") for n in range(20)]
    reply = await send(house.alice, form(*twenty, part("one more", b"x")))
    assert reply.status == 422
    assert await nothing_kept(house)
    for _ in range(5):
        assert (await send(house.alice, form(*twenty))).status == 200
    refused = await send(house.alice, form(twenty[0]))
    assert refused.status == 409
    assert len(on_disk(house)) == await records(house) == 100
    assert (await send(house.bob, form(*twenty))).status == 200  # everybody has their own hundred


async def test_two_at_once_do_not_get_past_the_count(house: House) -> None:
    nineteen = [part(f"{n}.txt", b"x") for n in range(19)]
    for _ in range(5):
        await send(house.alice, form(*nineteen))
    statuses = []

    async def five() -> None:
        statuses.append((await send(house.alice, form(*nineteen[:5]))).status)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(five)
        nursery.start_soon(five)
    assert sorted(statuses) == [200, 409]
    assert len(on_disk(house)) == await records(house) == 100


# --- forms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
async def test_a_form_is_the_same_however_it_is_cut(house: House, size: int) -> None:
    content = b"--cu\r--cut\n\n--cut\r\n--cu--\r\n-\r\n--cu\r\r\n"  # almost a boundary, again and again
    body = b"\r\n" + form(part("a.txt", content), raw_part(b'content-disposition: form-data; name="x"', b"dropped"))
    pieces = [body[n : n + size] for n in range(0, len(body), size)]
    reply = await send(house.alice, [*pieces, b"an epilogue"])
    assert reply.status == 200, reply.text
    (file,) = reply.json["files"]
    assert (await fetch(house, file["id"])).body == content


async def test_a_form_in_a_form_is_a_file_like_any_other(house: House) -> None:
    inner = form(part("inner.txt", b"x")).replace(CUT.encode(), b"inside")
    outer = form(part("outer.txt", inner, "Content-Type: multipart/mixed; boundary=inside"))
    (file,) = (await send(house.alice, outer)).json["files"]
    assert (file["filename"], (await fetch(house, file["id"])).body) == ("outer.txt", inner)


GOOD = part("a.txt", b"x")
NAMELESS = b'Content-Disposition: form-data; name="files"'


NO_FORMS: list[tuple[str, bytes, int]] = [
    ("application/json", b"{}", 415),
    ("", form(GOOD), 415),
    ("multipart/mixed; boundary=cut", form(GOOD), 415),
    ("multipart/form-data", form(GOOD), 422),
    ("multipart/form-data; boundary=", form(GOOD), 422),
    ("multipart/form-data; boundary=other", form(GOOD), 422),
    (f"multipart/form-data; boundary={'x' * 71}", form(GOOD), 422),
    ("multipart/form-data; boundary=c\xfct", form(GOOD), 422),
    (TYPE, b"", 422),
    (TYPE, form(), 422),
    (TYPE, b"x" * 300_000, 422),
    (TYPE, b"--cut" * 60_000, 422),
    (TYPE, GOOD, 422),  # without an end
    (TYPE, form(GOOD)[:-5], 422),
    (TYPE, form(raw_part(NAMELESS, b"x")), 422),  # no file
    (TYPE, form(part("", b"")), 422),  # no file was chosen
    (TYPE, form(part("a.txt", b"x\r\n--cut and more")), 422),  # the boundary within the data
    (TYPE, form(GOOD, raw_part(b"X: y", b"x")), 422),
    (TYPE, form(GOOD, raw_part(b"Content-Disposition: attachment; filename=x", b"x")), 422),
    (TYPE, form(GOOD, raw_part(b"no header", b"x")), 422),
    (TYPE, form(GOOD, raw_part(NAMELESS + b'; filename="\xff\xfe"', b"x")), 422),
    (TYPE, form(GOOD, part("b", b"x", "Content-Length: 5")), 422),
    (TYPE, form(GOOD, part("b", b"x", "Content-Length: 99999999999999999999999")), 422),
    (TYPE, form(GOOD, part("b", b"x", *(f"X-{n}: y" for n in range(20)))), 422),
    (TYPE, form(GOOD, part("b", b"x", "X-Long: " + "y" * 3000)), 422),
    (TYPE, form(GOOD, part("x" * 3000, b"x")), 422),
    (TYPE, form(GOOD) .replace(b"\r\n", b"\n"), 422),
    (TYPE, form(*[raw_part(NAMELESS, b"")] * 10_000), 422),
    (TYPE, form(*[GOOD] * 10_000), 422),
    (TYPE, GOOD + b"--cut\r\n" + b"X: " * 400_000, 422),  # a header that never ends
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(NO_FORMS)))
async def test_what_is_no_form_leaves_nothing(house: House, number: int) -> None:
    kind, body, status = NO_FORMS[number]
    reply = await send(house.alice, body, kind)
    assert reply.status == status, reply.text
    assert await nothing_kept(house)


@pytest.mark.parametrize("session_id", ["nowhere", "../main", "..", ".", "main/..", "main\0", "%2e%2e"])
async def test_a_session_that_is_not_there(house: House, session_id: str) -> None:
    assert (await send(house.alice, form(GOOD), session_id=session_id)).status == 404
    assert await nothing_kept(house)


# --- what goes wrong on the way -----------------------------------------------------------------------------------


async def test_an_upload_that_is_cut_off_leaves_nothing(house: House) -> None:
    headers = {"content-type": TYPE}
    whole = part("whole.bin", bytes(BUFFER_BYTES))
    body = whole + part("half.bin", bytes(2 * BUFFER_BYTES))
    async with house.alice.open("POST", "/api/files/upload", headers=headers, end_body=False) as exchange:
        await exchange.send_body(body[:-1000])
        names = on_disk(house)
        assert [name.rpartition(".")[2] for name in names] == ["part", "bin"]  # one still grows
        exchange.disconnect()
        await exchange.ended.wait()
    assert await nothing_kept(house)


async def test_an_upload_that_stops_coming_is_refused(house: House) -> None:
    async with house.alice.with_(patience=60).open(
        "POST", "/api/files/upload", headers={"content-type": TYPE}, end_body=False
    ) as exchange:
        await exchange.send_body(GOOD)
        started = trio.current_time()
        reply = await exchange.reply()
        assert (reply.status, reply.json["detail"][0]["type"]) == (422, "body_timeout")
        assert trio.current_time() - started < 60
    assert await nothing_kept(house)


async def test_one_that_trickles_has_its_time(house: House) -> None:
    async with house.alice.open(
        "POST", "/api/files/upload", headers={"content-type": TYPE}, end_body=False
    ) as exchange:
        await exchange.send_body(GOOD[:-10])
        started = trio.current_time()
        while not exchange.status:
            exchange.feed(b"x", more=True)
            await trio.sleep(5)
        assert exchange.status == 422
        assert 590 < trio.current_time() - started < 620
        exchange.disconnect()
    assert await nothing_kept(house)


def _full(*args: Any) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def _broken(*args: Any) -> None:
    raise OSError(errno.EIO, "input/output error")


@pytest.mark.parametrize("where", ["write", "settle", "__init__"])
@pytest.mark.parametrize(("fault", "retry"), [(_full, "30"), (_broken, "30")])
async def test_a_disk_that_is_full_or_broken_keeps_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch, where: str, fault: Any, retry: str
) -> None:
    real = getattr(Arrival, where)
    calls = 0

    def second_time(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return real(*args) if calls == 1 else fault()

    monkeypatch.setattr(Arrival, where, second_time)
    reply = await send(house.alice, form(part("a.txt", b"x"), part("b.txt", b"x")))
    full = fault is _full
    assert (reply.status, reply.headers["retry-after"]) == (503, retry)
    assert ("full" in reply.json["detail"]) is full
    assert await nothing_kept(house)


async def test_what_can_not_be_recorded_is_not_kept(database: InlineDatabase, tmp_path: Path) -> None:
    disk = FullDisk(database)
    async with open_house(disk, tmp_path / "home") as house:
        disk.refuses = lambda name: name == "add"
        assert (await send(house.alice, form(GOOD))).status == 503
        assert await nothing_kept(house)


async def test_a_session_that_goes_meanwhile(house: House) -> None:
    session_id = await house.create()
    options: dict[str, Any] = {"headers": {"content-type": TYPE}, "query": {"session_id": session_id}}
    async with house.alice.open("POST", "/api/files/upload", end_body=False, **options) as exchange:
        await exchange.send_body(GOOD)
        assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
        exchange.feed(b"--cut--", more=False)
        assert (await exchange.reply()).status == 404
    assert await nothing_kept(house)


# --- giving back, and taking away ---------------------------------------------------------------------------------


async def test_one_that_is_not_where_it_was_put(house: House) -> None:
    gone, linked = await upload(house.alice, ("a.txt", b"x"), ("b.txt", b"x"))
    first, second = sorted((house.services.config.workspace / ".uploads" / "unsent").iterdir())
    first.unlink()
    second.unlink()
    second.symlink_to("/etc/passwd")
    for file in (gone, linked):
        assert (await fetch(house, file["id"])).status == 404


async def test_unsent_ones_go_after_a_day(house: House) -> None:
    (early,) = await upload(house.alice, ("early.txt", b"x"))
    keeper = Uploads(house.services.database, house.services.effects, house.services.config.workspace)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.keep_clean)
        await trio.sleep(DAY - SWEEP_SECONDS)
        (late,) = await upload(house.alice, ("late.txt", b"x"))
        await trio.sleep(SWEEP_SECONDS)
        assert (await fetch(house, early["id"])).status == 200
        await trio.sleep(SWEEP_SECONDS)
        assert [(await fetch(house, file["id"])).status for file in (early, late)] == [404, 200]
        assert on_disk(house) == [f"unsent/{late['id']}_late.txt"]
        nursery.cancel_scope.cancel()


def _aged(paths: Iterable[Path], seconds: float) -> None:
    for path in paths:
        os.utime(path, (seconds, seconds), follow_symlinks=False)


async def test_what_a_crash_left_goes_and_nothing_else(house: House, tmp_path: Path) -> None:
    (kept,) = await upload(house.alice, ("kept.txt", b"x"))
    folder = house.services.config.workspace / ".uploads" / "unsent"
    stray, half = folder / "00000000000000aa_stray.txt", folder / ".00000000000000ab_half.bin.part"
    young, foreign = folder / "00000000000000ac_young.txt", folder / "somebody's notes.txt"
    outside = tmp_path / "outside"
    outside.mkdir()
    beyond = outside / "00000000000000ad_beyond.txt"
    for path in (stray, half, young, foreign, beyond):
        path.write_text("x")
    (folder.parent / "link").symlink_to(outside)
    known = next(path for path in folder.iterdir() if path.name.endswith("kept.txt"))
    now = house.services.effects.now().timestamp()
    _aged((stray, half, foreign, beyond, known), now - 25 * 3600)
    _aged((young,), now)
    await Uploads(house.services.database, house.services.effects, house.services.config.workspace).sweep()
    assert on_disk(house) == [f"unsent/{kept['id']}_kept.txt", f"unsent/{young.name}", f"unsent/{foreign.name}"]
    assert beyond.exists()


@pytest.mark.parametrize("how", ["link", "dangling", "file", "folder link"])
async def test_a_directory_of_uploads_that_leads_away_is_not_used(house: House, tmp_path: Path, how: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    top = house.services.config.workspace / ".uploads"
    if how == "file":
        top.write_text("x")
    elif how == "folder link":
        top.mkdir()
        (top / "unsent").symlink_to(outside)
    else:
        top.symlink_to(outside if how == "link" else tmp_path / "nowhere")
    reply = await send(house.alice, form(GOOD))
    assert (reply.status, reply.json["detail"]) == (503, "The directory of uploads can't be used.")
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "nowhere").exists()
    assert await records(house) == 0
    await Uploads(house.services.database, house.services.effects, house.services.config.workspace).sweep()
