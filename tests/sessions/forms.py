"""Forms with files, as browsers send them and as they never would."""

from collections.abc import Iterable
from typing import Any

from tests.asgi_client import AsgiClient, Reply
from tests.sessions.session_house import House

CUT = "cut"
TYPE = f"multipart/form-data; boundary={CUT}"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def part(name: str, content: bytes, *lines: str) -> bytes:
    """``lines`` are more headers of the part."""
    head = [f'Content-Disposition: form-data; name="files"; filename="{name}"', *lines]
    return raw_part("\r\n".join(head).encode(), content)


def raw_part(head: bytes, content: bytes) -> bytes:
    return b"--%s\r\n%s\r\n\r\n%s\r\n" % (CUT.encode(), head, content)


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--%s--\r\n" % CUT.encode()


GOOD = part("a.txt", b"x")


async def send(client: AsgiClient, content: bytes | Iterable[bytes], kind: str = TYPE, **query: str) -> Reply:
    headers = {"content-type": kind}
    return await client.post("/api/files/upload", content=content, headers=headers, query=query)


async def upload(client: AsgiClient, *files: tuple[str, bytes], **query: str) -> list[dict[str, Any]]:
    reply = await send(client, form(*(part(name, content) for name, content in files)), **query)
    assert reply.status == 200, reply.text
    found: list[dict[str, Any]] = reply.json["files"]
    return found


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
