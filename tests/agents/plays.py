"""Plays with agents, written as steps: ``play(agent("back", wait(600), background=True), say("over"))``."""

import json
from typing import Any

Step = dict[str, Any]


def play(*steps: Step, on_settled: list[Step] | None = None) -> str:
    """A message that the scripted runtime plays.  (JSON is YAML.)"""
    body: Any = list(steps) if on_settled is None else {"steps": list(steps), "on_settled": on_settled}
    return "#!nerve-scenario\n" + json.dumps(body)


def agent(name: str, *steps: Step, **fields: Any) -> Step:
    return {"agent": name, "steps": list(steps), **fields}


def shell(name: str, seconds: float, **fields: Any) -> Step:
    return {"shell": name, "command": f"run {name}", "seconds": seconds, **fields}


def ask(header: str) -> Step:
    return {"ask": [{"question": f"{header}?", "header": header, "options": [{"label": "Yes"}, {"label": "No"}]}]}


def wait(seconds: float) -> Step:
    return {"wait": seconds}


def say(text: str, pace: float = 0) -> Step:
    return {"say": text, "pace": pace}
