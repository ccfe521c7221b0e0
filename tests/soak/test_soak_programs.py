"""Background shells with real processes, some of which do not want to end: a stop of all, a forced stop, ``kill -9`` of
the server and a restart.  Each time nothing of them is left, in the long run within three seconds (decisions D11).
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from tests.soak import programs
from tests.soak.daemon import Daemon
from tests.soak.scale import WHOLE, amount

SHELLS = amount(sample=6, whole=50)
# How long a machine takes that has other things to do is no matter of the sample.
GONE_SECONDS = amount(sample=60.0, whole=3.0)
PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.02
REAPED_SECONDS = 60.0


@define(eq=False)
class Stage:
    daemon: Daemon
    session_id: str
    plain_start: float  # seconds, with nothing to end
    home_id: str = ""

    def play(self) -> None:
        """Start the shells, and wait until each says that it is up."""
        message = "#!nerve-scenario\n" + json.dumps([*programs.shells(SHELLS), {"say": "Started."}])
        status, answer = self.daemon.post("/api/chat", {"session_id": self.session_id, "message": message})
        assert (status, answer["response"]) == (200, "Started."), answer
        wait_until(lambda: all(self._is_up(agent["id"]) for agent in self.agents()), PATIENCE_SECONDS)
        (self.home_id,) = programs.marks_below(self.daemon.pid)
        assert len(programs.living(self.home_id)) >= SHELLS

    def _is_up(self, agent_id: str) -> bool:
        _, output = self.daemon.get(f"/api/sessions/{self.session_id}/agents/{agent_id}/output")
        return "up" in output["text"]

    def agents(self) -> list[dict[str, Any]]:
        """The newest, one for each shell."""
        status, found = self.daemon.get(f"/api/sessions/{self.session_id}/agents?limit=500")
        assert status == 200
        return list(found["agents"])[-SHELLS:]

    def stop(self, scope: str) -> float:
        """Seconds from the request until nothing lives."""
        begun = time.monotonic()
        status, answer = self.daemon.post(f"/api/sessions/{self.session_id}/stop", {"scope": scope})
        assert status == 200, answer
        return self.gone_since(begun)

    def gone_since(self, begun: float) -> float:
        wait_until(lambda: not programs.living(self.home_id), PATIENCE_SECONDS)
        return time.monotonic() - begun

    def ends(self) -> set[tuple[str, str]]:
        """How they ended, once all have."""
        wait_until(lambda: all(agent["ended_at"] for agent in self.agents()), PATIENCE_SECONDS)
        return {(agent["status"], agent["end_reason"]) for agent in self.agents()}


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(LOOK_SECONDS)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name in ("tmp", "home"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "home" / "config.yaml").write_text("agent: {backend: scripted}\nscripted: {allow_run: true}\n")
    daemon = Daemon(tmp_path / "home", tmp_path / "workspace")
    try:
        plain_start = daemon.start()
        daemon.claim()
        yield Stage(daemon, daemon.post("/api/sessions")[1]["id"], plain_start)
    finally:
        daemon.end()


@pytest.mark.soak
@pytest.mark.slow
def test_no_program_outlives_its_stop_or_its_server(stage: Stage, say: Callable[[str], None]) -> None:
    stage.play()
    stopped = stage.stop("all")
    assert stage.ends() == {("stopped", "stop_all")}

    stage.play()
    forced = stage.stop("force")
    assert stage.ends() == {("interrupted", "force_stop")}

    stage.play()
    stage.daemon.kill()
    assert len(programs.living(stage.home_id)) >= SHELLS // 2, "most of them do not notice"
    begun = time.monotonic()
    stage.daemon.start()
    survived = stage.gone_since(begun)
    assert stage.ends() == {("interrupted", "gateway_restart")}

    say(
        f"{SHELLS} shells: none left {stopped:.2f} s after a stop of all, {forced:.2f} s after a forced one, "
        f"{survived:.2f} s after the restart (a start takes {stage.plain_start:.2f} s)"
    )
    assert max(stopped, forced, survived - stage.plain_start) <= GONE_SECONDS
    if WHOLE:
        wait_until(lambda: not programs.children_of(stage.daemon.pid), REAPED_SECONDS)
    stage.play()
    stage.daemon.terminate()
    assert stage.daemon.wait(10) == 0, stage.daemon.log_tail()
    assert programs.living(stage.home_id) == []
