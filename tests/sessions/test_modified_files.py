"""Files that a session has changed, against what is on disk now (contract chapter Modified Files)."""

import os
from pathlib import Path
from typing import Any

import pytest

from nerve.runtime.file_changes import MOST_BYTES
from tests.asgi_client import Reply
from tests.sessions.session_house import House, play

NOTHING = {"files": [], "summary": {"total_files": 0, "total_additions": 0, "total_deletions": 0}}


async def modified(house: House, session_id: str) -> Any:
    reply = await house.alice.get(f"/api/sessions/{session_id}/modified-files")
    assert reply.status == 200, reply.text
    return reply.json


async def diff(house: House, session_id: str, path: Path | str, **query: Any) -> Reply:
    return await house.alice.get(f"/api/sessions/{session_id}/file-diff", query={"path": str(path), **query})


@pytest.fixture
def workspace(house: House) -> Path:
    return house.services.config.workspace


@pytest.mark.req("SESS-71", "SESS-72", "SESS-73")
async def test_created_modified_deleted_and_what_is_as_it_was(house: House, workspace: Path) -> None:
    session_id = await house.create()
    assert await modified(house, session_id) == NOTHING
    for name in ("old.txt", "gone.txt", "same.txt", "other.txt"):
        (workspace / name).write_text("one\ntwo\n")
    await house.run(
        session_id,
        play(
            "- write: deep/new.txt\n  content: |\n    a\n    b\n    c",
            "- edit: old.txt\n  old: one\n  new: eins",
            "- delete: gone.txt",
            "- edit: same.txt\n  old: one\n  new: eins",
            "- edit: same.txt\n  old: eins\n  new: one",
            "- write: fleeting.txt\n  content: x",
            "- delete: fleeting.txt",
        ),
    )
    (workspace / "other.txt").write_text("somebody else")
    found = await modified(house, session_id)
    assert [(f["path"], f["short_path"], f["status"], f["stats"]) for f in found["files"]] == [
        (str(workspace / "deep/new.txt"), "deep/new.txt", "created", {"additions": 3, "deletions": 0}),
        (str(workspace / "old.txt"), "old.txt", "modified", {"additions": 1, "deletions": 1}),
        (str(workspace / "gone.txt"), "gone.txt", "deleted", {"additions": 0, "deletions": 2}),
    ]
    assert found["summary"] == {"total_files": 3, "total_additions": 4, "total_deletions": 3}
    # What a person does to the file counts too: it is compared with the disk, each time.
    (workspace / "old.txt").write_text("one\ntwo\n")
    (workspace / "gone.txt").write_text("one\ntwo\nthree\n")
    assert [(f["short_path"], f["status"]) for f in (await modified(house, session_id))["files"]] == [
        ("deep/new.txt", "created"),
        ("gone.txt", "modified"),
    ]


@pytest.mark.req("SESS-74", "SESS-75", "SESS-79")
async def test_one_file_and_only_of_this_session(house: House, workspace: Path) -> None:
    session_id, other = await house.create(), await house.create()
    (workspace / "a.md").write_text("".join(f"{n}\n" for n in range(20)))
    await house.run(session_id, play('- edit: a.md\n  old: "10\\n"\n  new: "ten\\n"'))
    told = (await diff(house, session_id, workspace / "a.md", context=1)).json
    (hunk,) = told.pop("hunks")
    assert told["markdown_content"] == (workspace / "a.md").read_text()
    assert (told["path"], told["short_path"], told["status"]) == (str(workspace / "a.md"), "a.md", "modified")
    assert hunk == {
        "old_start": 10,
        "old_count": 3,
        "new_start": 10,
        "new_count": 3,
        "header": "",
        "lines": [
            {"type": "context", "content": "9", "old_line": 10, "new_line": 10},
            {"type": "deletion", "content": "10", "old_line": 11},
            {"type": "addition", "content": "ten", "new_line": 11},
            {"type": "context", "content": "11", "old_line": 12, "new_line": 12},
        ],
    }
    assert len((await diff(house, session_id, workspace / "a.md")).json["hunks"][0]["lines"]) == 10
    assert (await diff(house, other, workspace / "a.md")).status == 404
    assert (await diff(house, "nobody", workspace / "a.md")).status == 404
    for path in ("a.md", "/etc/passwd", "", f"{workspace}/../{workspace.name}/a.md", f"{workspace}/a.md\0"):
        assert (await diff(house, session_id, path)).status == 404
    assert (await house.alice.get(f"/api/sessions/{session_id}/file-diff")).status == 422


async def test_what_can_not_be_compared(house: House, workspace: Path) -> None:
    session_id = await house.create()
    (workspace / "great.bin").write_bytes(b"x" * (MOST_BYTES + 1))
    await house.run(
        session_id,
        play("- write: great.bin\n  content: small", "- write: grows.txt\n  content: x", "- write: bin\n  content: x"),
    )
    (workspace / "grows.txt").write_bytes(b"x" * (MOST_BYTES + 1))
    (workspace / "bin").write_bytes(b"\0")
    found = (await modified(house, session_id))["files"]
    assert [(f["short_path"], f["status"]) for f in found] == [
        ("great.bin", "modified"),
        ("grows.txt", "created"),
        ("bin", "created"),
    ]
    for file in found:
        told = (await diff(house, session_id, file["path"])).json
        assert (told["binary"], told["hunks"], told["stats"]) == (True, [], {"additions": 0, "deletions": 0})


async def test_links_put_in_the_way_show_nothing(house: House, workspace: Path, tmp_path: Path) -> None:
    """Neither in place of the file nor of a directory above it; the answer says no more than that it changed."""
    session_id = await house.create()
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "key.txt").write_text("hunter2")
    await house.run(session_id, play("- write: key.txt\n  content: x", "- write: deep/key.txt\n  content: x"))
    (workspace / "key.txt").unlink()
    (workspace / "key.txt").symlink_to(secret / "key.txt")
    (workspace / "deep/key.txt").unlink()
    (workspace / "deep").rmdir()
    (workspace / "deep").symlink_to(secret)
    for name in ("key.txt", "deep/key.txt"):
        reply = await diff(house, session_id, workspace / name)
        assert "hunter2" not in reply.text
        assert (reply.json["status"], reply.json["binary"]) == ("created", True)
    (workspace / "key.txt").unlink()
    os.mkfifo(workspace / "key.txt")  # opening it must not wait for a writer
    assert (await diff(house, session_id, workspace / "key.txt")).json["binary"] is True


async def test_a_working_directory_elsewhere(house: House, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    session_id = await house.create(cwd=str(tmp_path / "link"))
    (elsewhere / "a.txt").write_text("one\n")
    await house.run(session_id, play("- edit: a.txt\n  old: one\n  new: two"))
    (file,) = (await modified(house, session_id))["files"]
    assert (file["path"], file["stats"]) == (f"{tmp_path}/link/a.txt", {"additions": 1, "deletions": 1})
    assert (await diff(house, session_id, file["path"])).json["status"] == "modified"
