"""What files held before a session changed them, and what a play says of its runtime."""

from pathlib import Path

import pytest

from nerve.runtime.file_changes import MOST_BYTES
from tests.runtime.tabs import of, tab
from tests.sessions.session_house import House, play

Snapshot = tuple[str, int, bytes | None]


async def kept(house: House, session_id: str) -> list[Snapshot]:
    rows = await house.sql(
        "SELECT path, existed, content FROM session_file_snapshots WHERE session_id = ? ORDER BY path", session_id
    )
    return [(Path(path).name, existed, content) for path, existed, content in rows]


@pytest.mark.req("WS-66")
async def test_the_first_state_of_each_file_is_kept(house: House) -> None:
    workspace = house.services.config.workspace
    session_id, other = await house.create(), await house.create()
    (workspace / "old.txt").write_text("before")
    (workspace / "gone.txt").write_bytes(b"\xff\x00")
    (workspace / "great.bin").write_bytes(b"x" * (MOST_BYTES + 1))
    (workspace / "whole.bin").write_bytes(b"x" * MOST_BYTES)
    async with tab(house.alice, session_id) as alice:
        steps = [
            "- edit: old.txt\n  old: before\n  new: after",
            "- write: old.txt\n  content: once more",
            "- write: new.txt\n  content: hi",
            "- delete: gone.txt",
            "- write: great.bin\n  content: small",
            "- write: whole.bin\n  content: small",
        ]
        await alice.say(session_id, play(*steps))
        frames = await alice.turn()
    assert len(of(frames, "file_changed")) == 6
    expected: list[Snapshot] = [
        ("gone.txt", 1, b"\xff\x00"),
        ("great.bin", 1, None),
        ("new.txt", 0, None),
        ("old.txt", 1, b"before"),
        ("whole.bin", 1, b"x" * MOST_BYTES),
    ]
    assert await kept(house, session_id) == expected
    # Another session has a baseline of its own.
    await house.run(other, play("- write: old.txt\n  content: again"))
    assert await kept(house, other) == [("old.txt", 1, b"once more")]
    # Deleting a session takes its snapshots along.
    await house.alice.delete(f"/api/sessions/{session_id}")
    assert await kept(house, session_id) == []


async def test_a_refused_change_keeps_nothing(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- edit: missing.txt\n  old: a\n  new: b", "- write: ../out.txt\n  content: x"))
    assert await kept(house, session_id) == []


@pytest.mark.req("AGENT-15", "WS-43")
async def test_capabilities_are_those_of_the_sessions_runtime(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    await house.run(session_id, play("- capabilities: {stop_task: false, interrupt_spares_background: false}"))
    async with tab(house.alice, session_id) as alice, tab(house.alice, other) as second:
        assert alice.greeting[-1]["agents"]["capabilities"] == {
            "stop_task": False,
            "transcript": True,
            "output": True,
            "interrupt_spares_background": False,
            "quiet_after_minutes": 10,
        }
        assert second.greeting[-1]["agents"]["capabilities"]["stop_task"] is True
