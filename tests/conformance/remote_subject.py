"""A server at an address as a subject of scenarios.

It is never harmed: what a scenario made is deleted or disabled behind it, nothing is shut down, and nothing is said to
sessions and accounts that the suite has not made (``main`` is bound, and refuses to be deleted).
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import trio
from attrs import define, field

from tests.asgi_wire import Reply, Request
from tests.conformance.by_address import Server
from tests.conformance.subject import Faults, Keys, Local, Start
from tests.remote_wire import LocalOnly, RemoteWire
from tests.spec_client import SpecClient, SpecObserver
from tests.spec_replies import BY_ID

CLEANING_SECONDS = 30.0
_MAKES_SESSIONS = {BY_ID["sessions.create"].path, BY_ID["sessions.fork"].path}


@define(eq=False)
class Traces:
    """Observes what scenarios make, whoever makes it; before the referee, so that also what it dislikes is known."""

    server: Server
    sessions: list[str] = field(factory=list)
    accounts: list[str] = field(factory=list)

    def replied(self, request: Request, reply: Reply) -> None:
        if request.method != "POST" or reply.status >= 300:
            return
        if request.path in _MAKES_SESSIONS:
            self._note(self.sessions, reply, "id")
        elif request.path == BY_ID["accounts.create"].path:
            self._note(self.accounts, reply, "id")
        elif request.path == BY_ID["setup.claim"].path:
            tokens: list[str] = []
            self._note(tokens, reply, "token")
            for token in tokens:
                self.server.claimed_with(token)

    def _note(self, found: list[str], reply: Reply, key: str) -> None:
        body = _object(reply.body)
        if isinstance(body.get(key), str) and body[key] not in found:
            found.append(body[key])

    def client_frame(self, text: str) -> None:
        """What came of it is told."""

    def server_frame(self, text: str) -> None:
        """Only forks last."""
        frame = _object(text) if "session_forked" in text else {}
        fork_id = frame.get("fork_id")
        if frame.get("type") == "session_forked" and isinstance(fork_id, str) and fork_id not in self.sessions:
            self.sessions.append(fork_id)

    async def wipe(self, wire: RemoteWire) -> None:
        """Delete the sessions, disable the accounts.  What does not work is kept in mind."""
        with trio.move_on_after(CLEANING_SECONDS, shield=True):
            for session_id in tuple(self.sessions):
                if await _undone(wire, "sessions.delete", session_id=session_id):
                    self.sessions.remove(session_id)
            for account_id in tuple(self.accounts):
                if await _undone(wire, "accounts.disable", account_id=account_id):
                    self.accounts.remove(account_id)
                    self.server.disabled += 1
        self.server.kept += [f"session {session_id}" for session_id in self.sessions]
        self.server.kept += [f"account {account_id}" for account_id in self.accounts]


def _object(text: str | bytes) -> dict[str, Any]:
    """Empty if it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


async def _undone(wire: RemoteWire, operation_id: str, **path: str) -> bool:
    call = BY_ID[operation_id]
    try:
        reply = await wire.request(call.method.upper(), call.path.format(**path))
    except (httpx.TransportError, trio.TooSlowError):
        return False
    return reply.status in (200, 404)


@define(eq=False)
class RemoteSubject:
    """Implements ``Subject``."""

    start: Start
    anyone: SpecClient
    _server: Server
    _owner: SpecClient | None

    @property
    def owner(self) -> SpecClient:
        if self._owner is None:
            raise LocalOnly("nobody owns the instance yet")
        return self._owner

    @property
    def claim(self) -> dict[str, str]:
        return self._server.given.claim

    @property
    def keys(self) -> Keys:
        raise LocalOnly(Local.KEYS.value)

    @property
    def faults(self) -> Faults:
        raise LocalOnly(Local.FAULTS.value)

    async def setup_token(self) -> str:
        assert self._server.given.setup_token is not None
        return self._server.given.setup_token

    def unique(self, prefix: str) -> str:
        return self._server.unique(prefix)


def _require(server: Server, start: Start, settings: Mapping[str, str]) -> None:
    """Scenarios that need anything else say so by their marks, and have been skipped."""
    if settings:
        raise LocalOnly(Local.SETTINGS.value)
    if start not in (Start.CLAIMED, Start.UNCLAIMED) or (start is Start.UNCLAIMED and server.claimed):
        raise LocalOnly(f"{start}: {Local.ALONE.value}")


@asynccontextmanager
async def opened_by_address(server: Server, start: Start, settings: Mapping[str, str]) -> AsyncIterator[RemoteSubject]:
    """The server at its start, as far as it can be brought there; at the end it is as it was before."""
    _require(server, start, settings)
    token = server.owner() if start is Start.CLAIMED else None
    async with server.address.http() as http:
        traces = Traces(server)
        wire = RemoteWire(server.address, http, (traces, SpecObserver(ours=False)))
        anyone = SpecClient(wire)
        try:
            yield RemoteSubject(start, anyone, server, None if token is None else anyone.with_(token=token))
        finally:
            if server.claimed:
                await traces.wipe(RemoteWire(server.address, http, token=server.owner()))
