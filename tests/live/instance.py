"""A Nerve of its own for one test: directories, the command line as a child process, and its daemon."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from attrs import define, field

from tests.spec_client import judged

PROGRAM = [sys.executable, "-P", "-m", "nerve"]
COMMAND_SECONDS = 90
DEADLINE_SECONDS = 60.0


@define(eq=False)
class Instance:
    """``close`` ends whatever a test left running; ``env`` holds nothing but what a bare shell has."""

    root: Path
    env: dict[str, str] = field(init=False)
    _children: list["subprocess.Popen[bytes]"] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        user = self.root / "user"
        user.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(user),
            "NERVE_HOME": str(self.home),
            "NERVE_WORKSPACE": str(self.workspace),
        }

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def log(self) -> str:
        return (self.home / "nerve.log").read_text()

    # --- the command line -----------------------------------------------------------------------------------------

    def nerve(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*PROGRAM, *words],
            env=self.env,
            cwd=self.root,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def must(self, *words: str, stdin: str = "") -> str:
        done = self.nerve(*words, stdin=stdin)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.must("status", "--json"))
        return found

    # --- its daemon -----------------------------------------------------------------------------------------------

    def foreground(self, *words: str) -> "subprocess.Popen[bytes]":
        """A daemon as a child of the test, its output in ``nerve.log``; returns once it answers."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        with open(self.home / "nerve.log", "ab") as log:
            child = subprocess.Popen(
                [*PROGRAM, "start", "--foreground", "--host", "127.0.0.1", "--port", "0", *words],
                env=self.env,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._children.append(child)
        eventually(lambda: child.poll() is not None or self.record().get("pid") == child.pid)
        assert child.poll() is None, self.log
        return child

    def record(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.home / "nerve.run.json").read_text())
        except (OSError, json.JSONDecodeError):
            return {}
        return found

    @property
    def address(self) -> str:
        return str(self.record()["address"])

    def http(self, method: str, path: str, token: str | None = None, **how: Any) -> httpx.Response:
        headers = {**how.pop("headers", {}), **({} if token is None else {"authorization": f"Bearer {token}"})}
        return judged(httpx.request(method, self.address + path, headers=headers, trust_env=False, timeout=60, **how))

    def claim(self, username: str = "owner", password: str = "correct horse") -> str:
        """Claim the running instance; a session token."""
        body = {"setup_token": self.status()["setup_token"], "username": username, "password": password}
        answer = self.http("POST", "/api/setup/claim", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["token"])

    def login(self, username: str, password: str) -> httpx.Response:
        return self.http("POST", "/api/auth/login", json={"username": username, "password": password})

    def close(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.wait(60)
        pid = self.record().get("pid")
        if isinstance(pid, int) and pid not in {child.pid for child in self._children}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return


def eventually(happens: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    """Wait for another process on the real clock; fails when it does not happen."""
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
