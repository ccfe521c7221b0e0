"""The runtime's own record on the disk."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.adapters.protocol import Capabilities
from nerve.adapters.scripted.conversation import Conversations, TooLong, UnknownTurn

ROOM = 10_000


@pytest.fixture
def conversations(tmp_path: Path) -> Conversations:
    made = Conversations(tmp_path / "scripted")
    made.create("one")
    made.add_turn("one", "t1", "first")
    made.add_turn("one", "t2", "second\nline")
    return made


def test_a_torn_last_line_is_dropped_and_does_not_harm_the_next(conversations: Conversations) -> None:
    path = conversations.directory / "one.jsonl"
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:-cut])
        assert conversations.resume("one") == Capabilities()
        kept = path.read_bytes()
        assert whole.startswith(kept)
        assert not kept or kept.endswith(b"\n")
        conversations.add_turn("one", "t3", "third")
        assert conversations.history("one", ROOM).split("\n") == [
            *["first", "second line"][: kept.count(b"\n")],
            "third",
        ]


def test_a_torn_line_longer_than_one_block_is_found(conversations: Conversations) -> None:
    path = conversations.directory / "one.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b"x" * 200_000)
    conversations.resume("one")
    assert path.read_bytes() == whole


def test_an_unreadable_line_is_left_out_and_reported(
    conversations: Conversations, caplog: pytest.LogCaptureFixture
) -> None:
    path = conversations.directory / "one.jsonl"
    path.write_bytes(b"garbage\n[1]\n" + path.read_bytes())
    assert conversations.history("one", ROOM) == "first\nsecond line"
    assert "line 1 can't be read" in caplog.text
    assert "line 2 can't be read" in caplog.text


def test_a_failed_append_leaves_no_half_line(conversations: Conversations, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        conversations.add_turn("one", "t3", "third")
    monkeypatch.undo()
    conversations.add_turn("one", "t4", "fourth")
    assert conversations.history("one", ROOM) == "first\nsecond line\nfourth"


def test_a_fork_copies_the_turns_up_to_its_anchor(conversations: Conversations) -> None:
    conversations.set_capabilities("one", Capabilities(output=False))
    assert conversations.fork("one", "two", "t1")
    assert conversations.history("two", ROOM) == "first"
    assert conversations.resume("two") == Capabilities()
    assert conversations.fork("one", "three", None)
    assert conversations.history("three", ROOM) == "first\nsecond line"
    with pytest.raises(UnknownTurn):
        conversations.fork("one", "four", "t9")
    assert not conversations.fork("none", "five", "t1")


def test_a_long_history_is_not_read_to_its_end(conversations: Conversations) -> None:
    assert conversations.history("one", len("first\nsecond line")) == "first\nsecond line"
    with pytest.raises(TooLong):
        conversations.history("one", len("first\nsecond line") - 1)


@pytest.mark.parametrize("native_id", ["../x", "a/b", "", ".", "x" * 65, "é", "a\n"])
def test_an_id_never_becomes_another_path(conversations: Conversations, native_id: str) -> None:
    assert conversations.resume(native_id) is None
    assert not conversations.fork(native_id, "new", None)
    conversations.forget(native_id)
    with pytest.raises(ValueError):
        conversations.create(native_id)
    assert [path.name for path in conversations.directory.iterdir()] == ["one.jsonl"]


@pytest.mark.slow
@given(st.lists(st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace").decode()), max_size=5))
def test_every_message_is_one_line(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        conversations = Conversations(Path(directory))
        conversations.create("c")
        for number, text in enumerate(texts):
            conversations.add_turn("c", str(number), text)
        lines = conversations.history("c", ROOM).split("\n") if texts else []
        assert len(lines) == len(texts)
        for line, text in zip(lines, texts, strict=True):
            assert len(line.splitlines()) <= 1
            assert len(line) == len(text.replace("\r\n", "\n"))
