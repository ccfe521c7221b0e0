"""The transcripts of one session's agents: numbered at arrival, told to followers at once, written in batches."""

from collections.abc import Callable
from datetime import datetime

import apsw
from attrs import define, field

from nerve.adapters.subagents import AgentText as TextDeed
from nerve.adapters.subagents import AgentToolFinished, AgentToolStarted, Deed
from nerve.contract.generated.entities import (
    AgentEventItem,
    AgentText,
    AgentTextKind,
    AgentToolCall,
    AgentToolResult,
)
from nerve.contract.generated.frames_server import AgentEventFrame
from nerve.contract.unset import UNSET
from nerve.domain.agent_items import cut, cut_input
from nerve.domain.agents import Lifecycle
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.hub import Hub
from nerve.store import agent_items

BATCH = 50
MAX_WAITING_BYTES = 8 * 1024 * 1024  # while the disk refuses them; beyond, the runtime is closed

Pending = tuple[str, int, str]  # agent id, number, JSON


@define(eq=False)
class Transcripts:
    """``waiting`` is what is not on disk yet, in the order in which it came."""

    _session_id: str
    _hub: Hub
    _max_bytes: int  # of a tool's input or result
    waiting: list[Pending] = field(factory=list)
    _waiting_bytes: int = 0
    _last: dict[str, int] = field(factory=dict)

    def last_seq(self, agent_id: str) -> int | None:
        """The number of the newest item; None for an agent that did nothing since this was opened."""
        return self._last.get(agent_id)

    def begin(self, agent_id: str, last_seq: int) -> None:
        """From here on the agent's items count on after ``last_seq``."""
        self._last.setdefault(agent_id, last_seq)

    def deed(self, agent_id: str, deed: Deed, at: datetime, child_agent_id: str | None) -> None:
        """Raises STORE_FULL when too much waits for the disk."""
        if self._waiting_bytes > MAX_WAITING_BYTES:
            raise NerveError(ErrorCode.STORE_FULL)
        self._add(agent_id, lambda seq: self._item(deed, seq, at, child_agent_id))

    def life(self, agent_id: str, life: Lifecycle, at: datetime) -> None:
        """Never refused, because it is small and what it tells has happened."""
        self._add(agent_id, lambda seq: agent_items.lifecycle_item(life, seq, at))

    def _item(self, deed: Deed, seq: int, at: datetime, child_agent_id: str | None) -> AgentEventItem:
        match deed:
            case TextDeed(text=text, thinking=thinking):
                kind = AgentTextKind.THINKING if thinking else AgentTextKind.TEXT
                return AgentText(seq=seq, at=at, kind=kind, text=text)
            case AgentToolStarted(tool_use_id=tool_use_id, tool=tool, input=tool_input):
                shown, full_size = cut_input(tool_input, self._max_bytes)
                return AgentToolCall(
                    seq=seq,
                    at=at,
                    tool_use_id=tool_use_id,
                    tool=tool,
                    input=shown,
                    input_truncated=full_size is not None,
                    full_size=UNSET if full_size is None else full_size,
                    child_agent_id=child_agent_id,
                )
            case AgentToolFinished(tool_use_id=tool_use_id, result=result, is_error=is_error):
                text, size = cut(result, self._max_bytes)
                return AgentToolResult(
                    seq=seq,
                    at=at,
                    tool_use_id=tool_use_id,
                    result=text,
                    is_error=is_error,
                    truncated=text != result,
                    full_size=size,
                )

    def _add(self, agent_id: str, make: Callable[[int], AgentEventItem]) -> None:
        seq = self._last.get(agent_id, 0) + 1
        item = make(seq)
        text = agent_items.to_json(item)
        self._last[agent_id] = seq
        self.waiting.append((agent_id, seq, text))
        self._waiting_bytes += len(text)
        if self._hub.is_followed(self._session_id, agent_id):
            frame = AgentEventFrame(session_id=self._session_id, agent_id=agent_id, item=item)
            self._hub.publish_agent(self._session_id, agent_id, frame)

    def written(self, count: int) -> None:
        """The first so many that wait are on disk."""
        self._waiting_bytes -= sum(len(text) for _, _, text in self.waiting[:count])
        del self.waiting[:count]

    def waiting_between(self, agent_id: str, first: int, last: int) -> dict[int, str]:
        return {seq: text for owner, seq, text in self.waiting if owner == agent_id and first <= seq <= last}


def page_bounds(before: int | None, after: int | None, limit: int, last: int) -> tuple[int, int]:
    """The numbers of the first and the last item of a page of a transcript that ends with ``last``."""
    if after is not None:
        return after + 1, min(last, after + limit)
    end = last if before is None else min(last, before - 1)
    return max(1, end - limit + 1), end


def read_page(
    db: apsw.Connection, agent_id: str, before: int | None, after: int | None, limit: int, last: int | None
) -> tuple[dict[int, str], int, int, int]:
    """What is on disk of a page, the page's bounds and the newest number; ``last`` None: the disk knows that."""
    newest = agent_items.last_seq(db, agent_id) if last is None else last
    first, end = page_bounds(before, after, limit, newest)
    return agent_items.between(db, agent_id, first, end), first, end, newest
