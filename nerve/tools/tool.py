"""What a built-in tool is, and what it is handed."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

from attrs import field, frozen

from nerve.adapters.protocol import InteractionReply, InteractionRequest, ToolResult
from nerve.contract.generated.entities import SessionSource
from nerve.domain.wakeups import WakeupKind
from nerve.effects import Effects
from nerve.store.database import Database
from nerve.store.wakeups import Wakeup


class Scheduler(Protocol):
    """Puts off turns."""

    async def put(
        self,
        session_id: str,
        kind: WakeupKind,
        source: str,
        prompt: str,
        delay: timedelta,
        *,
        actor_id: str | None,
        cause_id: str | None,
        reason: str | None = None,
    ) -> tuple[datetime, Wakeup | None]:
        """When it fires, and what it replaced.  On disk when this returns.  Raises SESSION_NOT_FOUND."""
        ...


@frozen(kw_only=True)
class ToolContext:
    """Who calls a tool: the session, its cause (on whose behalf it works), and the sub-agent if one is known.

    ``actor_id`` is whom the tool's doings are attributed to; ``ask`` puts a question to whoever watches the session.
    """

    session_id: str
    source: SessionSource
    actor_id: str
    cause_id: str | None
    agent_ref: str | None
    database: Database = field(repr=False)
    effects: Effects = field(repr=False)
    schedule: Scheduler = field(repr=False)
    ask: Callable[[InteractionRequest], Awaitable[InteractionReply]] = field(repr=False)


@frozen
class Tool:
    """Its description and schema stand in spec/tools.  ``run`` gets an input that fits the schema.

    It may wait for as long as the tool takes; a NerveError becomes an error result.
    """

    name: str
    run: Callable[[ToolContext, dict[str, Any]], Awaitable[ToolResult]]
