"""Real programs in plays, on the true clock: the whole house in memory, asked by its front door."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import trio
from attrs import define

from nerve.effects import Effects
from tests.house import House, open_house

LONG_SECONDS = 60.0  # nothing here lasts so long on any machine
LOOK_SECONDS = 0.02

# Programs, each one line of Python; those that wait say first that they are up.
SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER


def python(text: str, *more: str) -> list[str]:
    return [sys.executable, "-c", text, *more]


def step(name: str, run: list[str], kind: str = "shell", **fields: Any) -> dict[str, Any]:
    return {kind: name, "run": run, **fields}


@define(eq=False)
class Theatre:
    house: House
    session_id: str = ""

    async def play(self, *steps: dict[str, Any]) -> str:
        """Play a turn to its end; what it said."""
        message = "#!nerve-scenario\n" + json.dumps(list(steps))
        answer = await self.house.owner.call("chat.send", {"message": message, "session_id": self.session_id})
        assert answer.status == 200, answer.json
        return str(answer.json["response"])

    async def agents(self) -> dict[str, dict[str, Any]]:
        """The records by their names."""
        found = await self.house.owner.ok("agents.list", path={"session_id": self.session_id})
        return {agent["name"]: agent for agent in found["agents"]}

    async def agent(self, name: str, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The record, once it fits."""
        with trio.fail_after(LONG_SECONDS):
            while not fits(found := (await self.agents())[name]):  # noqa: ASYNC110 - only asked does it answer
                await trio.sleep(LOOK_SECONDS)
        return found

    async def ended(self, name: str) -> dict[str, Any]:
        return await self.agent(name, lambda agent: agent["ended_at"] is not None)

    async def output(self, name: str) -> dict[str, Any]:
        path = {"session_id": self.session_id, "agent_id": (await self.agents())[name]["id"]}
        return dict(await self.house.owner.ok("agents.output", path=path))

    async def says(self, name: str, text: str) -> None:
        with trio.fail_after(LONG_SECONDS):
            while text not in (await self.output(name))["text"]:  # noqa: ASYNC110 - a process writes it
                await trio.sleep(LOOK_SECONDS)

    async def stop(self, name: str) -> None:
        path = {"session_id": self.session_id, "agent_id": (await self.agents())[name]["id"]}
        await self.house.owner.ok("agents.stop", {}, path=path)

    def processes(self) -> list[int]:
        """What lives of this house's programs."""
        return marked(self.house.services.identity.home_id)


def marked(home_id: str) -> list[int]:
    """What carries the home's mark and is no zombie."""
    found = []
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and process.environ().get("NERVE_HOME_ID") == home_id and process.pid != os.getpid():
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def outputs(temporary: Path) -> list[Path]:
    """The output files below the temporary directory."""
    return list(temporary.rglob("*.output"))


@asynccontextmanager
async def open_theatre(path: Path, *, allowed: bool = True) -> AsyncIterator[Theatre]:
    settings = {"scripted": f"allow_run: {str(allowed).lower()}"}
    environ = {"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "a secret"}
    # Real effects also give each home an id of its own: tests beside each other end only their own processes.
    async with open_house(path / "home", settings=settings, environ=environ, effects=Effects()) as house:
        theatre = Theatre(house)
        theatre.session_id = (await house.owner.ok("sessions.create", {}))["id"]
        yield theatre
