"""A wakeup that comes due while its process is dead: the next process sees to it, once (decisions D57)."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.soak.daemon import Daemon
from tests.soak.plays import HEAD
from tests.soak.scale import only_whole

DELAY_SECONDS = 60  # the shortest there is
PATIENCE_SECONDS = 60.0


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Daemon]:
    """A claimed server whose configured runtime is the scripted one: nobody's absence keeps a wakeup from running."""
    daemon = Daemon(tmp_path / "home", tmp_path / "workspace")
    daemon.home.mkdir(mode=0o700)
    (daemon.home / "config.yaml").write_text("agent: {backend: scripted}\n")
    scenarios = daemon.workspace / "scenarios"
    scenarios.mkdir(parents=True)
    (scenarios / "tick.yaml").write_text("match: ^tick$\nsteps: [{say: tock}]\n")
    try:
        daemon.start()
        daemon.claim()
        yield daemon
    finally:
        daemon.end()


def answers(daemon: Daemon, session_id: str) -> list[dict[str, Any]]:
    status, page = daemon.get(f"/api/sessions/{session_id}/messages")
    assert status == 200
    return [message for message in page["messages"] if message["role"] == "assistant"]


@pytest.mark.soak
@only_whole
def test_a_wakeup_fires_after_a_kill(scripted: Daemon) -> None:
    _, session = scripted.post("/api/sessions")
    session_id = session["id"]
    play = HEAD + json.dumps([{"wakeup": DELAY_SECONDS, "prompt": "tick"}, {"say": "Later."}])
    assert scripted.post("/api/chat", {"message": play, "session_id": session_id})[0] == 200
    scheduled = time.monotonic()
    scripted.kill()
    time.sleep(max(0.0, scheduled + DELAY_SECONDS + 1 - time.monotonic()))
    scripted.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(answers(scripted, session_id)) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    scripted.kill()
    scripted.start()
    first, second = answers(scripted, session_id)
    assert (first["content"], second["content"]) == ("Later.", "tock")
    assert second["blocks"][0] == {"type": "wakeup"}
