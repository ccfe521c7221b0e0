"""What the app is handed: its settings, and the two ports that it calls."""

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import field, frozen

from nerve.asgi.socket import Socket
from nerve.contract.caller import Caller, Credentials
from nerve.contract.route import AuthMode


def _unheard(operation_id: str, error: BaseException) -> None:
    """The default of ``HttpPolicy.on_undeclared``: the log has it already."""


@frozen(kw_only=True)
class HttpPolicy:
    """Settings of config.md 1.5 and 2.2 as the app needs them.  A malformed entry is a ValueError of ``App``.

    ``machine_names`` are the names this machine answers to when it is not bound to loopback.  ``body_seconds`` bounds
    the time that a whole request body may take, ``upload_seconds`` that of one which its handler reads as it comes, of
    which some has to come every ``upload_stall_seconds``.  ``on_undeclared`` is told the operation and the exception
    behind each reply that became ``internal``; tests fail on it.
    """

    bind_host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    machine_names: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_body_bytes: int = 10 * 1024 * 1024
    max_open_body_bytes: int = 64 * 1024  # of whoever has not shown a credential: a name and a password fit
    body_seconds: float = 30.0
    upload_seconds: float = 600.0
    upload_stall_seconds: float = 20.0
    auth_mode: AuthMode = AuthMode.LOCAL
    on_undeclared: Callable[[str, BaseException], None] = field(default=_unheard, repr=False)


class Admission(Protocol):
    async def admit(self, credentials: Credentials) -> Caller:
        """Who the credentials name.  ``peer`` and ``request_id`` of the caller are filled in afterwards.

        Raises NerveError: ``unauthenticated``, or ``identity_not_ready``.
        """
        ...


class SocketServer(Protocol):
    async def serve(self, caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        """One admitted WebSocket, until it ends.  Returning closes it with 1000, raising with 1011."""
        ...
