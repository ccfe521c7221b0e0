"""Where log lines go and what they look like: to stderr, one line each; a traceback follows its line."""

import logging
import sys
import time
from pathlib import Path

from nerve.cli.log_file import RotatingStderr, is_stderr


class LineFormatter(logging.Formatter):
    """``2026-02-27T02:00:00.000Z INFO nerve.runtime: message``, in UTC."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")


def log_to_stderr(log_file: Path, *, verbose: bool) -> None:
    """Everything of ours from INFO on (``verbose``: DEBUG), of other packages only warnings.

    Where stderr is the daemon's own log file, that is kept to its size.
    """
    handler = RotatingStderr(log_file) if is_stderr(log_file) else logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("nerve").setLevel(logging.DEBUG if verbose else logging.INFO)
    # A terminal that is gone is no reason to print tracebacks about it.
    logging.raiseExceptions = False
