"""``run``: a real child process in the place of what a shell's play says, its output in the shell's file."""

import logging
import signal
from pathlib import Path

import trio
from attrs import define, field

from nerve.adapters.scripted import output_files
from nerve.adapters.scripted.acts.part import Part
from nerve.adapters.scripted.cast import Member, Outcome
from nerve.adapters.scripted.limits import MAX_SECONDS
from nerve.adapters.scripted.program_output import MAX_BYTES, ProgramOutput
from nerve.adapters.scripted.steps import RunShell
from nerve.adapters.subagents import AgentOutcome, AgentProgressed, AgentStarted
from nerve.contract.generated.entities import AgentKind
from nerve.processes import Child, Children, Marker, StillThere

log = logging.getLogger(__name__)

TOLD_SECONDS = 1.0  # between two words that it is at work


@define(eq=False)
class Program:
    """``begun`` is set once it is known whether it could be started; ``refusal`` then says why not, for people.

    ``_agent_id`` is its record's: the process and all that come of it carry it (decisions D12).
    """

    _part: Part
    _member: Member
    _step: RunShell
    _children: Children
    _agent_id: str
    _task_id: str
    _task_type: str
    begun: trio.Event = field(factory=trio.Event, init=False)
    refusal: str | None = field(default=None, init=False)
    _output: ProgramOutput = field(init=False)
    _remains: str | None = field(default=None, init=False)
    _told: float = field(default=-TOLD_SECONDS, init=False)

    async def run(self) -> Outcome:
        """Until it has ended, and with it all that it started.  However this is left, no process is left behind."""
        blocking = self._part.effects.blocking
        try:
            path = await blocking(output_files.create, self._part.stage.native_id, self._task_id)
            self._output = self._opened(path)
            try:
                return await self._follow(await self._start())
            finally:
                self._output.close()
        except CannotStart as error:
            self.refusal = str(error)
            return Outcome(AgentOutcome.SPAWN_FAILED, error=self.refusal)
        finally:
            self.begun.set()

    def _opened(self, path: Path | None) -> ProgramOutput:
        try:
            return ProgramOutput.open(path, self._part.effects.blocking, self._at_work)
        except OSError as error:
            raise CannotStart(error) from None

    async def _start(self) -> Child:
        """Nothing waits between the start and this one's return.  Raises CannotStart."""
        marker = Marker(self._children.home_id, self._part.session.session_id, self._agent_id)
        assert self._step.run is not None
        try:
            return await self._children.start(self._step.run, self._part.session.cwd, marker, self._output.writing)
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
            raise CannotStart(error) from None
        finally:
            self._output.close_writing()

    async def _follow(self, child: Child) -> Outcome:
        code = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._output.keep, name=f"output of {self._member.ref}")
            try:
                await self._tell_start()
                with trio.move_on_after(MAX_SECONDS), self._output.room:
                    code = await child.wait()
            finally:
                await self._end(child)
                await self._output.last_words()
        return self._outcome(code)

    async def _tell_start(self) -> None:
        started = AgentStarted(
            ref=self._member.ref, task_id=self._task_id, task_type=self._task_type, output_path=self._output.path
        )
        await self._part.cast.emit(started)
        self.begun.set()

    async def _end(self, child: Child) -> None:
        try:
            await child.end()
        except StillThere as still:
            log.error("session %s: %s", self._part.session.session_id, still)
            self._remains = str(still)
            self._member.when_stopped = self._failed(self._remains)

    async def _at_work(self) -> None:
        """Once a second at most; of a monitor also what it says."""
        if trio.current_time() >= self._told + TOLD_SECONDS:
            self._told = trio.current_time()
            news = self._output.last_line if self._step.kind is AgentKind.MONITOR else None
            await self._part.cast.emit(AgentProgressed(ref=self._member.ref, summary=news))

    def _outcome(self, code: int | None) -> Outcome:
        """``code`` None: it was ended before it ended by itself."""
        if self._remains is not None:
            return self._failed(self._remains)
        if self._output.full:
            return self._failed(f"It wrote more than {MAX_BYTES // 1024**2} MiB.")
        if code is None:
            return self._failed("A play lasts at most one hour in all.")
        if code:
            return self._failed(f"Exit code {code}" if code > 0 else f"Ended by {_signal(-code)}")
        return Outcome(AgentOutcome.COMPLETED, "Exit code 0" if self._step.background else self._output.text)

    def _failed(self, reason: str) -> Outcome:
        said = None if self._step.background else self._output.text
        return Outcome(AgentOutcome.FAILED, said or reason, reason)


class CannotStart(Exception):
    def __init__(self, error: OSError | ValueError) -> None:
        super().__init__(f"It can't be started: {getattr(error, 'strerror', None) or error}.")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # one of the real-time signals
