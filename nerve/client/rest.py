"""The client for trio: REST calls that answer with the contract's models, and sessions that are followed live."""

import random
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import httpx
from attrs import define, field

from nerve.client.backoff import Backoff
from nerve.client.errors import Unreachable, reason_of
from nerve.client.exchange import REFRESHED, reply_of, request_of
from nerve.client.live import LiveSession, Socket, follow
from nerve.client.socket import open_socket
from nerve.contract.generated.actors import ACTORS_LIST
from nerve.contract.generated.agents import (
    AGENTS_GET,
    AGENTS_LIST,
    AGENTS_OUTPUT,
    AGENTS_STOP,
    AGENTS_TRANSCRIPT,
    AgentAtRest,
    AgentDetails,
    AgentOutput,
    AgentsGetParams,
    AgentsListParams,
    AgentsOutputParams,
    AgentsStopParams,
    AgentStopping,
    AgentsTranscriptParams,
    StopAgent,
    TranscriptPage,
)
from nerve.contract.generated.auth import AUTH_CHECK, AUTH_LOGIN, AUTH_ME, AUTH_STATUS, Login, Me
from nerve.contract.generated.chat import CHAT_SEND, ChatMessage, ChatReply
from nerve.contract.generated.entities import (
    Actor,
    AgentSnapshot,
    AuthStatus,
    Health,
    QueueEntry,
    Session,
    SessionEvent,
    SessionPage,
    SessionState,
)
from nerve.contract.generated.health import HEALTH_GET
from nerve.contract.generated.queue import QUEUE_CANCEL, QUEUE_LIST, CancelledEntry, QueueCancelParams, QueueListParams
from nerve.contract.generated.sessions import (
    SESSIONS_ARCHIVE,
    SESSIONS_ARCHIVED,
    SESSIONS_CREATE,
    SESSIONS_DELETE,
    SESSIONS_EVENTS,
    SESSIONS_FORK,
    SESSIONS_GET,
    SESSIONS_LIST,
    SESSIONS_MESSAGES,
    SESSIONS_RESUME,
    SESSIONS_STATUS,
    SESSIONS_STOP,
    SESSIONS_UNARCHIVE,
    SESSIONS_UPDATE,
    AllStopped,
    ArchiveResult,
    ForceStopped,
    MessagePage,
    NewFork,
    NewSession,
    SessionChange,
    SessionFeed,
    SessionsArchivedParams,
    SessionsArchiveParams,
    SessionsDeleteParams,
    SessionsEventsParams,
    SessionsGetParams,
    SessionsListParams,
    SessionsMessagesParams,
    SessionsResumeParams,
    SessionsStatusParams,
    SessionsStopParams,
    SessionsUnarchiveParams,
    SessionsUpdateParams,
    Stop,
    TurnStopped,
)
from nerve.contract.generated.setup import SETUP_CLAIM, Claim
from nerve.contract.route import Route
from nerve.contract.unset import UNSET, Unset

P = TypeVar("P")
B = TypeVar("B")
R = TypeVar("R")

CONNECT_SECONDS = 10.0
CALL_SECONDS = 30.0
CHAT_SECONDS = 2 * 3600.0  # a whole turn, and what waits before it


