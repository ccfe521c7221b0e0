"""Forms and their files on the way in: hostile ones, cut ones, and a disk that takes no more."""

import errno
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from nerve.files.arrival import Arrival
from nerve.runtime.uploads import BUFFER_BYTES
from nerve.store.inline import InlineDatabase
from tests.sessions.forms import (
    CUT,
    GOOD,
    TYPE,
    fetch,
    form,
    nothing_kept,
    on_disk,
    part,
    raw_part,
    send,
)
from tests.sessions.session_house import House, open_house
from tests.sessions.test_session_full_disk import FullDisk

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
