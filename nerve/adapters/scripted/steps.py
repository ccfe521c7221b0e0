"""The steps of a play as frozen values.  Each knows its JSON pointer, for errors that happen while it is played."""

from enum import StrEnum
from typing import Any

from attrs import frozen

from nerve.adapters.protocol import Usage
from nerve.contract.generated.entities import AgentKind


@frozen
class Say:
    pointer: str
    text: str
    pace: float


@frozen
class Think:
    pointer: str
    text: str
    pace: float


@frozen
class UseTool:
    pointer: str
    tool: str
    input: dict[str, Any]
    output: tuple[str, ...]
    result: str
    is_error: bool
    seconds: float


@frozen
class CallTool:
    """A built-in tool; also what the steps ``form`` and ``wakeup`` are."""

    pointer: str
    tool: str
    input: dict[str, Any]


@frozen
class WriteFile:
    pointer: str
    path: str
    content: str


@frozen
class EditFile:
    pointer: str
    path: str
    old: str
    new: str


@frozen
class DeleteFile:
    pointer: str
    path: str


@frozen
class AskQuestions:
    """Each question as ``AskUserQuestion`` takes it: question, header, options, multiSelect."""

    pointer: str
    questions: tuple[dict[str, Any], ...]


@frozen
class ProposePlan:
    """``revise`` is played when the plan is refused."""

    pointer: str
    text: str
    revise: "tuple[Step, ...]"


@frozen
class RequestApproval:
    """``kind`` is command, file or permission."""

    pointer: str
    kind: str
    input: dict[str, Any]


@frozen
class AddUsage:
    pointer: str
    usage: Usage


@frozen
class ServeModel:
    pointer: str
    model: str
    downgrade: bool


@frozen
class Wait:
    pointer: str
    seconds: float


@frozen
class BeStuck:
    pointer: str
    seconds: float


@frozen
class ChangeCapabilities:
    """Those that are None stay as they are."""

    pointer: str
    stop_task: bool | None
    transcript: bool | None
    output: bool | None
    interrupt_spares_background: bool | None


@frozen
class Fail:
    pointer: str
    message: str


@frozen
class Crash:
    pointer: str
    silent: bool


@frozen
class Unmap:
    """This turn records no native turn id."""

    pointer: str


class Ends(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    VANISHED = "vanished"


@frozen(kw_only=True)
class SpawnAgent:
    """``obeys``: a stop is confirmed, after ``stop_seconds``."""

    pointer: str
    name: str
    type: str
    description: str
    prompt: str
    background: bool
    model: str | None
    steps: "tuple[Step, ...]"
    result: str
    ends: Ends
    obeys: bool
    stop_seconds: float


@frozen(kw_only=True)
class RunShell:
    """A shell or a monitor.  ``run`` is a real program and its arguments; None: the play says what it writes."""

    pointer: str
    kind: AgentKind
    name: str
    command: str
    output: tuple[str, ...]
    seconds: float
    background: bool
    exit_code: int
    obeys: bool
    stop_seconds: float
    run: tuple[str, ...] | None


@frozen
class RunWorkflow:
    pointer: str
    name: str
    phases: tuple[str, ...]
    agents: tuple[str, ...]
    seconds: float


Step = (
    Say
    | Think
    | UseTool
    | CallTool
    | WriteFile
    | EditFile
    | DeleteFile
    | AskQuestions
    | ProposePlan
    | RequestApproval
    | AddUsage
    | ServeModel
    | Wait
    | BeStuck
    | ChangeCapabilities
    | Fail
    | Crash
    | Unmap
    | SpawnAgent
    | RunShell
    | RunWorkflow
)


@frozen
class Play:
    """What is played in a turn, and what in the autonomous turn after a background agent ended (None: one line)."""

    steps: tuple[Step, ...]
    on_settled: tuple[Step, ...] | None = None


@frozen
class ScenarioFile:
    """A play for the prompts in which ``match``, a regular expression, is found."""

    match: str
    play: Play
