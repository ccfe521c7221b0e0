"""Programs that do not want to end, for the plays of `run`, and what lives of them on this machine."""

import sys
from collections.abc import Sequence
from typing import Any

import psutil

HOME_VARIABLE = "NERVE_HOME_ID"
_WAITS = "print('up', flush=True); time.sleep(3600)"
_DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
# Twice forked, so nobody's child, and in a session of its own; deaf as well.
_DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("up", flush=True)
    time.sleep(3600)
os.wait()
"""
_KINDS: tuple[Sequence[str], ...] = (
    ("sh", "-c", "echo up; exec sleep 3600"),
    (sys.executable, "-c", _DEAF + _WAITS),
    (sys.executable, "-c", _DAEMON + "time.sleep(3600)"),
    (sys.executable, "-c", "import os, time; print('up', flush=True); os.closerange(0, 3); time.sleep(3600)"),
    ("sh", "-c", "echo up; (trap '' TERM; sleep 3600) & while :; do sleep 0.2; echo more; done"),
)


def shells(count: int) -> list[dict[str, Any]]:
    """Steps of a play, of every kind in turn."""
    return [
        {"monitor" if n % 5 == 4 else "shell": f"shell-{n}", "run": list(_KINDS[n % len(_KINDS)])} for n in range(count)
    ]


def marks_below(pid: int) -> set[str]:
    return {mark for process in psutil.Process(pid).children(recursive=True) if (mark := _mark(process)) is not None}


def living(home_id: str) -> list[int]:
    """What carries the home's mark and has not ended."""
    return [process.pid for process in psutil.process_iter() if _mark(process) == home_id]


def children_of(pid: int) -> list[int]:
    """All that descends from a process, the dead that nobody has waited for included."""
    return [process.pid for process in psutil.Process(pid).children(recursive=True)]


def _mark(process: psutil.Process) -> str | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.environ().get(HOME_VARIABLE)
    except (psutil.Error, OSError):
        return None
