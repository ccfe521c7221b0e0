"""A small house to try the app with: hand-built routes, a table of tokens, sockets that run what a test gives them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any

from attrs import define, evolve, field, frozen

from nerve.asgi import App, HttpPolicy, Socket
from nerve.contract.caller import Caller, CredentialKind, Credentials
from nerve.contract.generated.errors import ERRORS
from nerve.contract.route import AuthMode, AuthPolicy, Endpoint, NoBody, NoParams, ReplyKind, Route, Work
from nerve.errors import ErrorCode, NerveError
from tests.asgi_client import AsgiClient

COMMON = (
    ErrorCode.INTERNAL,
    ErrorCode.WRONG_HOST,
    ErrorCode.UNAUTHENTICATED,
    ErrorCode.IDENTITY_NOT_READY,
    ErrorCode.PERSON_REQUIRED,
    ErrorCode.FOREIGN_ORIGIN,
    ErrorCode.BODY_TOO_LARGE,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
    ErrorCode.INVALID_REQUEST,
)

PEOPLE = {
    "alice": Caller(actor_id="act_alice", kind=CredentialKind.SESSION, account_id="acc_alice"),
    "worn": Caller(actor_id="act_alice", kind=CredentialKind.SESSION, refreshed="fresh"),
    "machine": Caller(actor_id="act_system", kind=CredentialKind.SYSTEM),
    "early": None,
}


@frozen(kw_only=True)
class Thing:
    id: str
    note: str = "none"


@frozen(kw_only=True)
class NewThing:
    id: str = field(metadata={"min_length": 1, "max_length": 64})
    note: str = "none"


@frozen(kw_only=True)
class Options:
    loud: bool = False


@frozen(kw_only=True)
class Page:
    limit: int = field(default=10, metadata={"minimum": 1, "maximum": 50, "clamp": True})
    word: str = ""


@frozen(kw_only=True)
class ThingPath:
    thing_id: str


@frozen(kw_only=True)
class PartPath:
    thing_id: str
    part_id: str


def route(method: str, path: str, **changes: Any) -> Route[Any, Any, Any]:
    """A route that anyone with a credential may call, reading nothing and declaring the common errors."""
    work = Work.READ if method == "GET" else Work.WRITE
    errors = {code: ERRORS[code].kind for code in (*COMMON, *changes.pop("codes", ()))}
    made: Route[Any, Any, Any] = Route(
        operation_id=f"test.{method.lower()}",
        method=method,
        path=path,
        params=NoParams,
        body=NoBody,
        body_required=changes.get("body", NoBody) is not NoBody,
        replies={200: Thing},
        kind=ReplyKind.JSON,
        auth=AuthPolicy.ANY,
        refusal=ErrorCode.PERSON_REQUIRED,
        modes=frozenset(AuthMode),
        work=work,
        any_host=False,
        errors=errors,
    )
    return evolve(made, **changes)


@define
class Stage:
    """The services of this house: remembers what its handlers were called with."""

    calls: list[tuple[Caller, Any, Any]] = field(factory=list)

    @property
    def last(self) -> tuple[Caller, Any, Any]:
        return self.calls[-1]


Handler = Callable[[Stage, Caller, Any, Any], Awaitable[Any]]


async def answer_thing(stage: Stage, caller: Caller, params: Any, body: Any) -> Thing:
    stage.calls.append((caller, params, body))
    return Thing(id="t1")


def returning(result: Any) -> Handler:
    async def handler(stage: Stage, caller: Caller, params: Any, body: Any) -> Any:
        stage.calls.append((caller, params, body))
        if isinstance(result, BaseException):
            raise result
        return result

    return handler


def endpoint(method: str, path: str, handler: Handler = answer_thing, **changes: Any) -> Endpoint[Stage]:
    return Endpoint(route(method, path, **changes), handler)


class TokenTable:
    """Admission by a table: an unknown token names nobody, ``early`` comes before identity is ready."""

    def __init__(self) -> None:
        self.seen: list[Credentials] = []

    async def admit(self, credentials: Credentials) -> Caller:
        self.seen.append(credentials)
        token = credentials.actor_context or credentials.bearer or credentials.cookie or credentials.query
        if token not in PEOPLE:
            raise NerveError(ErrorCode.UNAUTHENTICATED)
        caller = PEOPLE[token]
        if caller is None:
            raise NerveError(ErrorCode.IDENTITY_NOT_READY)
        return caller


Conversation = Callable[[Caller, Mapping[str, str], Socket], Awaitable[None]]


async def hang_up(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
    return None


@frozen
class Sockets:
    conversation: Conversation = hang_up

    async def serve(self, caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        await self.conversation(caller, query, socket)


@define
class House:
    """One app and what surrounds it.  ``undeclared`` collects what became ``internal``; a test has to expect it."""

    client: AsgiClient
    stage: Stage
    admission: TokenTable
    undeclared: list[tuple[str, BaseException]]


def open_house(
    *endpoints: Endpoint[Stage],
    conversation: Conversation = hang_up,
    clock: Callable[[], float] | None = None,
    policy: HttpPolicy | None = None,
    **settings: Any,
) -> House:
    """``settings`` are fields of HttpPolicy.  The client is Alice."""
    stage, admission, numbers = Stage(), TokenTable(), count(1)
    undeclared: list[tuple[str, BaseException]] = []
    policy = policy or HttpPolicy(**settings, on_undeclared=lambda name, error: undeclared.append((name, error)))
    app = App(
        endpoints if endpoints else default_endpoints(),
        stage,
        admission=admission,
        sockets=Sockets(conversation),
        policy=policy,
        new_request_id=lambda: f"req_{next(numbers)}",
        **({} if clock is None else {"clock": clock}),
    )
    return House(AsgiClient(app, token="alice"), stage, admission, undeclared)


def default_endpoints() -> Sequence[Endpoint[Stage]]:
    return (
        endpoint("GET", "/health", auth=AuthPolicy.OPEN, any_host=True),
        endpoint("GET", "/api/things", params=Page),
        endpoint("POST", "/api/things", body=NewThing),
        endpoint("GET", "/api/things/archived"),
        endpoint("GET", "/api/things/{thing_id}", params=ThingPath),
        endpoint("PATCH", "/api/things/{thing_id}", params=ThingPath, body=Options, body_required=False),
        endpoint("DELETE", "/api/things/{thing_id}", params=ThingPath),
        endpoint("GET", "/api/things/{thing_id}/parts/{part_id}", params=PartPath),
        endpoint("POST", "/api/login", auth=AuthPolicy.OPEN, body=NewThing, modes=frozenset({AuthMode.LOCAL})),
    )
