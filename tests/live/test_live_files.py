"""Files over real sockets: what a turn changed, what people send along, what nobody gets at (part 3, shown 3 and 4)."""

import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio

from nerve.client import open_socket
from nerve.contract.generated.frames_client import MessageFrame
from nerve.contract.generated.frames_server import DoneFrame, FileChangedFrame
from tests.live.instance import Instance, eventually

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2000
SECRET = "hunter2"
PLAY = """#!nerve-scenario
- edit: plan.md
  old: coffee
  new: tea
- write: deep/new.txt
  content: |
    one
    two
- say: done
"""


async def turn_with_files(instance: Instance, token: str, *file_ids: str) -> list[str]:
    """The paths that the turn changed."""
    with trio.fail_after(PATIENCE_SECONDS):
        async with open_socket(instance.address, token) as live:
            await live.send(MessageFrame(session_id="main", content=PLAY, file_ids=list(file_ids)))
            changed = []
            while not isinstance(frame := await live.receive(), DoneFrame):
                changed += [frame.path] if isinstance(frame, FileChangedFrame) else []
    return changed


def uploaded(instance: Instance) -> list[Path]:
    return [path for path in (instance.workspace / ".uploads").rglob("*") if path.is_file()]


@pytest.mark.req("WS-10", "SESS-71", "SESS-74")
async def test_a_message_with_a_picture_and_what_its_turn_changed(instance: Instance) -> None:
    instance.workspace.mkdir()
    (instance.workspace / "plan.md").write_text("# Plan\n\nBuy coffee.\nSleep.\n")
    instance.foreground()
    token = instance.claim()
    sent = [("files", ("plan ü.png", PICTURE, "image/png")), ("files", ("notes.txt", b"one\r\ntwo", "text/plain"))]
    reply = instance.http("POST", "/api/files/upload", token, files=sent, params={"session_id": "main"})
    assert reply.status_code == 200, reply.text
    picture, text = reply.json()["files"]
    assert (picture["file_type"], picture["size"], text["media_type"]) == ("image", len(PICTURE), "text/plain")
    changed = await turn_with_files(instance, token, picture["id"], text["id"])
    # The message shows them, and a browser gets them as they were, by the token in the address.
    rows = instance.http("GET", "/api/sessions/main/messages", token).json()["messages"]
    blocks = next(row["blocks"] for row in rows if row["role"] == "user")
    assert [(block["type"], block.get("filename")) for block in blocks] == [
        ("text", None),
        ("image", "plan ü.png"),
        ("file", "notes.txt"),
    ]
    for block, content in zip(blocks[1:], (PICTURE, b"one\r\ntwo"), strict=True):
        again = instance.http("GET", block["url"], params={"token": token})
        assert (again.status_code, again.content) == (200, content)
    # What the turn changed, as a person sees it.
    plan, new = str(instance.workspace / "plan.md"), str(instance.workspace / "deep/new.txt")
    assert changed == [plan, new]
    listed = instance.http("GET", "/api/sessions/main/modified-files", token).json()
    assert [(file["path"], file["status"]) for file in listed["files"]] == [(plan, "modified"), (new, "created")]
    assert listed["summary"] == {"total_files": 2, "total_additions": 3, "total_deletions": 1}
    shown = instance.http("GET", "/api/sessions/main/file-diff", token, params={"path": plan, "context": 1}).json()
    assert [(line["type"], line["content"]) for line in shown["hunks"][0]["lines"]] == [
        ("context", ""),
        ("deletion", "Buy coffee."),
        ("addition", "Buy tea."),
        ("context", "Sleep."),
    ]
    assert instance.http("GET", "/api/files/download", token, params={"path": new}).content == b"one\ntwo\n"


# --- raw sockets --------------------------------------------------------------------------------------------------


