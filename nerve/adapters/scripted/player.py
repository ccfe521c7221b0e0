"""Plays the steps of a turn or of a sub-agent, one after the other; what a step does is said in ``acts``."""

from collections.abc import Iterable
from pathlib import Path

import trio
from attrs import define, field

from nerve.adapters.protocol import SessionSpec, TextAdded, Usage
from nerve.adapters.scripted import files
from nerve.adapters.scripted.acts import agents, asking, file_changes, runtime, shells, speech, tools, workflows
from nerve.adapters.scripted.acts.part import Completed, Crashed, Ended, Ending, Failed, Part, Stage
from nerve.adapters.scripted.cast import Cast, Member
from nerve.adapters.scripted.interruption import Interruption
from nerve.adapters.scripted.steps import (
    AddUsage,
    AskQuestions,
    BeStuck,
    CallTool,
    ChangeCapabilities,
    Crash,
    DeleteFile,
    EditFile,
    Fail,
    ProposePlan,
    RequestApproval,
    RunShell,
    RunWorkflow,
    Say,
    ServeModel,
    SpawnAgent,
    Step,
    Think,
    Unmap,
    UseTool,
    Wait,
    WriteFile,
)
from nerve.effects import Effects
from nerve.processes import Children


@define(eq=False)
class Player:
    """One play.  ``usage`` and ``mapped`` are what the end of its turn reports, however it ends."""

    _session: SessionSpec
    _effects: Effects
    _stage: Stage
    _interruption: Interruption
    _cast: Cast
    _plan_file: files.Place
    _closed: tuple[Path, ...] = ()
    _children: Children | None = None
    _member: Member | None = None
    _part: Part = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._part = Part(
            session=self._session,
            effects=self._effects,
            stage=self._stage,
            interruption=self._interruption,
            cast=self._cast,
            play=self._play_nested,
            play_as=self._play_as,
            plan_file=self._plan_file,
            member=self._member,
            closed=self._closed,
            children=self._children,
        )

    @property
    def usage(self) -> Usage | None:
        return self._part.usage

    @property
    def mapped(self) -> bool:
        return self._part.mapped

    async def play(self, steps: Iterable[Step]) -> Ending:
        """Play until the last step or one that ends the play.  A cancel leaves it between two events."""
        try:
            await self._play_nested(steps)
        except Ended as ended:
            return ended.ending
        return Completed()

    async def speak(self, text: str, pace: float) -> None:
        """Stream ``text`` as it stands, variables and all."""
        await speech.stream(self._part, text, pace, TextAdded)

    async def _play_as(self, member: Member, stage: Stage, steps: Iterable[Step]) -> Ending:
        other = Player(
            self._session,
            self._effects,
            stage,
            member.interruption,
            self._cast,
            self._plan_file,
            self._closed,
            self._children,
            member,
        )
        return await other.play(steps)

    async def _play_nested(self, steps: Iterable[Step]) -> None:
        """Raises Ended where a step ends the play."""
        for step in steps:
            try:
                await self._step(step)
            except OSError as error:
                reason = f"{step.pointer}: the runtime's own record can't be used: {error.strerror}"
                raise Ended(Failed(reason)) from None
            await self._stage.step_over(self._part.usage)
            await trio.lowlevel.checkpoint()

    async def _step(self, step: Step) -> None:
        part = self._part
        match step:
            case Say() | Think():
                await speech.perform(part, step)
            case UseTool():
                await tools.perform(part, step)
            case CallTool():
                await tools.call(part, step)
            case WriteFile() | EditFile() | DeleteFile():
                await file_changes.perform(part, step)
            case AskQuestions() | ProposePlan() | RequestApproval():
                await asking.perform(part, step)
            case AddUsage() | ServeModel() | ChangeCapabilities() | Unmap():
                await runtime.perform(part, step)
            case SpawnAgent():
                await agents.perform(part, step)
            case RunShell():
                await shells.perform(part, step)
            case RunWorkflow():
                await workflows.perform(part, step)
            case Wait(seconds=seconds):
                await trio.sleep(seconds)
            case BeStuck(seconds=seconds):
                with self._interruption.deaf():
                    await trio.sleep(seconds)
            case Fail(message=message):
                raise Ended(Failed(message))
            case Crash(silent=silent):
                raise Ended(Crashed(silent))
