"""The limits of a play that its schema can't state: how many steps, how deep, how many agents, how long.

Checked before the schema, so every value here may still be of any type.
"""

from typing import Any

from attrs import define

from nerve.adapters.scripted.problem import PlayError, pointer_to

MAX_STEPS = 1000
MAX_NESTING = 8
MAX_AGENTS = 200
MAX_SECONDS = 3600
MAX_SETTLED = 100  # how often the ``on_settled`` of one play is played, which may start what settles again

Path = tuple[str | int, ...]


def check_limits(document: Any) -> None:
    """Raises PlayError that names the first step beyond a limit."""
    tally = _Tally()
    if isinstance(document, list):
        tally.steps_of(document, (), 0, 0.0)
    elif isinstance(document, dict):
        for key in ("steps", "on_settled"):
            tally.steps_of(document.get(key), (key,), 0, 0.0)


@define
class _Tally:
    steps: int = 0
    agents: int = 0

    def steps_of(self, steps: Any, path: Path, depth: int, seconds: float) -> float:
        """Count a list of steps that begins ``seconds`` after its play began; gives when it ends."""
        if not isinstance(steps, list):
            return seconds
        for index, step in enumerate(steps):
            seconds = self._step(step, (*path, index), depth, seconds)
        return seconds

    def _step(self, step: Any, path: Path, depth: int, seconds: float) -> float:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise PlayError(pointer_to(path), f"a play has at most {MAX_STEPS:,} steps")
        if not isinstance(step, dict):
            return seconds
        if "agent" in step:
            self.agents += 1
            if self.agents > MAX_AGENTS:
                raise PlayError(pointer_to(path), f"a play has at most {MAX_AGENTS} agents")
        if ("agent" in step or "revise" in step) and depth >= MAX_NESTING:
            raise PlayError(pointer_to(path), f"steps nest at most {MAX_NESTING} deep")
        own = seconds + _own_seconds(step)
        inner = self.steps_of(step.get("steps"), (*path, "steps"), depth + 1, own)
        inner = self.steps_of(step.get("revise"), (*path, "revise"), depth + 1, inner)
        if inner > MAX_SECONDS:
            raise PlayError(pointer_to(path), "a play lasts at most one hour in all")
        return seconds if _in_background(step) else inner


def _in_background(step: dict[str, Any]) -> bool:
    return step.get("background", "shell" in step or "monitor" in step) is True


def _own_seconds(step: dict[str, Any]) -> float:
    seconds = sum(_number(step.get(key)) for key in ("wait", "stuck", "seconds"))
    text = step.get("say", step.get("think"))
    if isinstance(text, str):
        seconds += _number(step.get("pace")) * max(0, len(text.split()) - 1)
    workflow = step.get("workflow")
    if isinstance(workflow, dict):
        seconds += _number(workflow.get("seconds"))
    return seconds


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(0, value)
