"""A disk that is full for a while, at the moment when a turn begins."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define

from nerve.errors import ErrorCode, NerveError
from nerve.store.inline import InlineDatabase
from tests.asgi_client import Reply
from tests.sessions.session_house import House, open_house, play


@define(eq=False)
class FullDisk:
    """The database of the house, which refuses what ``refuses`` says by the name of the function."""

    _inner: InlineDatabase
    refuses: Callable[[str], bool] = lambda name: False
    refused: int = 0

    async def read(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        return await self._inner.read(fn, *args)

    async def read_large(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        return await self._inner.read_large(fn, *args)

    async def write(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        if self.refuses(fn.__name__):
            self.refused += 1
            await trio.lowlevel.checkpoint()
            raise NerveError(ErrorCode.STORE_FULL)
        return await self._inner.write(fn, *args)


async def test_an_accepted_message_waits_for_room_and_then_runs(database: InlineDatabase, tmp_path: Path) -> None:
    disk = FullDisk(database)
    async with open_house(disk, tmp_path / "home") as house:
        session_id = await house.create()
        disk.refuses = lambda name: name == "_write"  # accepting still fits, beginning a turn doesn't
        replies: list[Reply] = []

        async def chat() -> None:
            replies.append(await house.run(session_id, play("- say: at last")))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(chat)
            await trio.sleep(3)
            assert disk.refused > 1
            waiting = (await house.alice.get(f"/api/sessions/{session_id}/queue")).json["items"]
            assert len(waiting) == 1
            disk.refuses = lambda name: False
        assert replies[0].json["response"] == "at last"


async def test_a_session_can_be_deleted_while_the_disk_refuses_its_turn(
    database: InlineDatabase, tmp_path: Path
) -> None:
    disk = FullDisk(database)
    async with open_house(disk, tmp_path / "home") as house:
        session_id = await house.create()
        disk.refuses = lambda name: name == "_write"
        statuses: list[int] = []

        async def chat() -> None:
            body = {"message": "Hello", "session_id": session_id}
            statuses.append((await house.alice.post("/api/chat", json=body)).status)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(chat)
            await trio.sleep(3)
            assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
        assert statuses == [502]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/sessions", {}),
        ("PATCH", "/api/sessions/{id}", {"title": "x"}),
        ("DELETE", "/api/sessions/{id}", None),
        ("POST", "/api/sessions/{id}/archive", None),
        ("POST", "/api/sessions/{id}/unarchive", None),
        ("POST", "/api/chat", {"message": "x", "session_id": "main"}),
    ],
)
async def test_writes_are_503_and_reads_go_on(
    database: InlineDatabase, tmp_path: Path, method: str, path: str, body: Any
) -> None:
    disk = FullDisk(database)
    async with open_house(disk, tmp_path / "home") as house:
        session_id = await house.create()
        before = await everything(house, session_id)
        listener = house.listen(session_id)
        disk.refuses = lambda name: True
        options = {} if body is None else {"json": body}
        reply = await house.alice.request(method, path.format(id=session_id), **options)
        assert (reply.status, reply.json) == (503, {"detail": "The disk is full; nothing was written."})
        assert int(reply.headers["retry-after"]) > 0
        assert await everything(house, session_id) == before
        assert listener.frames == []


async def everything(house: House, session_id: str) -> list[Any]:
    paths = ("", f"/{session_id}", f"/{session_id}/messages", f"/{session_id}/events", f"/{session_id}/queue")
    return [(await house.alice.get(f"/api/sessions{path}")).json for path in paths]
