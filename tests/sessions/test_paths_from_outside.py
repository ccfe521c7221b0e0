"""Whatever path or name a client sends: nothing outside of where it may look is read or touched (part 3, shown 4)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from nerve.files import beneath
from tests.asgi_client import Reply
from tests.sessions.forms import form, part, send, upload
from tests.sessions.session_house import House, play

SECRET = "hunter2"


@define
class Ground:
    """``outside`` lies beside the workspace and holds a secret; so does the server's home."""

    workspace: Path
    home: Path
    outside: Path
    opened: list[str] = field(factory=list)  # every path that was opened for reading or writing, as it was named

    def outside_is_untouched(self) -> bool:
        names = sorted(path.name for path in self.outside.rglob("*"))
        return names == ["secret.txt"] and (self.outside / "secret.txt").read_text() == SECRET

    def opened_only_below(self, *roots: Path) -> bool:
        """A step below an open directory is one name; anything else has to be a root itself."""
        steps = [path for path in self.opened if path not in [str(root) for root in roots]]
        return all("/" not in step and step not in ("..", ".") for step in steps)


@pytest.fixture
def ground(house: House, monkeypatch: pytest.MonkeyPatch) -> Ground:
    config = house.services.config
    outside = config.workspace.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (config.paths.home / "jwt_secret").write_text(SECRET)
    (config.paths.config_dir / "config.local.yaml").write_text(SECRET)
    config.workspace.mkdir(exist_ok=True)
    (config.workspace / "deep").mkdir()
    (config.workspace / "deep" / "a.txt").write_text("inside")
    return Ground(config.workspace, config.paths.home, outside)


