"""One look at the machine's processes.  A process is a pid *and* its time of birth: a pid alone is reused."""

import errno
import os
import signal
from collections.abc import Callable, Iterable

import psutil
from attrs import evolve, frozen

from nerve.processes.marker import Marker

OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)


@frozen
class Seen:
    """A process as it was seen.  ``born`` is the system's own figure, only good for comparing; a zombie has no mark.

    ``session`` is the process number of its session's leader and ``leader_born`` that one's birth, None once it is
    gone: as long as a session has members its number is not given to another process.
    """

    pid: int
    parent: int
    session: int
    born: float
    zombie: bool
    marker: Marker | None
    leader_born: float | None = None


@frozen
class Census:
    """Everything of this user that ran at one moment, this process left out."""

    processes: tuple[Seen, ...]

    def family(self, belongs: Callable[[Seen], bool]) -> list[Seen]:
        """Those that ``belongs`` names, and all their descendants; zombies are gone already."""
        wanted = {seen.pid for seen in self.processes if belongs(seen)}
        grown = True
        while grown:
            more = {seen.pid for seen in self.processes if seen.parent in wanted} - wanted
            wanted |= more
            grown = bool(more)
        return [seen for seen in self.processes if seen.pid in wanted and not seen.zombie]


def look() -> Census:
    """Reads the process table: a few milliseconds per hundred processes.  Raises OSError out of descriptors."""
    own, user = os.getpid(), os.getuid()
    tried = (_seen(process, user) for process in psutil.process_iter() if process.pid != own)
    seen = [each for each in tried if each is not None]
    births = {each.pid: each.born for each in seen}
    return Census(tuple(evolve(each, leader_born=births.get(each.session)) for each in seen))


def _seen(process: psutil.Process, user: int) -> Seen | None:
    try:
        with process.oneshot():
            if process.uids().effective != user:
                return None
            zombie = process.status() == psutil.STATUS_ZOMBIE
            return Seen(
                process.pid,
                process.ppid(),
                os.getsid(process.pid),
                process.create_time(),
                zombie,
                None if zombie else _marker(process),
            )
    except (psutil.Error, ProcessLookupError):
        return None  # gone meanwhile


def _marker(process: psutil.Process) -> Marker | None:
    try:
        return Marker.found_in(process.environ())
    except psutil.Error:
        return None  # not readable: it changed its user
    except OSError as error:
        if error.errno in OUT_OF_FILES:
            raise
        return None


def ancestors() -> set[int]:
    """The numbers of the processes that this one descends from."""
    return {process.pid for process in psutil.Process().parents()}


def born(pid: int) -> float | None:
    """When the process with this number was born; None if there is none."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def send(processes: Iterable[Seen], number: signal.Signals) -> None:
    """Signal exactly these processes; another one that took a number over meanwhile gets nothing."""
    for seen in processes:
        try:
            _send(seen, number)
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue


def _send(seen: Seen, number: signal.Signals) -> None:
    if not hasattr(os, "pidfd_open"):
        process = psutil.Process(seen.pid)
        if process.create_time() == seen.born:
            process.send_signal(number)
        return
    # Held open, the descriptor names the process that the check below has seen, or nothing.
    descriptor = os.pidfd_open(seen.pid)
    try:
        if born(seen.pid) == seen.born:
            signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)
