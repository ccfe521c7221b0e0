"""The client of a session: opened when a turn needs it, read by one task for its whole life."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from nerve.adapters.protocol import (
    AgentClient,
    AgentEvent,
    InteractionReply,
    InteractionRequest,
    RuntimeGone,
    SessionSpec,
    ToolResult,
)
from nerve.domain.turns import KILL_SECONDS
from nerve.errors import NerveError
from nerve.runtime.backends import Backends
from nerve.runtime.file_changes import keep_before_change
from nerve.runtime.house import SYSTEM_ACTOR, House
from nerve.store import sessions, turns
from nerve.store.turns import RuntimeFacts
from nerve.tools import BUILT_IN
from nerve.tools.tool import ToolContext

log = logging.getLogger("nerve.runtime")

Ask = Callable[[InteractionRequest], Awaitable[InteractionReply]]


@define(eq=False)
class Host:
    """What a runtime may ask of its session."""

    _session_id: str
    _house: House
    _ask: Ask

    async def before_file_change(self, path: Path) -> None:
        await keep_before_change(self._house.database, self._house.effects, self._session_id, path)

    async def call_tool(self, name: str, tool_input: dict[str, Any], agent_ref: str | None = None) -> ToolResult:
        house = self._house
        try:
            owner = await house.database.read(sessions.owner, self._session_id)
        except NerveError as gone:
            return ToolResult(gone.message, is_error=True)
        context = ToolContext(
            session_id=self._session_id,
            source=owner.source,
            actor_id=SYSTEM_ACTOR,
            cause_id=owner.cause_id,
            agent_ref=agent_ref,
            database=house.database,
            effects=house.effects,
            schedule=house.schedule,
            ask=self._ask,
        )
        return await BUILT_IN.call(name, tool_input, context)

    async def ask(self, request: InteractionRequest) -> InteractionReply:
        return await self._ask(request)


@define(eq=False)
class ClientSlot:
    """Holds at most one open client.

    ``lost`` is told when it is gone, whoever ended it, ``replaced`` when it only makes room for another one.
    """

    session_id: str
    _house: House
    _ask: Ask
    _on_event: Callable[[AgentEvent], Awaitable[None]]
    _lost: Callable[[BaseException], None]
    _replaced: Callable[[], None]
    client: AgentClient | None = None
    _opened_with: tuple[str, str | None] | None = None  # backend and model
    _replacing: bool = False
    _scope: trio.CancelScope | None = None
    _gone: trio.Event = field(factory=trio.Event)

    async def ensure(self, nursery: trio.Nursery) -> AgentClient:
        """The open client if it still fits the session, or a new one.

        Raises what opening it raises; cancelled, none is left open.
        """
        facts = await self._facts()
        if self.client is not None:
            if self._opened_with == (facts.backend, facts.model) and not self._ending:
                return self.client
            self._replacing = True  # the turn that asks has lost nothing
            await self.close()
        database = self._house.database
        spec = SessionSpec(
            session_id=self.session_id,
            cwd=Path(facts.cwd),
            host=Host(self.session_id, self._house, self._ask),
            model=facts.model,
            native_id=facts.sdk_session_id,
            fork=facts.fork_pending,
            fork_turn=facts.fork_turn,
        )
        self._gone = trio.Event()
        self._replacing = False
        self._opened_with = (facts.backend, facts.model)
        client: AgentClient = await nursery.start(self._run, self._house.backends, facts.backend, spec)
        try:
            unneeded = await database.write(
                turns.attached, self.session_id, client.native_id, client.began_afresh, self._house.effects.now()
            )
        except BaseException:
            # A client whose conversation nobody can find again must not take a turn.
            with trio.move_on_after(KILL_SECONDS, shield=True):
                await self.close()
            raise
        if unneeded is not None:
            await self._forget(facts.backend, unneeded)
        return client

    async def _forget(self, backend: str, native_id: str) -> None:
        """A fork has branched the conversation of a session that is gone."""
        try:
            await self._house.backends.adapter(backend).forget(native_id)
        except OSError as error:
            log.warning("a conversation of the runtime %s can't be removed: %s", backend, error.strerror)

    @property
    def backend(self) -> str:
        """Of the client that was opened last."""
        return "" if self._opened_with is None else self._opened_with[0]

    @property
    def _ending(self) -> bool:
        """The client was cancelled and takes its time."""
        return self._scope is not None and self._scope.cancel_called

    async def _facts(self) -> RuntimeFacts:
        """What the next turn runs on; a session on the fallback moves to the configured runtime once that is usable."""
        database = self._house.database
        facts = await database.read(turns.runtime_facts, self.session_id)
        if facts.backend_reason is not None:
            choice = await self._house.backends.choose()
            if choice.reason is None and choice.backend != facts.backend:
                await database.write(turns.moved_to_backend, self.session_id, choice.backend, self._house.effects.now())
                facts = await database.read(turns.runtime_facts, self.session_id)
        return facts

    async def _run(
        self, backends: Backends, backend: str, spec: SessionSpec, task_status: trio.TaskStatus[AgentClient]
    ) -> None:
        started = False
        cause: BaseException = RuntimeGone("The agent's runtime was closed.", retryable=False)
        try:
            with trio.CancelScope() as self._scope:
                async with backends.adapter(backend).open(spec) as client:
                    self.client = client
                    started = True
                    task_status.started(client)
                    async for event in client.events:
                        await self._on_event(event)
                cause = RuntimeGone("The agent's runtime ended.")
        except Exception as exc:
            if not started:
                raise
            cause = _sole(exc)
            if isinstance(cause, NerveError):  # the store refused to record what it said
                log.warning("the runtime of session %s is closed: %s", self.session_id, cause.message)
            elif not isinstance(cause, RuntimeGone):
                log.error("the runtime of session %s failed", self.session_id, exc_info=exc)
        finally:
            self.client = self._scope = None
            self._gone.set()
            if started and self._replacing:
                self._replaced()
            elif started:
                self._lost(cause)

    def kill(self) -> None:
        """End the client at once; its processes are gone when ``closed`` returns."""
        if self._scope is not None:
            self._scope.cancel()

    async def close(self) -> None:
        """End the client and wait until it is gone."""
        if self._scope is not None:
            self._scope.cancel()
            await self._gone.wait()


def _sole(exc: BaseException) -> BaseException:
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc
