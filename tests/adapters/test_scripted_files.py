"""The file steps: real files, inside the working directory only, never through a link."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.adapters.protocol import FileChanged, FileOperation, ToolFinished, ToolStarted, TurnStatus
from nerve.adapters.scripted import ScriptedAdapter, files
from nerve.errors import ErrorCode, NerveError


async def refused(talk: Any, step: str) -> str:
    """The step's error result; the play went on and no change was announced."""
    heard = await talk.play(f"- {step}\n- say: on")
    assert heard.text == "on"
    assert heard.end.status is TurnStatus.COMPLETED
    assert heard.of(FileChanged) == []
    finished = heard.of(ToolFinished)[0]
    assert finished.is_error
    return finished.result


async def test_write_makes_parents_and_tells(talk: Any, cwd: Path, host: Any) -> None:
    heard = await talk.play('- {write: a/b/notes.md, content: "colour\\n"}\n- say: ${result}')
    path = cwd / "a" / "b" / "notes.md"
    assert path.read_text() == "colour\n"
    start, finished, changed = heard.events[:3]
    assert isinstance(start, ToolStarted)
    assert (start.tool, start.input) == ("Write", {"file_path": str(path), "content": "colour\n"})
    assert finished == ToolFinished(start.tool_use_id, f"Created {path}", False)
    assert changed == FileChanged(str(path), FileOperation.WRITE, start.tool_use_id)
    assert host.kept == [(path, None)]
    assert heard.text == f"Created {path}"
    assert [entry.name for entry in path.parent.iterdir()] == ["notes.md"]


async def test_write_replaces_whole_and_keeps_the_mode(talk: Any, cwd: Path, host: Any) -> None:
    path = cwd / "run.sh"
    path.write_text("old")
    path.chmod(0o750)
    before = path.stat().st_ino
    heard = await talk.play(f"- {{write: {path}, content: new}}")
    assert heard.of(ToolFinished)[0].result == f"Wrote {path}"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o750
    assert path.stat().st_ino != before
    assert host.kept == [(path, b"old")]


async def test_edit_replaces_the_one_occurrence(talk: Any, cwd: Path, host: Any) -> None:
    path = cwd / "a.txt"
    path.write_bytes(b"one\r\ntwo \xff three")
    heard = await talk.play("- {edit: ./x/../a.txt, old: two, new: zwei}")
    assert path.read_bytes() == b"one\r\nzwei \xff three"
    start = heard.of(ToolStarted)[0]
    assert (start.tool, start.input) == ("Edit", {"file_path": str(path), "old_string": "two", "new_string": "zwei"})
    assert heard.of(FileChanged) == [FileChanged(str(path), FileOperation.EDIT, start.tool_use_id)]
    assert host.kept == [(path, b"one\r\ntwo \xff three")]


@pytest.mark.parametrize(
    ("content", "old", "said"),
    [
        ("abc", "x", "does not occur"),
        ("abab", "ab", "occurs more than once"),
        ("aaa", "aa", "occurs more than once"),
        ("abc", "", "is empty"),
    ],
)
async def test_edit_wants_exactly_one_occurrence(
    talk: Any, cwd: Path, host: Any, content: str, old: str, said: str
) -> None:
    (cwd / "a.txt").write_text(content)
    assert said in await refused(talk, f"{{edit: a.txt, old: '{old}', new: y}}")
    assert (cwd / "a.txt").read_text() == content
    assert host.kept == []


async def test_delete_removes(talk: Any, cwd: Path, host: Any) -> None:
    path = cwd / "a.txt"
    path.write_text("x")
    heard = await talk.play("- delete: a.txt")
    assert not path.exists()
    start = heard.of(ToolStarted)[0]
    assert (start.tool, start.input) == ("Delete", {"file_path": str(path)})
    assert heard.of(FileChanged) == [FileChanged(str(path), FileOperation.DELETE, start.tool_use_id)]
    assert host.kept == [(path, b"x")]


