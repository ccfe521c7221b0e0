"""Starting child processes and ending them with everything that came of them, within three seconds (decisions D11)."""

import logging
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio
from attrs import define, field, frozen

from nerve.effects import Blocking
from nerve.processes import census
from nerve.processes.census import Census, Seen
from nerve.processes.marker import Marker
from nerve.processes.orphans import Orphans

log = logging.getLogger(__name__)

TERM_SECONDS = 1.0  # from SIGTERM to SIGKILL
END_SECONDS = 3.0  # from the request until the last one is gone
LOOK_SECONDS = 0.1  # between two looks while something ends
SWEEP_SECONDS = 5.0  # between two looks for orphans that wait to be reaped


class StillThere(Exception):
    """Processes that even SIGKILL did not end in time; ``pids`` names them."""

    def __init__(self, pids: Sequence[int]) -> None:
        super().__init__(f"processes {', '.join(map(str, pids))} can't be ended")
        self.pids = tuple(pids)


@define(eq=False)
class _Look:
    done: trio.Event = field(factory=trio.Event)
    census: Census | None = None
    failure: OSError | None = None


@frozen(eq=False)
class Child:
    """A process that was started here, leader of its own session and group."""

    marker: Marker
    born: float
    _process: trio.Process
    _children: "Children"

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        """Its exit code (minus the signal's number if it was killed), once it ended."""
        return await self._process.wait()

    async def end(self) -> None:
        """Terminate it with all that came of it, kill what is left after a second; all are gone and reaped on return.

        Also for a child that ended by itself: what it left running goes too.  Cannot be cancelled, takes three seconds
        at most.  Raises StillThere.  Where the process table can't be read, its group is killed without a look.
        """
        with trio.CancelScope(shield=True):
            try:
                await self._children.end(self.belongs)
            except OSError as unreadable:
                log.error("processes can't be looked at (%s); the group of %d is killed", unreadable, self.pid)
                self._kill_group()
            finally:
                await self.reap()

    def _kill_group(self) -> None:
        if self._process.returncode is None:  # not waited for yet, so its number is its own
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def reap(self) -> None:
        """Once it is dead: forget it, here and in the system's table."""
        with trio.move_on_after(LOOK_SECONDS):
            await self._process.wait()
        if self._process.returncode is not None:
            self._children.forget(self)

    def belongs(self, seen: Seen) -> bool:
        """Whether a process carries this child's mark or is in the session that the child leads."""
        return seen.marker == self.marker or (seen.session == self.pid and seen.leader_born in (None, self.born))


@define(eq=False)
class Children:
    """All child processes of one house.  ``home_id`` marks them, ``environment`` is what they get besides the mark."""

    home_id: str
    _environment: Mapping[str, str]
    _blocking: Blocking
    _nursery: trio.Nursery
    _living: set[Child] = field(factory=set)
    _used: bool = False  # a look at the whole machine is not worth it where nothing was ever started
    _orphans: Orphans = field(factory=Orphans)
    _coming: _Look | None = None
    _looking: trio.Lock = field(factory=trio.Lock)  # one at a time, so that the many who wait share the next

    async def start(self, argv: Sequence[str], cwd: Path, marker: Marker, output: int) -> Child:
        """Start a program; its standard output and error go to the descriptor ``output``, it has no input.

        Raises OSError if it can't be started.  The caller ends every child it started (``Child.end``).
        """
        self._used = True
        with trio.CancelScope(shield=True):  # a child that nobody holds could not be ended
            process = await trio.lowlevel.open_process(
                list(argv),
                cwd=cwd,
                env={**self._environment, **marker.environment()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                born = census.born(process.pid)
            except OSError:
                process.kill()
                await process.wait()
                raise
            assert born is not None, "nobody else waits for it, so even dead it is there"
            child = Child(marker, born, process, self)
            self._living.add(child)
        return child

    def forget(self, child: Child) -> None:
        self._living.discard(child)

    async def end(self, belongs: Callable[[Seen], bool]) -> None:
        """End every process that ``belongs`` names, and their descendants.  Raises StillThere, OSError."""
        asked: set[tuple[int, float]] = set()

        def follows(seen: Seen) -> bool:
            # Who was found once is followed, also when its parent is gone by now and it never had a mark.
            return belongs(seen) or (seen.pid, seen.born) in asked

        begun = trio.current_time()
        killed = False
        while left := (await self.look()).family(follows):
            waited = trio.current_time() - begun
            if waited < TERM_SECONDS:
                # Each is asked once; one that was born meanwhile is asked as well.
                census.send([s for s in left if (s.pid, s.born) not in asked], signal.SIGTERM)
                asked.update((s.pid, s.born) for s in left)
            elif killed and waited >= END_SECONDS:  # a slow look must not be taken for a process that stays
                raise StillThere([seen.pid for seen in left])
            else:
                census.send(left, signal.SIGKILL)
                killed = True
            await trio.sleep(LOOK_SECONDS)

    async def end_survivors(self, begun: float | None = None) -> int:
        """End what carries this home's mark and was born before ``begun`` (None: before this process); how many.

        What can't be ended is logged: the house opens all the same.
        """
        begun = begun or census.born(os.getpid())
        assert begun is not None

        # Who starts a daemon inside what an earlier one left does not mean to end himself.
        ancestors = await self._blocking(census.ancestors)

        def survives(seen: Seen) -> bool:
            marked = seen.marker is not None and seen.marker.home_id == self.home_id
            return marked and seen.born < begun and seen.pid not in ancestors

        found = (await self.look()).family(survives)
        try:
            await self.end(survives)
        except StillThere as still:
            log.error("left over from the last process: %s", still)
        return len(found)

    async def end_all(self) -> None:
        """The house closes: whatever carries its mark goes.  Raises StillThere."""
        if not self._used:
            return
        try:
            await self.end(lambda seen: seen.marker is not None and seen.marker.home_id == self.home_id)
        finally:
            for child in tuple(self._living):
                await child.reap()

    async def look(self) -> Census:
        """A look that begins after this call.  Whoever asks while one is about to begin shares it.

        Raises OSError where no file can be opened.
        """
        if self._coming is None:
            self._coming = _Look()
            self._nursery.start_soon(self._take, self._coming, name="look at processes")
        coming = self._coming
        await coming.done.wait()
        if coming.failure is not None:
            raise OSError(coming.failure.errno, coming.failure.strerror)
        assert coming.census is not None
        return coming.census

    async def _take(self, coming: _Look) -> None:
        async with self._looking:
            self._coming = None
            own = {child.pid for child in self._living}
            try:
                coming.census = await self._blocking(census.look)
            except OSError as error:
                coming.failure = error
            else:
                self._orphans.reap(coming.census, own, trio.current_time())
        coming.done.set()

    async def sweep(self) -> None:
        """Reap orphans that came to this process as their adopter, for as long as the house lives."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            if self._living or self._orphans.expected:
                with suppress(OSError):  # the next one may work
                    await self.look()


@asynccontextmanager
async def open_children(home_id: str, environment: Mapping[str, str], blocking: Blocking) -> AsyncIterator[Children]:
    """Leaving it ends all child processes of the house."""
    async with trio.open_nursery() as nursery:
        children = Children(home_id, environment, blocking, nursery)
        nursery.start_soon(children.sweep, name="orphans")
        try:
            yield children
        finally:
            with trio.CancelScope(shield=True):
                try:
                    await children.end_all()
                except (StillThere, OSError) as left:
                    log.error("the house closes, and %s", left)
            nursery.cancel_scope.cancel()