@define(eq=False)
class NerveClient:
    """``token`` follows the replacements that the server sends.  Every call raises ApiError or Unreachable.

    ``tls`` is for servers whose certificate the system does not trust.
    """

    address: str
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, kw_only=True, repr=False)
    _http: httpx.AsyncClient = field(kw_only=True, repr=False)

    async def call(
        self, route: Route[P, B, R], params: P | None = None, body: B | None = None, *, seconds: float = CALL_SECONDS
    ) -> R:
        """Any operation of the contract, with its own success reply.  Waits at most ``seconds`` for each part of it.

        A failed call may have been carried out all the same; one that is cancelled, too.
        """
        request = request_of(route, params, body, self.token)
        used = self.token
        try:
            answer = await self._http.request(
                request.method,
                self.address + request.target,
                headers=request.headers,
                content=request.content,
                timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(f"{self.address} can't be reached: {_reason(error)}") from None
        refreshed = answer.headers.get(REFRESHED)
        # Not over a token that somebody has put here meanwhile: the new one belongs to the one that was sent.
        if refreshed is not None and self.token == used:
            self.token = refreshed
        return reply_of(route, answer.status_code, answer.headers, answer.content)

    # --- who is there ---------------------------------------------------------------------------------------------

    async def health(self) -> Health:
        return await self.call(HEALTH_GET)

    async def auth_status(self) -> AuthStatus:
        return await self.call(AUTH_STATUS)

    async def auth_check(self) -> None:
        """Nothing if the token is good, else ApiError 401; a token past its half is replaced on the way."""
        await self.call(AUTH_CHECK)

    async def claim(
        self, setup_token: str, username: str | None, password: str | None, *, display_name: str | None = None
    ) -> None:
        """Make the instance this person's, and sign in; without a password it becomes a passwordless one."""
        body = Claim(
            setup_token=setup_token,
            username=username,
            password=password,
            passwordless=password is None,
            display_name=display_name,
        )
        self.token = (await self.call(SETUP_CLAIM, body=body)).token

    async def login(self, password: str, username: str | None = None) -> None:
        self.token = (await self.call(AUTH_LOGIN, body=Login(password=password, username=username))).token

    async def me(self) -> Me:
        return await self.call(AUTH_ME)

    async def actors(self) -> list[Actor]:
        return (await self.call(ACTORS_LIST)).actors

    # --- sessions -------------------------------------------------------------------------------------------------

    async def sessions(self, offset: int = 0) -> SessionFeed:
        return await self.call(SESSIONS_LIST, SessionsListParams(offset=offset))

    async def archived_sessions(self, offset: int = 0) -> SessionPage:
        return await self.call(SESSIONS_ARCHIVED, SessionsArchivedParams(offset=offset))

    async def session(self, session_id: str) -> Session:
        return await self.call(SESSIONS_GET, SessionsGetParams(session_id=session_id))

    async def session_status(self, session_id: str) -> SessionState:
        return await self.call(SESSIONS_STATUS, SessionsStatusParams(session_id=session_id))

    async def create_session(
        self, title: str | None = None, *, model: str | None = None, backend: str | None = None, cwd: str | None = None
    ) -> Session:
        return await self.call(SESSIONS_CREATE, body=NewSession(title=title, model=model, backend=backend, cwd=cwd))

    async def update_session(
        self,
        session_id: str,
        *,
        title: str | Unset = UNSET,
        starred: bool | Unset = UNSET,
        model: str | Unset = UNSET,
        parent_session_id: str | Unset | None = UNSET,
    ) -> Session:
        change = SessionChange(title=title, starred=starred, model=model, parent_session_id=parent_session_id)
        return await self.call(SESSIONS_UPDATE, SessionsUpdateParams(session_id=session_id), change)

    async def delete_session(self, session_id: str) -> None:
        await self.call(SESSIONS_DELETE, SessionsDeleteParams(session_id=session_id))

    async def archive_session(self, session_id: str, *, force: bool = False) -> ArchiveResult:
        return await self.call(SESSIONS_ARCHIVE, SessionsArchiveParams(session_id=session_id, force=force))

    async def unarchive_session(self, session_id: str) -> None:
        await self.call(SESSIONS_UNARCHIVE, SessionsUnarchiveParams(session_id=session_id))

    async def fork_session(
        self, session_id: str, *, at_message_id: int | None = None, title: str | None = None
    ) -> Session:
        """A new session that begins with this one's messages, up to the one with this number or all of them."""
        at = None if at_message_id is None else str(at_message_id)
        return await self.call(SESSIONS_FORK, body=NewFork(source_session_id=session_id, at_message_id=at, title=title))

    async def resume_session(self, session_id: str) -> Session:
        """Have an idle, stopped, failed or archived session go on with its conversation at the next message."""
        return await self.call(SESSIONS_RESUME, SessionsResumeParams(session_id=session_id))

    async def messages(self, session_id: str, limit: int = 100, before_id: int | None = None) -> MessagePage:
        """The newest ones, oldest first; ``before_id`` pages back."""
        before = UNSET if before_id is None else before_id
        return await self.call(
            SESSIONS_MESSAGES, SessionsMessagesParams(session_id=session_id, limit=limit, before_id=before)
        )

    async def events(self, session_id: str, limit: int = 50) -> list[SessionEvent]:
        """What happened to the session, newest first."""
        return (await self.call(SESSIONS_EVENTS, SessionsEventsParams(session_id=session_id, limit=limit))).events

    # --- turns ----------------------------------------------------------------------------------------------------

    async def chat(
        self,
        message: str,
        session_id: str | None = None,
        *,
        model: str | None = None,
        client_msg_id: str | None = None,
        seconds: float = CHAT_SECONDS,
    ) -> ChatReply:
        """Send a message and wait for the whole answer.  A retry with the same ``client_msg_id`` runs nothing twice."""
        body = ChatMessage(message=message, session_id=session_id, client_msg_id=client_msg_id, model=model)
        return await self.call(CHAT_SEND, body=body, seconds=seconds)

    async def queue(self, session_id: str) -> list[QueueEntry]:
        return (await self.call(QUEUE_LIST, QueueListParams(session_id=session_id))).items

    async def cancel(self, session_id: str, queue_id: str) -> CancelledEntry:
        """Take a message back that still waits."""
        return await self.call(QUEUE_CANCEL, QueueCancelParams(session_id=session_id, queue_id=queue_id))

    async def stop(
        self,
        session_id: str,
        scope: str = "turn",
        *,
        confirm_kill_background: bool = False,
        include_shells: bool = True,
    ) -> TurnStopped | AllStopped | ForceStopped:
        """Stop the session's turn (``turn``), its agents too (``all``), or whatever its runtime does (``force``).

        Waits until the turn has ended, or is known not to.
        """
        body = Stop(scope=scope, confirm_kill_background=confirm_kill_background, include_shells=include_shells)
        return await self.call(SESSIONS_STOP, SessionsStopParams(session_id=session_id), body)

    # --- agents ---------------------------------------------------------------------------------------------------

    async def agents(self, session_id: str, limit: int = 200) -> AgentSnapshot:
        """Every live agent and the newest ended ones, oldest first."""
        return await self.call(AGENTS_LIST, AgentsListParams(session_id=session_id, limit=limit))

    async def agent(self, session_id: str, agent_id: str) -> AgentDetails:
        """One agent with its whole brief and its final report."""
        return await self.call(AGENTS_GET, AgentsGetParams(session_id=session_id, agent_id=agent_id))

    async def agent_transcript(
        self,
        session_id: str,
        agent_id: str,
        limit: int = 200,
        *,
        before_seq: int | None = None,
        after_seq: int | None = None,
    ) -> TranscriptPage:
        """The newest items, the ones right below ``before_seq``, or the first ones above ``after_seq``."""
        params = AgentsTranscriptParams(
            session_id=session_id,
            agent_id=agent_id,
            before_seq=UNSET if before_seq is None else str(before_seq),
            after_seq=UNSET if after_seq is None else str(after_seq),
            limit=limit,
        )
        return await self.call(AGENTS_TRANSCRIPT, params)

    async def agent_output(self, session_id: str, agent_id: str, tail_bytes: int = 65536) -> AgentOutput:
        """The end of what a background shell or monitor has written."""
        params = AgentsOutputParams(session_id=session_id, agent_id=agent_id, tail_bytes=tail_bytes)
        return await self.call(AGENTS_OUTPUT, params)

    async def stop_agent(self, session_id: str, agent_id: str, *, cascade: bool = True) -> AgentStopping | AgentAtRest:
        """Stop one agent and, with ``cascade``, all that it started; the turn and the others go on."""
        params = AgentsStopParams(session_id=session_id, agent_id=agent_id)
        return await self.call(AGENTS_STOP, params, StopAgent(cascade=cascade))

    # --- live -----------------------------------------------------------------------------------------------------

    def follow(
        self,
        session_id: str,
        *,
        after_seq: int | None = None,
        backoff: Backoff = Backoff(),  # noqa: B008  frozen
        rng: random.Random | None = None,
    ) -> AbstractAsyncContextManager[LiveSession]:
        """The session as it happens, for as long as the block lasts, whatever becomes of the line.  See LiveSession.

        Without ``after_seq`` it begins with the running turn, else with the first frame above that number.
        """

        def connect(session_id: str, after_seq: int | None) -> AbstractAsyncContextManager[Socket]:
            assert self.token is not None
            return open_socket(self.address, self.token, session_id=session_id, after_seq=after_seq, tls=self.tls)

        if self.token is None:
            raise ValueError("sign in first")
        return follow(connect, session_id, after_seq=after_seq, backoff=backoff, rng=rng or random.Random())


def _reason(error: Exception) -> str:
    return "it does not answer in time" if isinstance(error, httpx.TimeoutException) else reason_of(error)


@asynccontextmanager
async def open_client(
    address: str,
    token: str | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[NerveClient]:
    """A client of the server at this address (``http://127.0.0.1:8900``), as long as the block lasts.

    ``transport`` replaces the network for REST calls.
    """
    # trust_env: a proxy of the environment is no way to a server on this machine.
    async with httpx.AsyncClient(trust_env=False, transport=transport, verify=True if tls is None else tls) as http:
        yield NerveClient(address.rstrip("/"), token, tls=tls, http=http)
