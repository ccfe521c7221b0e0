"""From the text of a play to its steps: parsing, the schema of spec/plays/play.yaml, the limits.  Pure."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, cast

import jsonschema_rs
from attrs import frozen

from nerve.adapters.protocol import Usage
from nerve.adapters.scripted.document import load
from nerve.adapters.scripted.limits import check_limits
from nerve.adapters.scripted.problem import PlayError, pointer_to
from nerve.adapters.scripted.steps import (
    AddUsage,
    AskQuestions,
    BeStuck,
    CallTool,
    ChangeCapabilities,
    Crash,
    DeleteFile,
    EditFile,
    Ends,
    Fail,
    Play,
    ProposePlan,
    RequestApproval,
    RunShell,
    RunWorkflow,
    Say,
    ScenarioFile,
    ServeModel,
    SpawnAgent,
    Step,
    Think,
    Unmap,
    UseTool,
    Wait,
    WriteFile,
)
from nerve.adapters.scripted.wording import first_problem
from nerve.contract.generated.entities import AgentKind

Path = tuple[str | int, ...]

LOOP = "<<autonomous-loop>>"  # a wakeup without words of its own


@frozen
class Schemas:
    play: jsonschema_rs.Draft202012Validator
    scenario_file: jsonschema_rs.Draft202012Validator
    step_names: frozenset[str]


@cache
def schemas() -> Schemas:
    """The validators of spec/plays/play.yaml, from the copy inside the package."""
    text = (files("nerve.contract") / "documents" / "play.schema.json").read_text("utf-8")
    document = json.loads(text)
    of_file = {"$schema": document["$schema"], "$ref": "#/$defs/scenario_file", "$defs": document["$defs"]}
    names = (choice["required"][0] for choice in document["$defs"]["step"]["anyOf"])
    return Schemas(
        jsonschema_rs.Draft202012Validator(document),
        jsonschema_rs.Draft202012Validator(of_file),
        frozenset(names),
    )


def parse_play(text: str) -> Play:
    """The play of a message, its first line included (it is a YAML comment).  Raises PlayError."""
    document = load(text)
    check_limits(document)
    _check(schemas().play, document)
    if isinstance(document, list):
        return Play(_steps(document, ()))
    return _play(document)


def parse_scenario_file(text: str) -> ScenarioFile:
    """A file of the workspace's ``scenarios``.  Raises PlayError, also for a bad expression in ``match``."""
    document = load(text)
    check_limits(document)
    _check(schemas().scenario_file, document)
    return ScenarioFile(document["match"], _play(document))


def _check(validator: jsonschema_rs.Draft202012Validator, document: Any) -> None:
    problem = first_problem(validator.iter_errors(document), document, schemas().step_names)
    if problem is not None:
        raise problem


def _play(document: dict[str, Any]) -> Play:
    settled = document.get("on_settled")
    return Play(
        _steps(document["steps"], ("steps",)),
        None if settled is None else _steps(settled, ("on_settled",)),
    )


def _steps(documents: list[dict[str, Any]], path: Path) -> tuple[Step, ...]:
    return tuple(_step(step, (*path, index)) for index, step in enumerate(documents))


def _step(step: dict[str, Any], place: Path) -> Step:
    at = pointer_to(place)
    match step:
        case {"say": str(text)}:
            return Say(at, text, step.get("pace", 0))
        case {"think": str(text)}:
            return Think(at, text, step.get("pace", 0))
        case {"tool": str(name)}:
            return UseTool(
                at,
                name,
                step.get("input", {}),
                tuple(step.get("output", ())),
                step.get("result", ""),
                step.get("is_error", False),
                step.get("seconds", 0),
            )
        case {"write": str(path), "content": str(content)}:
            return WriteFile(at, path, content)
        case {"edit": str(path), "old": str(old), "new": str(new)}:
            return EditFile(at, path, old, new)
        case {"delete": str(path)}:
            return DeleteFile(at, path)
        case {"wait": seconds}:
            return Wait(at, cast("float", seconds))
        case {"stuck": seconds}:
            return BeStuck(at, cast("float", seconds))
        case _:
            return _asking_step(step, at, place)