class Raw:
    """Bytes to the server as they are, past every client that would tidy them up."""

    def __init__(self, instance: Instance, token: str) -> None:
        at = urlsplit(instance.address)
        self._address = (str(at.hostname), int(at.port or 0))
        self.fields = f"Host: {at.netloc}\r\nAuthorization: Bearer {token}\r\n".encode()

    def connect(self) -> socket.socket:
        opened = socket.create_connection(self._address, timeout=PATIENCE_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened

    def get(self, target: bytes) -> tuple[int, bytes]:
        """Status and all the bytes of the answer."""
        with self.connect() as line:
            line.sendall(b"GET " + target + b" HTTP/1.1\r\nConnection: close\r\n" + self.fields + b"\r\n")
            answer = b""
            while data := line.recv(65536):
                answer += data
        return int(answer.split()[1]), answer


TARGETS = [
    b"/api/files/uploads/../../../home/jwt_secret",
    b"/api/files/uploads/..",
    b"/api/files/uploads/%2e%2e",
    b"/api/files/uploads/%252e%252e",
    b"/api/files/uploads/..%2f..%2f..%2fhome%2fjwt_secret",
    b"/api/files/uploads/..%5c..%5chome%5cjwt_secret",
    b"/api/files/uploads/..\\..\\home\\jwt_secret",
    b"/api/files/uploads/%00",
    b"/api/files/uploads/\x00",
    b"/api/files/uploads/%c0%ae%c0%ae",
    b"/api/files/uploads/" + b"x" * 7000,
    b"/api/files/../../home/jwt_secret",
    b"//api/files/download?path=link",
    b"/api/files/download?path=../home/jwt_secret",
    b"/api/files/download?path=%2e%2e%2fhome%2fjwt_secret",
    b"/api/files/download?path=%252e%252e%252fhome%252fjwt_secret",
    b"/api/files/download?path=..\\home\\jwt_secret",
    b"/api/files/download?path=a.txt%00",
    b"/api/files/download?path=%2fetc%2fpasswd",
    b"/api/files/download?path=/etc/passwd",
    b"/api/files/download?path=/proc/self/environ",
    b"/api/files/download?path=link",
    b"/api/files/download?path=folder/jwt_secret",
    b"/api/files/download?path=dangling",
    b"/api/files/download?path=" + b"x/" * 3000,
    b"/api/files/download?path=a.txt&path=link",
    b"/api/sessions/main/file-diff?path=../home/jwt_secret",
    b"/api/sessions/main/file-diff?path=/etc/passwd",
    b"/api/sessions/../files/download?path=link",
    b"/api/sessions/%2e%2e/modified-files",
]


def test_no_bytes_of_a_request_lead_out(instance: Instance) -> None:
    instance.workspace.mkdir()
    instance.foreground()
    token = instance.claim()
    secret = (instance.home / "jwt_secret").read_text().strip()
    (instance.workspace / "a.txt").write_text("inside")
    (instance.workspace / "link").symlink_to(instance.home / "jwt_secret")
    (instance.workspace / "folder").symlink_to(instance.home)
    (instance.workspace / "dangling").symlink_to(instance.root / "nowhere")
    raw = Raw(instance, token)
    assert raw.get(b"/api/files/download?path=a.txt")[1].endswith(b"inside")
    for target in [*TARGETS, b"/api/files/download?path=" + str(instance.home).encode() + b"/jwt_secret"]:
        for form in (target, instance.address.encode() + target):
            status, answer = raw.get(form)
            assert 400 <= status < 500, (form[:200], answer[:300])
            assert secret.encode() not in answer
            assert b"root:" not in answer
    assert not (instance.root / "nowhere").exists()
    assert instance.http("GET", "/health").status_code == 200


def test_uploads_that_are_announced_too_big_or_break_off(instance: Instance) -> None:
    instance.foreground()
    raw = Raw(instance, instance.claim())
    begin = b"POST /api/files/upload HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=cut\r\n" + raw.fields
    part = b'--cut\r\nContent-Disposition: form-data; name="files"; filename="half.bin"\r\n\r\n'
    with raw.connect() as line:
        line.sendall(begin + b"Content-Length: 52428801\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 413 ")
    assert uploaded(instance) == []
    breaks: list[Any] = [b"Content-Length: 40000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"]
    for framing in breaks:
        for reset in (False, True):
            with raw.connect() as line:
                content = part + bytes(1024 * 1024)
                chunked = b"%x\r\n%s\r\n" % (len(content), content)
                line.sendall(begin + framing + (chunked if b"chunked" in framing else content))
                eventually(lambda: [path.suffix for path in uploaded(instance)] == [".part"])
                if reset:
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            eventually(lambda: uploaded(instance) == [])
    assert "ERROR" not in instance.log
