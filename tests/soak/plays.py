"""Plays that leave a trace: each adds its line to the session's marker file, so that a play run twice is visible."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

END = "END-OF-LINES\n"
HEAD = "#!nerve-scenario\n"


def marker(workspace: Path, session_id: str) -> Path:
    return workspace / f"marker-{session_id}.md"


def prepare(workspace: Path, session_id: str) -> None:
    marker(workspace, session_id).write_text(END)


def lines(workspace: Path, session_id: str) -> Counter[str]:
    """How often each play has added its line."""
    return Counter(line for line in marker(workspace, session_id).read_text().splitlines() if line != END.strip())


def random_play(rng: random.Random, session_id: str, message_id: str) -> str:
    """A message whose play streams, thinks, uses tools or hardly does anything; it lasts at most about a second."""
    make = rng.choice([_streaming, _streaming, _tool_using, _mixed, _short])
    steps = make(rng)
    steps.insert(rng.randrange(len(steps) + 1), _mark(session_id, message_id))
    return HEAD + json.dumps([{"say": f"{message_id} begins. "}, *steps, {"say": f"{message_id} ends."}])


def _mark(session_id: str, message_id: str) -> dict[str, Any]:
    name = marker(Path(), session_id).name
    return {"edit": name, "old": END, "new": f"{message_id}\n{END}"}


def _words(rng: random.Random, count: int) -> str:
    return " ".join(f"w{rng.randrange(1000)}" for _ in range(count)) + " "


def _streaming(rng: random.Random) -> list[dict[str, Any]]:
    return [{"say": _words(rng, rng.randint(10, 60)), "pace": rng.uniform(0.002, 0.015)}]


def _tool_using(rng: random.Random) -> list[dict[str, Any]]:
    output = [f"line {n}\n" for n in range(rng.randint(1, 12))]
    return [{"tool": "Bash", "input": {"command": "make"}, "output": output, "result": "ok", "seconds": rng.random()}]


def _mixed(rng: random.Random) -> list[dict[str, Any]]:
    thought = {"think": _words(rng, 10), "pace": 0.005}
    return [thought, *_tool_using(rng), {"say": _words(rng, 20), "pace": 0.005}]


def _short(rng: random.Random) -> list[dict[str, Any]]:
    return [{"wait": rng.uniform(0, 0.05)}]