@contextmanager
def watched(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = os.open

    def noting(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        ground.opened.append(os.fspath(path))
        return real(path, flags, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", noting)
        yield


async def download(house: House, path: str | bytes) -> Reply:
    query: Any = b"path=" + path if isinstance(path, bytes) else {"path": path}
    return await house.alice.get("/api/files/download", query=query)


ESCAPES = {
    "parent": "../outside/secret.txt",
    "parent from deep": "deep/../../outside/secret.txt",
    "parent and back": "../workspace/deep/a.txt",
    "a parent inside": "deep/../deep/a.txt",
    "only dots": "..",
    "absolute": "/etc/passwd",
    "two slashes": "//etc/passwd",
    "root": "/",
    "null": "deep/a.txt\0.png",
    "null and parent": "\0../outside/secret.txt",
    "surrogate": "\ud800",
}
ODD_NAMES = {
    "encoded dots": "%2e%2e/outside/secret.txt",
    "encoded twice": "%252e%252e/outside/secret.txt",
    "encoded slash": "..%2foutside%2fsecret.txt",
    "backslash": "..\\outside\\secret.txt",
    "drive": "C:\\outside\\secret.txt",
    "full width": "．．/outside/secret.txt",
    "overlong": "\u002e\u2024/outside/secret.txt",
    "home": "~/secret.txt",
    "variable": "$HOME/secret.txt",
    "file url": "file:///etc/passwd",
    "long name": "x" * 300,
    "long path": "x/" * 2000,
    "three dots": ".../outside/secret.txt",
}
RAW = {
    "dots": b"%2e%2e/outside/secret.txt",
    "dots and slash": b"%2e%2e%2foutside%2fsecret.txt",
    "twice": b"%252e%252e%252foutside%252fsecret.txt",
    "null": b"deep/a.txt%00.png",
    "overlong utf-8": b"%c0%ae%c0%ae/outside/secret.txt",
    "broken": b"%c0%ae%zz/..",
    "absolute": b"%2fetc%2fpasswd",
    "backslash": b"..%5coutside%5csecret.txt",
    "parameter twice": b"deep/a.txt&path=../outside/secret.txt",
}


async def test_what_may_be_looked_at(house: House, ground: Ground) -> None:
    for path in ("deep/a.txt", "./deep//a.txt", f"{ground.workspace}/deep/a.txt"):
        reply = await download(house, path)
        assert (reply.status, reply.body) == (200, b"inside")
        assert reply.headers["content-type"] == "application/octet-stream"
        assert reply.headers["content-disposition"] == "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt"
    for path in ("deep", "", "nothing", "deep/a.txt/b"):
        assert (await download(house, path)).status == 404
    elsewhere = ground.workspace.parent / "elsewhere"
    assert (await download(house, f"{elsewhere}/b.txt")).status == 403
    await house.create(cwd=str(elsewhere))
    (elsewhere / "b.txt").write_text("b")
    assert (await download(house, f"{elsewhere}/b.txt")).body == b"b"
    assert (await download(house, f"{elsewhere}-2/b.txt")).status == 403


@pytest.mark.parametrize("name", [*ESCAPES, *ODD_NAMES])
async def test_a_download(house: House, ground: Ground, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if name == "surrogate":
        path: str | bytes = b"%ed%a0%80"
    else:
        path = ESCAPES.get(name) or ODD_NAMES[name]
    with watched(ground, monkeypatch):
        reply = await download(house, path)
    assert reply.status == (403 if name in ESCAPES and name != "surrogate" else 404), reply.text
    assert SECRET not in reply.text
    assert ground.opened_only_below(ground.workspace)
    assert ground.outside_is_untouched()


@pytest.mark.parametrize("name", RAW)
async def test_a_download_in_the_bytes_of_the_query(
    house: House, ground: Ground, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with watched(ground, monkeypatch):
        reply = await download(house, RAW[name])
    assert reply.status in (403, 404)
    assert SECRET not in reply.text
    assert ground.opened_only_below(ground.workspace)


async def test_a_path_that_is_too_long(house: House, ground: Ground) -> None:
    assert (await download(house, "x" * 4097)).status == 422


async def test_links_are_not_followed(house: House, ground: Ground) -> None:
    links = {
        "file": ground.outside / "secret.txt",
        "folder": ground.outside,
        "up": Path(".."),
        "dangling": ground.outside / "new.txt",
        "loop": Path("loop"),
        "within": Path("deep/a.txt"),
        "proc": Path("/proc/self/environ"),
    }
    for name, target in links.items():
        (ground.workspace / name).symlink_to(target)
    for path in [*links, "folder/secret.txt", "up/outside/secret.txt", "dangling/x", "deep/../file"]:
        reply = await download(house, path)
        assert reply.status == 403, path
        assert SECRET not in reply.text
    assert ground.outside_is_untouched()


async def test_what_is_no_file(house: House, ground: Ground) -> None:
    os.mkfifo(ground.workspace / "fifo")  # opening it must not wait for a writer
    assert (await download(house, "fifo")).status == 404
    (ground.workspace / "unreadable").write_text(SECRET)
    (ground.workspace / "unreadable").chmod(0)
    assert (await download(house, "unreadable")).status == (200 if os.geteuid() == 0 else 403)


@pytest.mark.parametrize("name", ["jwt_secret", "config.yaml", "config.local.yaml", "nerve.db", "", "nothing"])
async def test_the_servers_own_is_served_by_no_name(house: House, ground: Ground, name: str) -> None:
    """Not even when somebody works in a directory above it, or has put another name on it."""
    assert (await download(house, f"{ground.home}/{name}")).status == 403
    await house.create(cwd=str(ground.home.parent))
    assert (await download(house, f"{ground.home}/{name}")).status in (403, 404)
    if (ground.home / name).is_file():
        assert (await download(house, f"{ground.home}/{name}")).status == 403
    os.link(ground.home / "config.local.yaml", ground.workspace / "layer")
    assert (await download(house, "layer")).status == 403


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_a_download_swapped_between_check_and_opening(
    house: House, ground: Ground, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    entered, opened = beneath._enter, beneath.open_file
    deep = ground.workspace / "deep"

    def swapping_folder(parent: int, name: str, path: Path, *, create: bool) -> int:
        deep.rename(ground.workspace / "was")
        deep.symlink_to(ground.outside)
        return entered(parent, name, path, create=create)

    def swapping_file(parent: int, name: str, path: Path) -> int:
        (deep / "secret.txt").unlink()
        (deep / "secret.txt").symlink_to(ground.outside / "secret.txt")
        return opened(parent, name, path)

    (deep / "secret.txt").write_text("inside")
    with monkeypatch.context() as patch:
        patch.setattr(beneath, *(("_enter", swapping_folder) if what == "folder" else ("open_file", swapping_file)))
        reply = await download(house, "deep/secret.txt")
    assert reply.status == 403
    assert SECRET not in reply.text


# --- what a session has changed -----------------------------------------------------------------------------------


@pytest.mark.req("SESS-79")
@pytest.mark.parametrize("name", [*ESCAPES, *ODD_NAMES])
async def test_a_diff(house: House, ground: Ground, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The path names a record, never a file; each spelling of a recorded one but its own is unknown."""
    session_id = await house.create()
    await house.run(session_id, play("- write: deep/new.txt\n  content: x"))
    path = ESCAPES.get(name) or ODD_NAMES[name]
    address = f"/api/sessions/{session_id}/file-diff"
    if name == "surrogate":
        queries: list[Any] = [b"path=%ed%a0%80"]
    else:
        queries = [{"path": path}, {"path": f"{ground.workspace}/{path}"}]
        queries += [{"path": f"{ground.workspace}/deep/../deep/new.txt"}, {"path": f"{ground.workspace}/deep//new.txt"}]
    with watched(ground, monkeypatch):
        for query in queries:
            reply = await house.alice.get(address, query=query)
            assert reply.status == 404
            assert SECRET not in reply.text
    assert ground.opened == []


@pytest.mark.parametrize("what", ["file", "folder", "dangling"])
async def test_a_change_that_became_a_link(house: House, ground: Ground, what: str) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- write: deep/secret.txt\n  content: x"))
    changed = ground.workspace / "deep" / "secret.txt"
    if what == "folder":
        changed.parent.rename(ground.workspace / "was")
        changed.parent.symlink_to(ground.outside)
    else:
        changed.unlink()
        changed.symlink_to(ground.outside / ("secret.txt" if what == "file" else "new.txt"))
    listed = await house.alice.get(f"/api/sessions/{session_id}/modified-files")
    (file,) = listed.json["files"]
    assert file["stats"] == {"additions": 0, "deletions": 0}
    shown = await house.alice.get(f"/api/sessions/{session_id}/file-diff", query={"path": str(changed)})
    assert (shown.json["binary"], shown.json["hunks"]) == (True, [])
    assert SECRET not in listed.text + shown.text
    assert ground.outside_is_untouched()


# --- names in the place of ids ------------------------------------------------------------------------------------

SEGMENTS = [
    "..", ".", "%2e%2e", "%252e%252e", "%2e%2e%2f%2e%2e%2fjwt_secret", "..%2fjwt_secret", "..%5cjwt_secret", "%00",
    "0000000000000001%00", "%2fetc%2fpasswd", "0000000000000001_a.txt", "0000000000000001%2f..", "%c0%ae%c0%ae", "%",
    "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SEGMENTS)))
@pytest.mark.parametrize(
    "address",
    ["/api/files/uploads/{}", "/api/sessions/{}/modified-files", "/api/sessions/{}/file-diff?path=deep/a.txt"],
)
async def test_an_id_in_the_path(
    house: House, ground: Ground, monkeypatch: pytest.MonkeyPatch, address: str, number: int
) -> None:
    await upload(house.alice, ("a.txt", b"x"))
    ground.opened.clear()
    with watched(ground, monkeypatch):
        reply = await house.alice.get(address.format(SEGMENTS[number]))
    assert reply.status == 404
    assert ground.opened == []


@pytest.mark.parametrize("name", [*ESCAPES, *ODD_NAMES])
async def test_the_name_of_an_upload(house: House, ground: Ground, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    sent = "x" if name == "surrogate" else ESCAPES.get(name) or ODD_NAMES[name]
    with watched(ground, monkeypatch):
        reply = await send(house.alice, form(part(sent, b"x")))
    if len(sent) > 2000:
        assert reply.status == 422
        return
    assert reply.status == 200, reply.text
    assert ground.opened_only_below(ground.workspace)
    (kept,) = [path for path in (ground.workspace / ".uploads").rglob("*") if path.is_file()]
    assert kept.parent == ground.workspace / ".uploads" / "unsent"
    assert ground.outside_is_untouched()


@pytest.mark.parametrize("name", [*ESCAPES, *ODD_NAMES])
async def test_a_working_directory(house: House, ground: Ground, name: str) -> None:
    """Any absolute one may be asked for; none is made that is relative, or is the server's own by whatever name."""
    path = ESCAPES.get(name) or ODD_NAMES[name]
    before = sorted(ground.workspace.parent.rglob("*"))
    for cwd in (path, f"{ground.home}/{path}", f"{ground.workspace}/../{ground.home.name}/x"):
        reply = await house.alice.post("/api/sessions", json={"cwd": cwd})
        assert reply.status in (400, 422) or cwd == "/", cwd
    (ground.workspace / "alias").symlink_to(ground.home)
    assert (await house.alice.post("/api/sessions", json={"cwd": f"{ground.workspace}/alias/x"})).status == 400
    made = {path for path in ground.workspace.parent.rglob("*") if path not in before}
    assert not [path for path in made if path.is_relative_to(ground.home)]
    assert ground.outside_is_untouched()
