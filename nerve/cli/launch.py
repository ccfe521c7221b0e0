"""Starting the daemon in the background: a detached ``start --foreground`` whose output is the log."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from nerve.cli.daemon import DaemonRecord, record_of
from nerve.cli.health import generation_at
from nerve.cli.invocation import Failed
from nerve.cli.log_file import open_log
from nerve.config import ConfigError, Paths
from nerve.config.homes import prepare
from nerve.processes import is_marker

READY_SECONDS = 30.0
_STEP_SECONDS = 0.05
_TAIL_BYTES = 8192


@frozen
class Launch:
    """How to start: the same options as on the command line."""

    flag_dir: Path | None = None
    verbose: bool = False
    host: str | None = None
    port: int | None = None

    def command(self) -> list[str]:
        # -P: a directory that happens to hold a click.py must not become part of the daemon.
        words = [sys.executable, "-P", "-m", "nerve"]
        if self.flag_dir is not None:
            words += ["--config-dir", str(self.flag_dir.absolute())]
        if self.verbose:
            words.append("--verbose")
        words += ["start", "--foreground"]
        if self.host is not None:
            words += ["--host", self.host]
        if self.port is not None:
            words += ["--port", str(self.port)]
        return words


def launch(how: Launch, paths: Paths, *, sleep: Callable[[float], None] = time.sleep) -> DaemonRecord:
    """Start the daemon; returns once it answers, within ``READY_SECONDS``.  Raises Failed with the reason."""
    try:
        prepare(paths)
    except ConfigError as error:
        raise Failed(str(error)) from None
    try:
        log = open_log(paths.log_file)
    except OSError as error:
        raise Failed(f"{paths.log_file} can't be written: {error.strerror}") from None
    try:
        begin = os.fstat(log).st_size
        # An agent that starts a daemon must not have it ended as one of its own processes.
        environment = {name: value for name, value in os.environ.items() if not is_marker(name)}
        child = subprocess.Popen(
            how.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment
        )
    finally:
        os.close(log)
    return _ready(child, paths, begin, sleep)


def _ready(child: "subprocess.Popen[bytes]", paths: Paths, begin: int, sleep: Callable[[float], None]) -> DaemonRecord:
    for _ in range(round(READY_SECONDS / _STEP_SECONDS)):
        if (status := child.poll()) is not None:
            reason = _last_line(paths.log_file, begin) or f"it ended with status {status}"
            raise Failed(f"the daemon did not start: {reason} (log: {paths.log_file})")
        record = record_of(paths, child.pid)
        if record is not None and generation_at(record.address) == record.generation:
            return record
        sleep(_STEP_SECONDS)
    raise Failed(
        f"the daemon (pid {child.pid}) does not answer after {READY_SECONDS:.0f} s; "
        f"it is left to go on, its log is {paths.log_file}"
    )


def _last_line(log_file: Path, begin: int) -> str:
    """The last line that was written after ``begin``: where the daemon says why it can't start."""
    with log_file.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        begin = begin if begin <= end else 0  # another file has been begun meanwhile
        file.seek(max(begin, end - _TAIL_BYTES))
        lines = file.read(_TAIL_BYTES).decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("nerve: ") if lines else ""