def _asking_step(step: dict[str, Any], at: str, place: Path) -> Step:
    """The steps that wait for a person."""
    match step:
        case {"ask": list(questions)}:
            return AskQuestions(at, tuple(_question(question) for question in questions))
        case {"plan": str(text)}:
            return ProposePlan(at, text, _steps(step.get("revise", []), (*place, "revise")))
        case {"approve": str(kind)}:
            return RequestApproval(at, kind, step.get("input", {}))
        case _:
            return _background_step(step, at, place)


def _background_step(step: dict[str, Any], at: str, place: Path) -> Step:
    """The steps that start agents and tasks."""
    match step:
        case {"agent": _}:
            return _agent(step, at, place)
        case {"shell": str(name)}:
            return _shell(step, at, AgentKind.SHELL, name)
        case {"monitor": str(name)}:
            return _shell(step, at, AgentKind.MONITOR, name)
        case {"workflow": dict(workflow)}:
            return RunWorkflow(
                at,
                workflow["name"],
                tuple(workflow.get("phases", ())),
                tuple(workflow.get("agents", ())),
                workflow.get("seconds", 0),
            )
        case _:
            return _runtime_step(step, at)


def _question(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "question": given["question"],
        "header": given.get("header", ""),
        "options": [
            {"label": option["label"], "description": option.get("description", "")}
            for option in given.get("options", [])
        ],
        "multiSelect": given.get("multi", False),
    }


def _runtime_step(step: dict[str, Any], at: str) -> Step:
    """The steps about the runtime itself, and those that are built-in tools."""
    match step:
        case {"call": str(name)}:
            return CallTool(at, name, step.get("input", {}))
        case {"form": dict(form)}:
            return CallTool(at, "ask_form", form)
        case {"wakeup": delay}:
            prompt, reason = step.get("prompt") or LOOP, step.get("reason", "")
            return CallTool(at, "schedule_wakeup", {"delaySeconds": delay, "prompt": prompt, "reason": reason})
        case {"usage": dict(usage)}:
            counts = {key: value if key == "cost_usd" else int(value) for key, value in usage.items()}
            return AddUsage(at, Usage(**counts))
        case {"model": str(model)}:
            return ServeModel(at, model, step.get("downgrade", False))
        case {"capabilities": dict(given)}:
            return ChangeCapabilities(
                at,
                given.get("stop_task"),
                given.get("transcript"),
                given.get("output"),
                given.get("interrupt_spares_background"),
            )
        case {"fail": str(message)}:
            return Fail(at, message)
        case {"crash": kind}:
            return Crash(at, kind == "silent")
        case _:
            return Unmap(at)


def _agent(step: dict[str, Any], at: str, place: Path) -> SpawnAgent:
    return SpawnAgent(
        pointer=at,
        name=step["agent"],
        type=step.get("type", "general-purpose"),
        description=step.get("description", ""),
        prompt=step.get("prompt", ""),
        background=step.get("background", False),
        model=step.get("model"),
        steps=_steps(step.get("steps", []), (*place, "steps")),
        result=step.get("result", ""),
        ends=Ends(step.get("ends", "completed")),
        obeys=step.get("on_stop", "confirm") == "confirm",
        stop_seconds=step.get("stop_seconds", 0),
    )


def _shell(step: dict[str, Any], at: str, kind: AgentKind, name: str) -> RunShell:
    return RunShell(
        pointer=at,
        kind=kind,
        name=name,
        command=step.get("command", ""),
        output=tuple(step.get("output", ())),
        seconds=step.get("seconds", 0),
        background=step.get("background", True),
        exit_code=int(step.get("exit_code", 0)),
        obeys=step.get("on_stop", "confirm") == "confirm",
        stop_seconds=step.get("stop_seconds", 0),
        run=tuple(step["run"]) if "run" in step else None,
    )


__all__ = ["PlayError", "parse_play", "parse_scenario_file", "schemas"]
