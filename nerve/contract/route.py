"""The tiny types that a generated row of the route table is made of."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar

from attrs import field, frozen

from nerve.contract.generated.errors import ErrorCode, ErrorKind

P = TypeVar("P")
B = TypeVar("B")
R = TypeVar("R")
S = TypeVar("S")


class AuthPolicy(StrEnum):
    """Who may call an operation (``x-nerve.auth`` in spec/rest)."""

    OPEN = "open"  # no credential is looked at
    ANY = "any"  # a person, the system principal or an MCP token
    PERSON = "person"  # a signed-in person; a system or MCP credential is 403


class AuthMode(StrEnum):
    LOCAL = "local"
    EXTERNAL = "external"


class Work(StrEnum):
    """What leaving does to an operation: a write once begun runs to its end, everything else is cancelled."""

    READ = "read"
    WRITE = "write"
    CHECK = "check"
    STREAM = "stream"


class ReplyKind(StrEnum):
    JSON = "json"
    HTML = "html"
    DOCUMENT = "document"  # JSON that is stored as bytes already
    EVENT_STREAM = "event_stream"
    FILE = "file"


@frozen
class NoParams:
    """Of an operation with neither path nor query parameters."""


@frozen
class NoBody:
    """Of an operation that takes no body.  A body sent all the same is read within its bound and dropped."""


@frozen(eq=False)
class BodyStream:
    """A body that its handler reads as it comes (``x-nerve.body`` in spec/rest is ``stream``).

    ``content_type`` is the header as it was sent.  Asking ``parts`` for the next one waits for the client, within the
    bounds of the operation, and raises the NerveError ``body_too_large`` or ``invalid_request``; an exception that
    comes from a client that left has to be let through.
    """

    content_type: str
    parts: AsyncIterator[bytes] = field(repr=False)


@frozen
class Route(Generic[P, B, R]):
    """One operation of spec/rest, as data.  Literal segments of ``path`` win over ``{parameters}``."""

    operation_id: str
    method: str
    path: str
    params: type[P]
    body: type[B]
    body_required: bool
    replies: Mapping[int, Any]  # status -> model class (or a union of them)
    kind: ReplyKind
    auth: AuthPolicy
    refusal: ErrorCode  # what a system or MCP credential is told where ``auth`` is PERSON
    modes: frozenset[AuthMode]
    work: Work
    any_host: bool
    errors: Mapping[ErrorCode, ErrorKind]  # the common ones included; the kind is this operation's form of the body
    headers: tuple[str, ...] = ()  # parameters that come as request headers
    media_type: str = "application/json"  # of the body
    max_body_bytes: int | None = None  # instead of the general bound

    @property
    def success(self) -> int:
        """The status of a handler's plain return value: the first one that spec/ lists."""
        status: int = next(iter(self.replies))
        return status


@frozen
class Reply(Generic[R]):
    """What a handler returns when the status is not the operation's first one, or to add headers."""

    body: R
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()


@frozen
class Document:
    """A reply whose bytes exist already (``ReplyKind.DOCUMENT`` and ``HTML``)."""

    content: bytes = field(repr=False)
    media_type: str


@frozen(eq=False)
class EventStream:
    """A reply that goes on (``ReplyKind.EVENT_STREAM``).

    ``run`` is called with what sends a piece, once the reply has begun, and lasts as long as the stream; it is
    cancelled when the client leaves or takes nothing for too long.
    """

    run: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]]


@frozen(eq=False)
class FileReply:
    """A reply of ``size`` bytes that are read while it is sent (``ReplyKind.FILE``).

    ``read`` gives a piece from an offset on, b"" at the end.  ``close`` is called once the reply is over, however it
    ended; a reply that never begins is only dropped.  ``inline``: a browser may show it instead of saving it.
    """

    size: int
    media_type: str
    filename: str
    read: Callable[[int], Awaitable[bytes]] = field(repr=False)
    close: Callable[[], None] = field(repr=False)
    inline: bool = False


@frozen
class Endpoint(Generic[S]):
    """A route and the handler that serves it; ``S`` is opaque to the app."""

    route: Route[Any, Any, Any]
    handler: Callable[[S, Any, Any, Any], Awaitable[Any]]
