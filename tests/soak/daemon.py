"""One real server process on a home of its own: started, killed, ended; the home outlives it.

Everything here blocks; trio code calls it in a thread.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.ports import free_port

START_SECONDS = 60.0
USERNAME, PASSWORD = "alice", "correct horse battery"


class DaemonFailed(Exception):
    """The process ended or did not answer; holds the end of its log."""


@define(eq=False)
class Daemon:
    """``program`` are the arguments of the interpreter; ``cpus`` are those the process may use (None: all)."""

    home: Path
    workspace: Path
    port: int = field(factory=free_port)
    program: tuple[str, ...] = ("-m", "nerve")
    cpus: frozenset[int] | None = None
    token: str = field(default="", repr=False)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> Path:
        return self.home.parent / f"{self.home.name}.log"

    @property
    def database(self) -> Path:
        return self.home / "nerve.db"

    # --- life and death -------------------------------------------------------------------------------------------

    def start(self) -> float:
        """Start and wait for the first ``/health``; how many seconds that took."""
        begun = time.monotonic()
        self.spawn()
        self.wait_until_healthy()
        return time.monotonic() - begun

    def spawn(self) -> None:
        arguments = ("start", "--foreground", "--host", "127.0.0.1", "--port", str(self.port))
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self.program, *arguments], stdout=log, stderr=log, env=self._environment()
            )
        if self.cpus is not None:
            os.sched_setaffinity(self._process.pid, self.cpus)

    def wait_until_healthy(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                if self.get("/health")[0] == 200:
                    return
            except OSError:
                pass
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise DaemonFailed(f"no answer (exit code {self._process.poll()})\n{self.log_tail()}")
            time.sleep(0.005)

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone.  Raises DaemonFailed if it was gone already."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise DaemonFailed(f"it had ended by itself ({self._process.returncode})\n{self.log_tail()}")
        self._process.kill()
        self._process.wait(10)

    def terminate(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> int:
        """Wait for the end that ``terminate`` asked for; the exit code.  Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        return self._process.wait(seconds)

    def end(self) -> None:
        """Make sure that nothing is left running."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)

    # --- questions ------------------------------------------------------------------------------------------------

    def get(self, path: str) -> tuple[int, Any]:
        return self._request("GET", path, None)

    def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        return self._request("POST", path, {} if body is None else body)

    def claim(self) -> str:
        """Make the instance a person's own; their token, which is also kept here."""
        arguments = [sys.executable, "-m", "nerve", "status", "--json"]
        shown = subprocess.run(arguments, env=self._environment(), capture_output=True, check=True, timeout=60)
        setup_token = json.loads(shown.stdout)["setup_token"]
        claim = {"username": USERNAME, "password": PASSWORD, "setup_token": setup_token}
        status, body = self.post("/api/setup/claim", claim)
        if status != 200:
            raise DaemonFailed(f"the claim was answered with {status}: {body}")
        self.token = body["token"]
        return self.token

    def resident_bytes(self) -> int:
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """What the process has used of a processor so far."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def _request(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except http.client.HTTPException as broken:
            raise ConnectionError(str(broken)) from broken
        finally:
            connection.close()

    def _environment(self) -> dict[str, str]:
        # Nothing of the caller's own instance may reach this one.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NERVE_")}
        return kept | {"NERVE_HOME": str(self.home), "NERVE_WORKSPACE": str(self.workspace)}
