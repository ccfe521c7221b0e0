"""Files that people send: kept whole or not at all, given back as they were, gone when nobody needs them."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import trio
import trio.testing

from nerve.asgi.files import FileCutShort
from nerve.files.opened import PIECE_BYTES, OpenedFile
from nerve.runtime.uploads import BUFFER_BYTES, FILE_BYTES, SWEEP_SECONDS, Uploads
from tests.sessions.forms import GOOD, PNG, TYPE, fetch, form, nothing_kept, on_disk, part, records, send, upload
from tests.sessions.session_house import ALICE, House

DAY = 24 * 3600.0


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


# --- readers ------------------------------------------------------------------------------------------------------


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("how", ["whole", "head", "leaves", "stalls"])
async def test_a_file_is_closed_however_its_reader_behaves(house: House, how: str) -> None:
    (file,) = await upload(house.alice, ("great.bin", bytes(3 * PIECE_BYTES)))
    address = f"/api/files/uploads/{file['id']}"
    before = descriptors()
    if how in ("whole", "head"):
        reply = await (house.alice.get(address) if how == "whole" else house.alice.head(address))
        assert reply.headers["content-length"] == str(3 * PIECE_BYTES)
        assert reply.messages == (5 if how == "whole" else 2)  # never the whole file at once
    else:
        async with house.alice.with_(patience=60).open("GET", address) as exchange:
            exchange.reads = False
            await trio.testing.wait_all_tasks_blocked()
            assert descriptors() == before + 1
            if how == "leaves":
                exchange.disconnect()
            started = trio.current_time()
            await exchange.ended.wait()
            assert trio.current_time() - started <= 35
    assert descriptors() == before


async def test_a_file_that_shrinks_meanwhile_is_not_passed_off_as_whole(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = await upload(house.alice, ("great.bin", bytes(2 * PIECE_BYTES)))
    real = OpenedFile.read

    def shrinking(opened: OpenedFile, offset: int) -> bytes:
        return real(opened, offset) if offset == 0 else b""

    monkeypatch.setattr(OpenedFile, "read", shrinking)
    before = descriptors()
    with pytest.raises(FileCutShort):
        await fetch(house, file["id"])
    assert descriptors() == before


async def test_a_file_that_grows_meanwhile_ends_where_it_was_said_to(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = await upload(house.alice, ("small.bin", b"small"))
    real = OpenedFile.read
    monkeypatch.setattr(OpenedFile, "read", lambda opened, offset: real(opened, offset) + b"and more")
    assert (await fetch(house, file["id"])).body == b"small"


async def test_a_token_in_the_query_and_none_at_all(house: House) -> None:
    (file,) = await upload(house.alice, ("plan.png", PNG))
    address = f"/api/files/uploads/{file['id']}"
    nobody = house.alice.with_(token=None)
    assert (await nobody.get(address, query={"token": "alice"})).body == PNG
    for path in (address, "/api/files/download?path=x"):
        assert (await nobody.get(path)).status == 401
    assert (await send(nobody, form(GOOD))).status == 401
