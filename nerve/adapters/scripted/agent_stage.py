"""Where a sub-agent plays: what it does becomes items of its own transcript, and nothing of the turn."""

from collections.abc import Awaitable, Callable

from attrs import define, field

from nerve.adapters.protocol import (
    AgentEvent,
    Capabilities,
    CapabilitiesChanged,
    FileChanged,
    ModelObserved,
    PlanUpdated,
    TextAdded,
    ThinkingAdded,
    ToolFinished,
    ToolStarted,
    Usage,
)
from nerve.adapters.scripted.acts.part import Stage
from nerve.adapters.subagents import (
    AgentActed,
    AgentModelObserved,
    AgentProgressed,
    AgentText,
    AgentToolFinished,
    AgentToolStarted,
    Deed,
    SubagentEvent,
)


@define(eq=False)
class AgentStage:
    """``_behind`` is the stage of the runtime.  A step's words are one item, told when the step is over."""

    _ref: str
    _behind: Stage
    _tell: Callable[[AgentEvent], Awaitable[None]]
    model: str
    _words: list[str] = field(factory=list)
    _thinking: bool = False
    _used: Usage | None = None

    @property
    def native_id(self) -> str:
        return self._behind.native_id

    @property
    def capabilities(self) -> Capabilities:
        return self._behind.capabilities

    async def keep_capabilities(self, capabilities: Capabilities) -> None:
        await self._behind.keep_capabilities(capabilities)

    async def history(self, max_characters: int) -> str:
        return await self._behind.history(max_characters)

    async def heard(self) -> None:
        await self._behind.heard()

    async def emit(self, event: AgentEvent) -> None:
        match event:
            case TextAdded(text) | ThinkingAdded(text):
                self._thinking = isinstance(event, ThinkingAdded)
                self._words.append(text)
            case ToolStarted(tool_use_id, tool, tool_input):
                await self._act(AgentToolStarted(tool_use_id, tool, tool_input))
            case ToolFinished(tool_use_id, result, is_error):
                await self._act(AgentToolFinished(tool_use_id, result, is_error))
            case ModelObserved(model):
                await self._tell(AgentModelObserved(self._ref, model))
            case FileChanged() | PlanUpdated() | CapabilitiesChanged():
                await self._tell(event)
            case _ if isinstance(event, SubagentEvent):
                await self._tell(event)
            case _:
                pass  # the output of a running tool has no place in a transcript

    async def _act(self, deed: Deed) -> None:
        await self._tell(AgentActed(self._ref, deed))

    async def step_over(self, usage: Usage | None) -> None:
        if self._words:
            said, self._words = "".join(self._words), []
            await self._act(AgentText(said, self._thinking))
        if usage is not None and usage != self._used:
            self._used = usage
            tokens = usage.input_tokens + usage.output_tokens
            # A play costs nothing but what it says.
            await self._tell(AgentProgressed(ref=self._ref, tokens=tokens, cost_usd=usage.cost_usd or 0.0))
