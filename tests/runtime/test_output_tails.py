"""The tail of a shell's output, whatever path its runtime names: only files of ours, through no link."""

import os
import tempfile
from pathlib import Path

import pytest

from nerve.runtime.agent_output import Tail, output_tail, private_directories

SECRET = "hunter2"
NONE = Tail()


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of output files, with one in it; a secret of the same name lies outside."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = private_directories()[0]
    assert ours.parent == tmp_path
    (ours / "tasks").mkdir(parents=True)
    ours.chmod(0o700)
    (ours / "tasks" / "b1.output").write_text("one two é")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b1.output").write_text(SECRET)
    return ours


def test_the_tail_begins_with_a_whole_character(ours: Path) -> None:
    path = str(ours / "tasks" / "b1.output")
    assert output_tail(path, "b1", 100) == Tail("one two é", 10, False, True)
    assert output_tail(path, "b1", 3) == Tail(" é", 10, True, True)
    assert output_tail(path, "b1", 1) == Tail("", 10, True, True)
    for wrong in (None, "b2", "", "1"):
        assert output_tail(path, wrong, 100) == NONE
    assert output_tail(None, "b1", 100) == NONE


@pytest.mark.parametrize(
    "path",
    ["../outside/b1.output", "tasks/../../outside/b1.output", "tasks/../tasks/b1.output", "/etc/b1.output", "b1.output",
     "%2e%2e/outside/b1.output", "..\\outside\\b1.output", "tasks/\0/b1.output", "\ud800/b1.output",
     "tasks/b1.output\0", "x/" * 3000 + "b1.output", "x" * 300 + "/b1.output", "tasks"],
)  # fmt: skip
def test_paths_that_lead_away(ours: Path, path: str) -> None:
    assert output_tail(f"{ours}/{path}", "b1", 100) == NONE
    assert output_tail(path, "b1", 100) == NONE
    assert output_tail(f"{ours}-2/{path}", "b1", 100) == NONE


def test_links_and_what_is_no_file(ours: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (ours / "folder").symlink_to(outside)
    (ours / "file").mkdir()
    (ours / "file" / "b1.output").symlink_to(outside / "b1.output")
    (ours / "dangling").mkdir()
    (ours / "dangling" / "b1.output").symlink_to(tmp_path / "nowhere")
    (ours / "directory" / "b1.output").mkdir(parents=True)
    (ours / "fifo").mkdir()
    os.mkfifo(ours / "fifo" / "b1.output")
    for folder in ("folder", "file", "dangling", "directory", "fifo"):
        assert output_tail(str(ours / folder / "b1.output"), "b1", 100) == NONE
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_directory_that_others_may_enter_is_not_looked_into(ours: Path, mode: int) -> None:
    ours.chmod(mode)
    assert output_tail(str(ours / "tasks" / "b1.output"), "b1", 100) == NONE


def test_a_directory_that_is_a_link_itself(ours: Path, tmp_path: Path) -> None:
    ours.rename(tmp_path / "moved")
    ours.symlink_to(tmp_path / "moved")
    assert output_tail(str(ours / "tasks" / "b1.output"), "b1", 100) == NONE


def test_nothing_stays_open(ours: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for name in ("tasks/b1.output", "nowhere/b1.output", "b1.output"):
        output_tail(str(ours / name), "b1", 100)
    ours.chmod(0o755)
    output_tail(str(ours / "tasks" / "b1.output"), "b1", 100)
    assert len(os.listdir("/proc/self/fd")) == before
