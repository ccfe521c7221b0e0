"""What can go wrong between a client and a server."""

import os
import ssl
from typing import Any

from nerve.contract.generated.errors import ErrorCode

UNAUTHENTICATED = 4001  # close code: the credential names nobody
NOT_ALLOWED = 1008  # close code: the account was disabled
FINAL_CODES = frozenset({UNAUTHENTICATED, NOT_ALLOWED})


class ApiError(Exception):
    """The server answered with an error.

    ``code`` is its name in spec/errors.yaml, None for one that this version does not know.  ``message`` is the server's
    sentence, ``body`` the whole parsed answer (None if it was no JSON), ``retry_after`` in seconds where it says so.
    """

    def __init__(
        self, status: int, code: ErrorCode | None, message: str, body: Any = None, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.body = body
        self.retry_after = retry_after


class Unreachable(Exception):
    """No answer came: no connection, a lost one, too slow, or nothing that speaks this protocol."""


class SocketEnded(Exception):
    """The WebSocket is over or did not open.  ``code`` is the server's close code, None where the line was lost."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code

    @property
    def final(self) -> bool:
        """Whether connecting again with the same credential can't help."""
        return self.code in FINAL_CODES


class SessionGone(Exception):
    """There is no such session (any more)."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"there is no session {session_id}")
        self.session_id = session_id


class TurnRefused(Exception):
    """The message did not become a turn; the text says why."""


class TurnLost(Exception):
    """The turn is over, but how it ended came to pass while the line was lost and can't be had any more.

    The session's messages tell what was said.
    """


def reason_of(error: BaseException) -> str:
    """Why there is no connection, in words: libraries hide the system's reason behind errors of their own."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({found.verify_message})"
        if isinstance(found, OSError) and found.errno is not None:
            return os.strerror(found.errno) if found.errno > 0 else str(found.strerror)
        group = found.exceptions[0] if isinstance(found, BaseExceptionGroup) else None
        found = group or found.__cause__ or found.__context__
    return str(error) or type(error).__name__
