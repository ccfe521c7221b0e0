"""Plays the steps of one turn: waits, touches files, emits events.  What a step means is decided in here only."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import trio
from attrs import define, evolve, field, frozen

from nerve.adapters.protocol import (
    AgentEvent,
    Capabilities,
    CapabilitiesChanged,
    FileChanged,
    FileOperation,
    ModelObserved,
    SessionSpec,
    TextAdded,
    ThinkingAdded,
    ToolFinished,
    ToolOutputAdded,
    ToolStarted,
    Usage,
)
from nerve.adapters.scripted import files
from nerve.adapters.scripted.conversation import TooLong
from nerve.adapters.scripted.interruption import Interruption
from nerve.adapters.scripted.steps import (
    AddUsage,
    BeStuck,
    ChangeCapabilities,
    Crash,
    DeleteFile,
    EditFile,
    Fail,
    Say,
    ServeModel,
    Step,
    Think,
    Unavailable,
    Unmap,
    UseTool,
    Wait,
    WriteFile,
)
from nerve.effects import Effects
from nerve.errors import NerveError

MAX_SAID_CHARACTERS = 4 * 1024 * 1024

WORD = re.compile(r"\S+\s*")
VARIABLE = re.compile(r"\$\{([^}]*)\}")


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


class Stage(Protocol):
    """What a play acts on: the open runtime of a session."""

    capabilities: Capabilities
    model: str

    async def emit(self, event: AgentEvent) -> None: ...
    async def keep_capabilities(self, capabilities: Capabilities) -> None: ...
    async def history(self, max_characters: int) -> str: ...


class _Ended(Exception):
    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


@define(eq=False)
class Player:
    """One turn.  ``usage`` and ``mapped`` are what its end reports, however it ends."""

    _session: SessionSpec
    _effects: Effects
    _stage: Stage
    _interruption: Interruption
    _closed: tuple[Path, ...] = ()
    usage: Usage | None = field(default=None, init=False)
    mapped: bool = field(default=True, init=False)
    _result: str = field(default="", init=False)
    _said: int = field(default=0, init=False)

    async def play(self, steps: Iterable[Step]) -> Ending:
        """Play until the last step or one that ends the turn.  A cancel leaves it between two events."""
        try:
            for step in steps:
                try:
                    await self._step(step)
                except OSError as error:
                    return Failed(f"{step.pointer}: the runtime's own record can't be used: {error.strerror}")
                await trio.lowlevel.checkpoint()
        except _Ended as ended:
            return ended.ending
        return Completed()

    async def speak(self, text: str, pace: float) -> None:
        """Stream ``text`` as it stands, variables and all."""
        await self._stream(text, pace, TextAdded)

    async def _step(self, step: Step) -> None:
        match step:
            case Say(text=text, pace=pace):
                await self.speak(await self._expanded(step.pointer, text), pace)
            case Think(text=text, pace=pace):
                await self._stream(text, pace, ThinkingAdded)
            case UseTool():
                await self._use_tool(step)
            case WriteFile() | EditFile() | DeleteFile():
                await self._change_file(step)
            case AddUsage(usage=usage):
                self.usage = added(self.usage, usage)
            case ServeModel(model=model, downgrade=downgrade):
                await self._serve(model, downgrade)
            case Wait(seconds=seconds):
                await trio.sleep(seconds)
            case BeStuck(seconds=seconds):
                with self._interruption.deaf():
                    await trio.sleep(seconds)
            case ChangeCapabilities():
                await self._change_capabilities(step)
            case Fail(message=message):
                raise _Ended(Failed(message))
            case Crash(silent=silent):
                raise _Ended(Crashed(silent))
            case Unmap():
                self.mapped = False
            case Unavailable(pointer=pointer, name=name):
                raise _Ended(Failed(f"{pointer}: the step '{name}' is not available yet"))

    async def _stream(self, text: str, pace: float, event: Callable[[str], AgentEvent]) -> None:
        for number, word in enumerate(words(text)):
            if number and pace:
                await trio.sleep(pace)
            await self._stage.emit(event(word))

    async def _expanded(self, pointer: str, text: str) -> str:
        """``text`` with its variables replaced, once: what a variable holds is never searched for variables."""
        room = MAX_SAID_CHARACTERS - self._said
        names = VARIABLE.findall(text)
        known = {"result": self._result}
        try:
            if "history" in names:
                known["history"] = await self._stage.history(room)
            if len(text) + sum(len(known.get(name, "")) for name in names) > room:
                raise TooLong
        except TooLong:
            raise _Ended(Failed(f"{pointer}: 'say' makes the play say more than 4 MiB")) from None
        expanded = VARIABLE.sub(lambda found: known.get(found[1], ""), text)
        self._said += len(expanded)
        return expanded

    async def _use_tool(self, step: UseTool) -> None:
        tool_use_id = await self._start_tool(step.tool, step.input)
        gap = step.seconds / (len(step.output) + 1)
        for text in step.output:
            await trio.sleep(gap)
            await self._stage.emit(ToolOutputAdded(tool_use_id, text))
        await trio.sleep(gap)
        await self._finish_tool(tool_use_id, step.result, step.is_error)

    async def _start_tool(self, tool: str, tool_input: dict[str, Any]) -> str:
        tool_use_id = self._effects.new_id("tool_use")
        await self._stage.emit(ToolStarted(tool_use_id, tool, tool_input))
        return tool_use_id

    async def _finish_tool(self, tool_use_id: str, result: str, is_error: bool) -> None:
        self._result = result
        await self._stage.emit(ToolFinished(tool_use_id, result, is_error))

    async def _change_file(self, step: WriteFile | EditFile | DeleteFile) -> None:
        path = str(self._session.cwd / step.path) if "\0" not in step.path else step.path
        problem: str | None = None
        try:
            at = files.place(self._session.cwd, step.path, self._closed)
            path = str(at.path)
        except files.FileProblem as refused:
            problem = str(refused)
        tool, operation, tool_input = _as_tool(step, path)
        tool_use_id = await self._start_tool(tool, tool_input)
        if problem is not None:
            await self._finish_tool(tool_use_id, problem, True)
            return
        # A changed file whose change nobody was told of would be worse than an interrupt that is a moment late.
        with self._interruption.deaf():
            try:
                result = await self._changed(step, at, tool_use_id)
            except files.FileProblem as refused:
                await self._finish_tool(tool_use_id, str(refused), True)
                return
            await self._finish_tool(tool_use_id, result, False)
            await self._stage.emit(FileChanged(path, operation, tool_use_id))

    async def _changed(self, step: WriteFile | EditFile | DeleteFile, at: files.Place, tool_use_id: str) -> str:
        """Check, keep what is there, change; gives the result.  Raises FileProblem, and then nothing has changed."""
        blocking = self._effects.blocking
        scratch = f".{tool_use_id}.tmp"
        match step:
            case WriteFile(content=content):
                await blocking(files.check_writable, at)
                await self._keep(at.path)
                new = await blocking(files.write, at, content, scratch)
                return f"{'Created' if new else 'Wrote'} {at.path}"
            case EditFile(old=old, new=new_text):
                await blocking(files.check_edit, at, old)
                await self._keep(at.path)
                await blocking(files.edit, at, old, new_text, scratch)
                return f"Edited {at.path}"
            case DeleteFile():
                await blocking(files.check_deletable, at)
                await self._keep(at.path)
                await blocking(files.delete, at)
                return f"Deleted {at.path}"

    async def _keep(self, path: Path) -> None:
        try:
            await self._session.host.before_file_change(path)
        except NerveError as error:
            raise files.FileProblem(f"{path} was not changed: its content could not be kept ({error})") from None

    async def _serve(self, model: str, downgrade: bool) -> None:
        if model != self._stage.model:
            self._stage.model = model
            await self._stage.emit(ModelObserved(model, downgrade))

    async def _change_capabilities(self, step: ChangeCapabilities) -> None:
        given = {
            "stop_task": step.stop_task,
            "transcript": step.transcript,
            "output": step.output,
            "interrupt_spares_background": step.interrupt_spares_background,
        }
        changed = evolve(self._stage.capabilities, **{key: on for key, on in given.items() if on is not None})
        if changed != self._stage.capabilities:
            await self._stage.keep_capabilities(changed)
            await self._stage.emit(CapabilitiesChanged(changed))


def words(text: str) -> Iterator[str]:
    """The words of ``text``, each with the white space after it; joined they are ``text`` again."""
    lead = text[: len(text) - len(text.lstrip())]
    for found in WORD.finditer(text, len(lead)):
        yield lead + found[0]
        lead = ""
    if lead:
        yield lead


def added(so_far: Usage | None, more: Usage) -> Usage:
    """Several ``usage`` steps add up (decisions D44); the context window is the last one given."""
    if so_far is None:
        return more
    return Usage(
        so_far.input_tokens + more.input_tokens,
        so_far.output_tokens + more.output_tokens,
        so_far.cache_read_input_tokens + more.cache_read_input_tokens,
        so_far.cache_creation_input_tokens + more.cache_creation_input_tokens,
        _sum(so_far.cost_usd, more.cost_usd),
        more.max_context_tokens if more.max_context_tokens is not None else so_far.max_context_tokens,
        _sum(so_far.num_turns, more.num_turns),
    )


N = TypeVar("N", int, float)


def _sum(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _as_tool(step: WriteFile | EditFile | DeleteFile, path: str) -> tuple[str, FileOperation, dict[str, Any]]:
    match step:
        case WriteFile(content=content):
            return "Write", FileOperation.WRITE, {"file_path": path, "content": content}
        case EditFile(old=old, new=new):
            return "Edit", FileOperation.EDIT, {"file_path": path, "old_string": old, "new_string": new}
        case DeleteFile():
            return "Delete", FileOperation.DELETE, {"file_path": path}
