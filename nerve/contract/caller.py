"""Who is asking: made once at admission, handed to every handler."""

from enum import StrEnum

from attrs import field, frozen


class CredentialKind(StrEnum):
    """The token kinds of gaps.md section 1, as the contract knows them."""

    SESSION = "session"
    LEGACY = "legacy"
    SYSTEM = "system"
    MCP = "mcp"
    EXTERNAL = "external"
    NONE = "none"  # an open operation: nothing was looked at


@frozen
class Credentials:
    """What a request carried, unchecked.  Sources in order: header, cookie, query."""

    bearer: str | None = field(default=None, repr=False)
    cookie: str | None = field(default=None, repr=False)
    query: str | None = field(default=None, repr=False)
    actor_context: str | None = field(default=None, repr=False)  # external mode: X-Nerve-Actor-Context
    peer: str = ""

    @property
    def ambient(self) -> bool:
        """True if a browser may have sent the credential by itself, so that Origin has to be checked."""
        return self.actor_context is not None or (self.bearer is None and self.cookie is not None)


@frozen
class Caller:
    """One admitted request or socket.

    ``actor_id`` is who does it, ``cause_id`` on whose behalf (they differ only for an MCP token that is bound to a
    session).  ``account_id`` is None for the system principal and in external mode.  ``refreshed`` is a replacement
    token that a successful REST reply carries in ``X-Nerve-Token``.
    """

    actor_id: str | None
    kind: CredentialKind
    account_id: str | None = None
    cause_id: str | None = None
    refreshed: str | None = field(default=None, repr=False)
    bound_session_id: str | None = None
    peer: str = ""
    request_id: str = ""

    @property
    def is_person(self) -> bool:
        return self.kind in (CredentialKind.SESSION, CredentialKind.LEGACY, CredentialKind.EXTERNAL)


NOBODY = Caller(actor_id=None, kind=CredentialKind.NONE)
