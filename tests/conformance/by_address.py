"""A server that is only known by its address: what the command line says of it, and how the suite gets in."""

import os
import re
import secrets
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from attrs import define, field, frozen

from tests.conformance.subject import PASSWORD
from tests.remote_wire import PATIENCE_SECONDS, Address
from tests.spec_replies import BY_ID

RUNTIME = "scripted"


class Unfit(Exception):
    """The suite can't be played against this server, or not with what was given; the text says what is missing."""


@frozen
class Given:
    """What the command line says of the server."""

    url: str
    setup_token: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def claim(self) -> dict[str, str]:
        return {"username": self.username or "alice", "password": self.password or PASSWORD, "display_name": "Alice"}


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of a server at an address")
    group.addoption("--url", help="play against the server at this address, such as http://127.0.0.1:8900")
    group.addoption("--setup-token", help="of an unclaimed server: claim it, with --username and --password if given")
    group.addoption("--token", help="of a claimed server: a person's session token (default: $NERVE_TOKEN)")
    group.addoption("--username", help="of a claimed server: who signs in; of an unclaimed one: who claims it")
    group.addoption("--password", help="the password of --username (default: $NERVE_PASSWORD)")
    group.addoption("--every", type=int, default=1, metavar="N", help="play each N-th scenario only")


def given_by(config: pytest.Config) -> Given | None:
    """None: in memory.  Raises pytest.UsageError for what can't be meant."""
    url = config.getoption("url", None)
    if url is None:
        return None
    if config.getoption("numprocesses", None):
        raise pytest.UsageError("--url: one server is tested by one process, without -n")
    if config.getoption("every") < 1:
        raise pytest.UsageError("--every: 1 is all of them, 2 each second one")
    setup_token, username = config.getoption("setup_token"), config.getoption("username")
    named = setup_token is not None or username is not None
    return Given(
        checked_url(url),
        setup_token,
        config.getoption("token") or (None if named else os.environ.get("NERVE_TOKEN")),
        username,
        config.getoption("password") or (os.environ.get("NERVE_PASSWORD") if named else None),
    )


def checked_url(url: str) -> str:
    """Scheme, host and port.  Raises pytest.UsageError."""
    try:
        parts = urlsplit(url)
        well = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        well = False
    if not well or parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise pytest.UsageError(f"--url: {url!r} is not of the form http://host:port")
    return f"{parts.scheme}://{parts.netloc}"


@define(eq=False)
class Server:
    """One server during one run.  ``kept`` is what a scenario made and nothing could take away again."""

    given: Given
    address: Address
    claimed: bool = False
    kept: list[str] = field(factory=list)
    disabled: int = 0  # accounts, which nothing can delete
    _token: str | None = field(default=None, repr=False)
    _vetted: bool = False
    _run: str = field(factory=lambda: secrets.token_hex(3))
    _numbers: "count[int]" = field(factory=lambda: count(1))

    @classmethod
    def met(cls, given: Given) -> "Server":
        """Blocks until the server has said how people sign in and, if it is claimed, let us in.  Raises Unfit."""
        server = cls(given, Address(given.url))
        status = server._said("auth.status", None)
        if status.get("mode") != "local":
            raise Unfit(
                "it has no accounts of its own: a gateway's people (`auth.mode: external`) are played in memory"
            )
        match status.get("login"):
            case "setup":
                if given.setup_token is None:
                    raise Unfit("nobody has claimed it: give --setup-token, which `nerve status` shows")
            case "none":
                raise Unfit("it is open to anyone: an instance with a username and a password is needed")
            case _:
                server.claimed = True
                server.owner()
        return server

    def unique(self, prefix: str) -> str:
        """Also among all runs."""
        return f"{prefix}{self._run}-{next(self._numbers)}"

    def claimed_with(self, token: str) -> None:
        """A scenario has made the claim."""
        self.claimed, self._token = True, token

    def owner(self) -> str:
        """A session token of the owner; an unclaimed server is claimed for it.  Blocks.  Raises Unfit."""
        if not self.claimed:
            body = {**self.given.claim, "setup_token": self.given.setup_token}
            self.claimed_with(str(self._said("setup.claim", None, body).get("token")))
        if self._token is None:
            self._token = self.given.token or self._signed_in()
        if not self._vetted:
            self._vet(self._token)
            self._vetted = True
        return self._token

    def _signed_in(self) -> str:
        if self.given.username is None or self.given.password is None:
            raise Unfit("somebody has claimed it: give --username and --password, or --token")
        body = {"username": self.given.username, "password": self.given.password}
        return str(self._said("auth.login", None, body).get("token"))

    def _vet(self, token: str) -> None:
        me = self._said("accounts.me", token)
        if not me.get("username") or not me.get("has_password"):
            raise Unfit("its owner needs a username and a password, else there may be no other accounts")
        session = self._said("sessions.create", token, {})
        self._said("sessions.delete", token, session_id=str(session.get("id")))
        if (backend := session.get("backend")) != RUNTIME:
            raise Unfit(f"its new sessions are answered by {backend!r}: `agent.backend: {RUNTIME}` is needed")

    def _said(self, operation_id: str, token: str | None, body: Any = None, **path: str) -> dict[str, Any]:
        """The JSON object of a 200.  This is no test yet: nothing else is looked at."""
        call = BY_ID[operation_id]
        where = f"{call.method.upper()} {call.path}"
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        try:
            answer = httpx.request(
                call.method.upper(),
                self.address.url + call.path.format(**path),
                json=body,
                headers=headers,
                trust_env=False,
                verify=self.address.tls,
                timeout=PATIENCE_SECONDS,
            )
            said = answer.json()
        except httpx.TransportError as error:
            raise Unfit(f"{where}: {error or type(error).__name__}") from None
        except ValueError:
            raise Unfit(
                f"{where} answers {answer.status_code} with what is no JSON; is this the right address?"
            ) from None
        if answer.status_code != 200 or not isinstance(said, dict):
            raise Unfit(f"{where} answers {answer.status_code}: {str(said)[:200]}")
        return said


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """What needs an unclaimed server first, then its claim; what makes the server slow down comes last."""

    def place(item: pytest.Item) -> int:
        if item.get_closest_marker("claims"):
            return 1
        if item.get_closest_marker("unclaimed"):
            return 0
        return 3 if item.get_closest_marker("wrong_passwords") else 2

    return sorted(items, key=place)


def sampled(items: list[pytest.Item], every: int) -> list[pytest.Item]:
    """Each N-th, and the claim in any case."""
    return [item for n, item in enumerate(items) if n % every == 0 or item.get_closest_marker("claims")]


_COMPLAINT = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Violation|Error|Only|Refused)\b.*)$")


def complaint_of(traceback: str) -> str:
    """The one line of a failure that says what was wrong: the last exception of a traceback, also within groups."""
    lines = [line.lstrip(" |E+-").rstrip() for line in traceback.splitlines()]
    found = [match.group(1) for match in map(_COMPLAINT.match, lines) if match]
    return found[-1] if found else (lines[-1] if lines else "")
