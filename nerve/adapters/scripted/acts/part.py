"""Who plays: a turn, or a sub-agent within the session; what the steps of one play share."""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from attrs import define, field, frozen

from nerve.adapters.protocol import AgentEvent, Capabilities, SessionSpec, ToolFinished, ToolStarted, Usage
from nerve.adapters.scripted.cast import Cast, Member
from nerve.adapters.scripted.files import Place
from nerve.adapters.scripted.interruption import Interruption
from nerve.adapters.scripted.steps import Step
from nerve.effects import Effects
from nerve.processes import Children


@frozen
class Completed:
    pass


@frozen
class Failed:
    reason: str


@frozen
class Crashed:
    silent: bool


Ending = Completed | Failed | Crashed


class Ended(Exception):
    """A step ended the play that it belongs to."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


class Stage(Protocol):
    """What a play acts on: the open runtime of a session, or the place of one sub-agent in it."""

    model: str

    @property
    def native_id(self) -> str:
        """Of the conversation."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...
    async def emit(self, event: AgentEvent) -> None: ...
    async def keep_capabilities(self, capabilities: Capabilities) -> None: ...
    async def heard(self) -> None:
        """Wait until the session has taken in every event emitted so far."""
        ...

    async def history(self, max_characters: int) -> str: ...

    async def step_over(self, usage: Usage | None) -> None:
        """A step has been played, or cut off; ``usage`` is what the play has used so far."""
        ...


@define(eq=False)
class Part:
    """``result`` is the last tool's; ``said`` counts the characters said so far; ``play`` plays nested steps.

    ``variables`` are what ``say`` may name beyond that.  ``usage`` and ``mapped`` are what the end of a turn reports.
    ``children`` are the real processes of the house; None: plays may start none.
    ``member`` is the agent that plays, None in a turn; ``play_as`` has another one play steps on a stage of its own.
    """

    session: SessionSpec
    effects: Effects
    stage: Stage
    interruption: Interruption
    cast: Cast
    play: Callable[[Iterable[Step]], Awaitable[None]] = field(repr=False)
    play_as: Callable[[Member, Stage, Iterable[Step]], Awaitable[Ending]] = field(repr=False)
    plan_file: Place = field(repr=False)
    member: Member | None = None
    closed: tuple[Path, ...] = ()
    children: Children | None = None
    usage: Usage | None = None
    mapped: bool = True
    result: str = ""
    said: int = 0
    variables: dict[str, str] = field(factory=dict)

    @property
    def agent_ref(self) -> str | None:
        """Of the sub-agent that plays."""
        return None if self.member is None else self.member.ref

    async def start_tool(self, tool: str, tool_input: dict[str, Any]) -> str:
        """Tell that a tool is used; the id of the call."""
        tool_use_id = self.effects.new_id("tool_use")
        await self.stage.emit(ToolStarted(tool_use_id, tool, tool_input))
        return tool_use_id

    async def finish_tool(self, tool_use_id: str, result: str, is_error: bool) -> None:
        self.result = result
        await self.stage.emit(ToolFinished(tool_use_id, result, is_error))
