"""The scripted runtime behind the adapter protocol: opening, resuming, forking and forgetting its conversations."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import trio
from attrs import define, field

from nerve.adapters.protocol import AgentClient, Availability, Capabilities, RuntimeGone, SessionSpec
from nerve.adapters.scripted import output_files
from nerve.adapters.scripted.client import ScriptedClient
from nerve.adapters.scripted.conversation import Conversations, UnknownTurn
from nerve.adapters.scripted.files import FileProblem, delete, plan_file
from nerve.adapters.scripted.source import PlaySource
from nerve.effects import Effects
from nerve.processes import Children

MODEL = "scripted"
REPLY_PACE_SECONDS = 0.01


@define(eq=False)
class ScriptedAdapter:
    """The agent runtime whose model is a play.

    ``directory`` holds its conversations, ``plans`` (beside it by default) one plan a session, ``workspace`` the folder
    ``scenarios``.  ``reason`` says, for people, why the configured runtime is not used; None means that the scripted
    runtime is the configured one.  In ``closed`` directories no play changes a file: they are the server's own.
    ``children`` start the programs of ``run``; None: plays may start none.
    """

    _directory: Path
    _workspace: Path
    _effects: Effects
    _reason: str | None = None
    _reply_pace: float = REPLY_PACE_SECONDS
    _closed: tuple[Path, ...] = ()
    _children: Children | None = None
    _plans: Path = field()
    _source: PlaySource = field(init=False)
    name: str = field(default="scripted", init=False)
    default_model: str = field(default=MODEL, init=False)

    @_plans.default
    def _beside(self) -> Path:
        return self._directory.parent / "plans"

    def __attrs_post_init__(self) -> None:
        self._source = PlaySource(self._workspace, self._effects)

    async def availability(self) -> Availability:
        """Always there: neither key nor program nor network."""
        return Availability(True)

    def open(self, session: SessionSpec) -> AbstractAsyncContextManager[AgentClient]:
        """Open a client.  A conversation that is not known is opened afresh, under a new native id.

        Raises RuntimeGone if the record can't be kept, or if a fork names a turn that the conversation doesn't have.
        """
        return self._opened(session)

    async def forget_session(self, session_id: str) -> None:
        """Remove its plan."""
        with suppress(FileProblem):  # there is none, or something stands there that no play wrote
            await self._effects.blocking(delete, plan_file(self._plans, session_id))

    async def forget(self, native_id: str) -> None:
        """Remove a conversation's record and what its shells wrote; one that is not there is fine."""
        await self._effects.blocking(Conversations(self._directory).forget, native_id)
        await self._effects.blocking(output_files.forget, native_id)

    @asynccontextmanager
    async def _opened(self, session: SessionSpec) -> AsyncIterator[AgentClient]:
        native_id, began_afresh, capabilities = await self._conversation(session)
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            client = ScriptedClient(
                native_id=native_id,
                began_afresh=began_afresh,
                capabilities=capabilities,
                model=session.model or MODEL,
                session=session,
                effects=self._effects,
                conversations=Conversations(self._directory),
                source=self._source,
                nursery=nursery,
                reason=self._reason,
                reply_pace=self._reply_pace,
                closed=self._closed,
                children=self._children,
                plan_file=plan_file(self._plans, session.session_id),
            )
            try:
                yield client
            except Exception as error:  # noqa: BLE001 - raised below, so that the nursery doesn't wrap it in a group
                failure = error
            finally:
                nursery.cancel_scope.cancel()
                client.close()
        if failure is not None:
            raise failure

    async def _conversation(self, session: SessionSpec) -> tuple[str, bool, Capabilities]:
        try:
            return await self._effects.blocking(self._prepared, session)
        except UnknownTurn as error:
            raise RuntimeGone(f"the conversation has no turn {error}", retryable=False) from None
        except OSError as error:
            raise RuntimeGone(f"the conversation's record can't be kept: {error.strerror}", retryable=False) from None

    def _prepared(self, session: SessionSpec) -> tuple[str, bool, Capabilities]:
        conversations = Conversations(self._directory)
        if session.native_id is not None and not session.fork:
            known = conversations.resume(session.native_id)
            if known is not None:
                return session.native_id, False, known
        new_id = self._effects.new_id("native")
        forked = (
            session.fork
            and session.native_id is not None
            and conversations.fork(session.native_id, new_id, session.fork_turn)
        )
        if not forked:
            conversations.create(new_id)
        return new_id, not forked, Capabilities()
