"""Plays from files in the workspace."""

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from nerve.adapters.protocol import TurnSource, TurnStatus
from nerve.adapters.scripted import ScriptedAdapter, check_scenarios
from nerve.adapters.scripted import source as source_module


def scenario(workspace: Path, name: str, match: str, say: str) -> Path:
    path = workspace / "scenarios" / name
    path.write_text(f"match: '{match}'\nsteps:\n  - say: {say}\n")
    return path


async def test_the_first_match_in_name_order_wins(talk: Any, workspace: Path) -> None:
    scenario(workspace, "20-all.yaml", "", "all").write_text("match: '.*'\nsteps: [{say: all}]")
    scenario(workspace, "10-hello.yaml", "[Hh]ello", "hello there")
    scenario(workspace, "00-exact.yaml", "^hello$", "exactly")
    assert (await talk.ask("hello")).text == "exactly"
    assert (await talk.ask("oh, Hello you")).text == "hello there"
    assert (await talk.ask("bye")).text == "all"


async def test_files_match_whatever_the_source(talk: Any, workspace: Path) -> None:
    scenario(workspace, "a.yaml", "wake", "awake")
    for source in set(TurnSource) - {TurnSource.AUTO}:  # that one has no prompt
        assert (await talk.ask("wake up", source=source)).text == "awake"


async def test_a_play_in_a_message_goes_first_but_not_from_a_channel(talk: Any, workspace: Path) -> None:
    scenario(workspace, "a.yaml", "nerve-scenario", "from the file")
    assert (await talk.play("- say: from the message")).text == "from the message"
    assert (await talk.play("- say: from the message", source=TurnSource.SLACK)).text == "from the file"


async def test_files_are_read_at_each_message(talk: Any, workspace: Path) -> None:
    path = scenario(workspace, "a.yaml", "hi", "one")
    times = path.stat()
    assert (await talk.ask("hi")).text == "one"
    scenario(workspace, "a.yaml", "hi", "two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (await talk.ask("hi")).text == "two"
    path.unlink()
    assert "I received" in (await talk.ask("hi")).text


async def test_a_bad_file_is_reported_once_and_skipped(
    talk: Any, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (workspace / "scenarios" / "00.yaml").write_text("match: x\nsteps: [{dance: 1}]")
    scenario(workspace, "10.yaml", "x", "good")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert (await talk.ask("x")).text == "good"
    assert [record.message for record in caplog.records] == [
        f"scenario file {workspace}/scenarios/00.yaml is skipped: /steps/0: unknown step 'dance'"
    ]


async def test_without_a_folder_there_is_the_built_in_reply(talk: Any, workspace: Path) -> None:
    (workspace / "scenarios").rmdir()
    heard = await talk.ask("x")
    assert heard.end.status is TurnStatus.COMPLETED
    assert "I received" in heard.text


async def test_an_evil_expression_takes_no_time(talk: Any, workspace: Path) -> None:
    scenario(workspace, "a.yaml", "(a+)+$", "never")
    scenario(workspace, "b.yaml", "^(a|a)*b$", "b")
    assert (await talk.ask("a" * 50_000 + "b")).text == "b"


def test_the_check_names_every_bad_file(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = workspace / "scenarios"
    scenario(workspace, "00-good.yaml", "x", "good")
    (folder / "01.yaml").write_text("match: '(?=x)'\nsteps: []")
    (folder / "02.yaml").write_bytes(b"\xff")
    (folder / "03.yaml").write_text("- say: x")
    (folder / "04.yaml").mkdir()
    os.mkfifo(folder / "05.yaml")
    (folder / "06.yaml").symlink_to(folder / "missing")
    (folder / "07.yaml").write_text("match: x\nsteps: []\n#" + "x" * 256 * 1024)
    (folder / "08.yaml").write_text("match: 'x{1000}{1000}'\nsteps: []")
    (folder / ".hidden.yaml").write_text("nonsense")
    (folder / "readme.md").write_text("nonsense")
    (folder / "09.yaml").write_text("match: x\nsteps: []")
    monkeypatch.setattr(source_module, "MAX_FILES", 9)
    expression = "'match' is no regular expression without look-around and back-references"
    assert {bad.path.name: bad.reason for bad in check_scenarios(workspace)} == {
        "01.yaml": expression,
        "02.yaml": "not UTF-8 text",
        "03.yaml": "a play must be a list of steps, or a mapping with 'steps'",
        "04.yaml": "Is a directory",
        "05.yaml": "not a regular file",
        "06.yaml": "No such file or directory",
        "07.yaml": "a play is at most 256 KiB",
        "08.yaml": expression,
        "09.yaml": "only the first 9 files are read",
    }
    assert check_scenarios(workspace / "nowhere") == []


async def test_what_is_kept_of_files_is_bounded(
    talk: Any, scripted: ScriptedAdapter, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "MAX_FILES", 3)
    for number in range(20):
        scenario(workspace, "a.yaml", "hi", f"version {number}")
        assert (await talk.ask("hi")).text == f"version {number}"
    assert len(scripted._source._parsed) <= 3
