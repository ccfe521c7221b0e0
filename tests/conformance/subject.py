"""What a scenario may ask of the server it is played against, and what it has to say of itself.

Scenarios know HTTP, WebSocket and the few things below, so that the same ones can be played against a server that is
only known by its address.  What needs a hand inside the server is in ``Faults`` and ``Keys``, and a scenario that uses
them says that it is ``local``, and why.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, Protocol

from attrs import field, frozen

from tests.spec_client import Answer, SocketClient, SpecClient

PASSWORD = "correct horse"


class Local(Enum):
    """Why something can't be played against a server that is only known by its address."""

    FAULTS = "injects faults, or files, into the server"
    KEYS = "signs tokens with the server's own secret"
    CLOCK = "needs the server's clock in its own hands"
    ALONE = "needs an instance in a state that is not left as it was found"
    PEER = "comes from an address of its choice"
    SETTINGS = "needs a configuration of its own"
    CODE = "looks at this implementation's code"


class Start(Enum):
    """How far the instance is when a scenario begins.

    ``CLAIMED`` can be had of any server, ``UNCLAIMED`` of a fresh one until its claim, the others only in memory.
    """

    CLAIMED = "claimed"  # by alice, with PASSWORD
    UNCLAIMED = "unclaimed"
    PASSWORDLESS = "passwordless"  # claimed by nobody in particular: no name, no password
    UNREADY = "unready"  # identity could not be set up
    EXTERNAL = "external"  # a gateway signs people in


class Keys(Protocol):
    """Tokens of every kind, signed as the server signs them.  Instants are those of the server's clock."""

    def session(self, account_id: str, *, age_seconds: int = 0, life_seconds: int = 3600) -> str: ...
    def legacy(self) -> str: ...
    def system(self) -> str: ...
    def mcp(self, session_id: str | None = None) -> str: ...
    def context(self, subject: str, name: str | None = None) -> str:
        """What a gateway puts into ``X-Nerve-Actor-Context``."""
        ...


class Faults(Protocol):
    """What can be done inside the server, and made to go wrong.  Nothing is wrong at first."""

    def refuse_writes(self, code: str) -> None:
        """From here on the store refuses every write, as with ``store_full`` or ``store_busy``."""
        ...

    def accept_writes(self) -> None:
        """The store is well again."""
        ...

    def break_handlers(self) -> None:
        """From here on every handler raises what nobody expects."""
        ...

    async def forget_password(self, account_id: str) -> None:
        """The account has no password any more, as when the configuration that held it is gone."""
        ...

    def block_uploads(self) -> None:
        """The directory of uploads can't be made."""
        ...

    def shut_down(self) -> None:
        """The server begins to shut down: it refuses messages."""
        ...

    async def close_down(self) -> None:
        """The server goes down in good order: what runs is interrupted, sockets are closed."""
        ...

    def write_scenario(self, name: str, text: str) -> None:
        """Put a scenario file into the workspace: what the scripted runtime plays at a prompt."""
        ...


class Subject(Protocol):
    """One server.  ``owner`` is who claimed it, or in external mode a person of the gateway."""

    @property
    def start(self) -> Start: ...
    @property
    def claim(self) -> dict[str, str]:
        """The body of the claim that makes ``owner``, without its setup token."""
        ...

    @property
    def anyone(self) -> SpecClient:
        """A client without a credential."""
        ...

    @property
    def owner(self) -> SpecClient: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def faults(self) -> Faults: ...
    async def setup_token(self) -> str:
        """What ``nerve status`` shows while nobody has claimed the instance."""
        ...

    def unique(self, prefix: str) -> str:
        """A name that nobody has used on this server."""
        ...


Play = Callable[[Subject], Awaitable[Answer]]


@frozen
class Scenario:
    """How to provoke one documented reply."""

    play: Play
    start: Start = Start.CLAIMED
    local: Local | None = None


@frozen
class FrameScenario:
    """How to provoke one documented frame of the server.

    ``settings`` are lines of the server's configuration by section; a server that has others can't play it.
    """

    play: Callable[[Subject], Awaitable[Any]]
    local: Local | None = None
    settings: Mapping[str, str] = field(factory=dict)


# --- small things that many scenarios do --------------------------------------------------------------------------


async def new_session(client: SpecClient, **body: Any) -> str:
    return str((await client.ok("sessions.create", body))["id"])


async def new_person(subject: Subject) -> tuple[SpecClient, dict[str, Any]]:
    """Somebody else with an account of their own, signed in; and the account."""
    account = await new_account(subject)
    token = (await subject.anyone.ok("auth.login", {"username": account["username"], "password": PASSWORD}))["token"]
    return subject.anyone.with_(token=token), account


async def new_account(subject: Subject) -> dict[str, Any]:
    """With PASSWORD."""
    body = {"username": subject.unique("person-"), "password": PASSWORD}
    account: dict[str, Any] = await subject.owner.ok("accounts.create", body)
    return account


def script(*steps: str) -> str:
    """A message that the scripted runtime plays: one step of YAML each."""
    return "\n".join(["#!nerve-scenario", *(f"- {step}" for step in steps)])


@frozen
class SocketTalk:
    """The words of a conversation over one socket, bound to one session."""

    socket: SocketClient
    session_id: str

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send_json({"type": kind, "session_id": self.session_id, **fields})

    async def say(self, content: str, **fields: Any) -> None:
        await self.send("message", content=content, **fields)

    async def until(self, kind: str, fits: Callable[[Any], bool] = lambda frame: True) -> Any:
        """The next frame of this type that fits; whatever comes before it is passed over."""
        while True:
            frame = (await self.socket.receive_until(kind))[-1]
            if fits(frame):
                return frame