STEPS = ["{{write: '{0}', content: x}}", "{{edit: '{0}', old: secret, new: x}}", "{{delete: '{0}'}}"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("path", ["../outside/secret", "/etc/hostname", "a/../../outside/secret", "."])
async def test_nothing_outside_is_touched(talk: Any, tmp_path: Path, host: Any, step: str, path: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    said = await refused(talk, step.format(path))
    assert "outside of the working directory" in said or "is a directory" in said
    assert (outside / "secret").read_text() == "secret"
    assert host.kept == []


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("path", ["link", "linked/secret", "linked/sub/secret", "hop/secret"])
async def test_links_are_never_followed(talk: Any, cwd: Path, tmp_path: Path, host: Any, step: str, path: str) -> None:
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    for secret in (outside / "secret", outside / "sub" / "secret"):
        secret.write_text("secret")
    (cwd / "link").symlink_to(outside / "secret")
    (cwd / "linked").symlink_to(outside)
    (cwd / "hop").symlink_to("linked")
    assert "is a link" in await refused(talk, step.format(path))
    assert (outside / "secret").read_text() == "secret"
    assert (outside / "sub" / "secret").read_text() == "secret"
    assert sorted(entry.name for entry in outside.iterdir()) == ["secret", "sub"]
    assert (cwd / "link").is_symlink()
    assert host.kept == []


async def test_what_is_no_file_is_refused(talk: Any, cwd: Path) -> None:
    (cwd / "dir").mkdir()
    (cwd / "file").write_text("x")
    os.mkfifo(cwd / "pipe")
    assert "is a directory" in await refused(talk, "{write: dir, content: x}")
    assert "is a directory" in await refused(talk, "{write: new/, content: x}")
    assert "is a directory" in await refused(talk, "delete: dir")
    assert "not a regular file" in await refused(talk, "{edit: pipe, old: a, new: b}")
    assert "not a regular file" in await refused(talk, "{write: pipe, content: b}")
    assert "is not a directory" in await refused(talk, "{write: file/below, content: b}")
    assert "does not exist" in await refused(talk, "delete: nothing")
    assert "does not exist" in await refused(talk, "{edit: no/thing, old: a, new: b}")
    assert "File name too long" in await refused(talk, f"{{write: {'x' * 300}, content: b}}")
    assert "NUL" in await refused(talk, '{write: "a\\0b", content: b}')
    assert sorted(os.listdir(cwd)) == ["dir", "file", "pipe"]


async def test_a_file_that_cannot_be_kept_is_not_changed(talk: Any, cwd: Path, host: Any) -> None:
    (cwd / "a").write_text("x")
    host.refusal = NerveError(ErrorCode.STORE_FULL)
    assert "could not be kept" in await refused(talk, "{write: a, content: y}")
    assert (cwd / "a").read_text() == "x"


async def test_a_file_too_large_to_edit_is_refused(talk: Any, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_EDIT_BYTES", 1024)
    (cwd / "a").write_text("x" * 1024 + "y")
    assert "is larger than" in await refused(talk, "{edit: a, old: y, new: z}")


async def test_a_vanished_working_directory_is_an_error_result(talk: Any, cwd: Path) -> None:
    os.rmdir(cwd)
    assert "No such file" in await refused(talk, "{write: a, content: y}")


def test_a_link_put_in_place_meanwhile_is_refused(tmp_path: Path) -> None:
    cwd, outside = tmp_path / "cwd", tmp_path / "outside"
    cwd.mkdir()
    outside.mkdir()
    at = files.place(cwd, "dir/file")
    files.check_writable(at)
    (cwd / "dir").symlink_to(outside)
    with pytest.raises(files.FileProblem, match="is a link"):
        files.write(at, "x", ".scratch")
    assert list(outside.iterdir()) == []


def test_a_change_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")

    def no_space(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(files.FileProblem, match="No space left"):
        files.write(files.place(tmp_path, "a"), "new", ".scratch")
    assert (tmp_path / "a").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    before = len(os.listdir("/proc/self/fd"))
    for path in ["a/b/c", "link/x", "a/b", "missing/x"]:
        for change in (lambda at: files.write(at, "x", ".s"), files.delete, lambda at: files.edit(at, "x", "y", ".s")):
            try:
                change(files.place(tmp_path, path))
            except files.FileProblem:
                continue
    assert len(os.listdir("/proc/self/fd")) == before


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b", "..a", "work"]), max_size=8).map("/".join), st.booleans())
def test_a_place_is_inside_or_refused(path: str, absolute: bool) -> None:
    cwd = Path("/home/work")
    given_path = f"/home/work/{path}" if absolute else path
    try:
        at = files.place(cwd, given_path)
    except files.FileProblem:
        return
    assert at.path.is_relative_to(cwd)
    assert at.path != cwd
    assert not {"..", ".", ""} & set(at.parts)


async def test_an_interrupt_in_mid_change_still_tells_of_it(talk: Any, cwd: Path, host: Any) -> None:
    """The change is done and told, and then the turn ends."""
    host.meanwhile = talk.client.interrupt
    heard = await talk.play("- {write: a, content: x}\n- {write: b, content: x}")
    assert heard.end.status is TurnStatus.INTERRUPTED
    assert [event.path for event in heard.of(FileChanged)] == [str(cwd / "a")]
    assert os.listdir(cwd) == ["a"]


@pytest.mark.parametrize("way", ["below", "is", "through a link", "by an absolute path"])
async def test_the_servers_own_directories_are_closed_however_they_are_reached(
    tmp_path: Path, effects: Any, open_talk: Any, way: str
) -> None:
    home = tmp_path / "state"
    (home / "inner").mkdir(parents=True)
    (home / "config.local.yaml").write_text("scripted: {allow_run: false}")
    (tmp_path / "link").symlink_to(home)
    cwd, path = {
        "below": (tmp_path, "state/config.local.yaml"),
        "is": (home, "config.local.yaml"),
        "through a link": (tmp_path / "link", "config.local.yaml"),
        "by an absolute path": (tmp_path, str(home / "config.local.yaml")),
    }[way]
    adapter = ScriptedAdapter(tmp_path / "scripted", tmp_path, effects, closed=(home,))
    async with open_talk(adapter, directory=cwd) as talk:
        for step in (f"{{write: {path}, content: x}}", f"{{edit: {path}, old: 'false', new: 'true'}}"):
            assert "belongs to the server" in await refused(talk, step)
        assert "belongs to the server" in await refused(talk, f"delete: {path}")
    assert (home / "config.local.yaml").read_text() == "scripted: {allow_run: false}"
