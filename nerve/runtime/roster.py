"""The agents of one live session: what the runtime tells of them becomes records and transcripts.

Nothing in here waits; ``roster_duties`` writes what has changed and then tells it.  A roster lives as long as its
session's runner, so it outlives turns and runtimes; of agents that live, it alone changes the records.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import trio
from attrs import define, field

from nerve.adapters.protocol import Capabilities
from nerve.adapters.subagents import (
    AgentActed,
    AgentEnded,
    AgentModelObserved,
    AgentOutcome,
    AgentProgressed,
    AgentResumed,
    AgentSpawned,
    AgentStarted,
    AgentToolStarted,
    SubagentEvent,
)
from nerve.contract.codec import instant
from nerve.contract.generated.entities import AgentAttention, AgentEndReason, AgentStatus
from nerve.contract.generated.frames_server import AskingAgent
from nerve.domain import agents
from nerve.domain.agent_kinds import activity
from nerve.domain.agent_roster import StopOrder, deepest_first, depth_below, stopping_ancestor, waited_for
from nerve.domain.agents import SUMMARY, AgentRecord, lifecycle
from nerve.domain.prices import output_cost
from nerve.runtime.agent_announcements import Announcements
from nerve.runtime.agent_transcripts import BATCH, Transcripts
from nerve.runtime.agent_views import is_resumable
from nerve.runtime.house import House
from nerve.store.agents import NO_TEXTS, AgentTexts

log = logging.getLogger("nerve.runtime")

SAVE_SECONDS = 0.25
CHECK_SECONDS = 2.0  # between two looks for agents that vanished
ENDS = {
    AgentOutcome.COMPLETED: (AgentStatus.COMPLETED, AgentEndReason.COMPLETED),
    AgentOutcome.FAILED: (AgentStatus.FAILED, AgentEndReason.ERROR),
    AgentOutcome.SPAWN_FAILED: (AgentStatus.FAILED, AgentEndReason.SPAWN_FAILED),
    AgentOutcome.STOPPED_BY_ORCHESTRATOR: (AgentStatus.STOPPED, AgentEndReason.ORCHESTRATOR),
}


@define(eq=False)
class Roster:
    """``settled`` are those of whose ends, since the last turn began, the orchestrator has to learn.

    ``on_settled`` is told when one of them makes it go on by itself.  ``unsaved``, ``texts`` and ``announcements`` are
    what is still to be written and told; ``born_stopping`` the refs that the runtime is still to be asked to stop,
    ``order`` the stop that stands.
    """

    session_id: str
    _house: House
    _on_settled: Callable[[], None]
    records: dict[str, AgentRecord] = field(factory=dict)
    opened: bool = False  # what is stored is known
    transcripts: Transcripts = field(init=False)
    settled: list[AgentRecord] = field(factory=list)
    _learned: int = 0  # how many of them the turn that is being recorded knows of
    backend: str = ""
    capabilities: Capabilities = field(factory=Capabilities)
    _ids: dict[str, str] = field(factory=dict)  # refs of the present runtime
    texts: dict[str, AgentTexts] = field(factory=dict)
    unsaved: dict[str, None] = field(factory=dict)
    announcements: Announcements = field(factory=Announcements)
    born_stopping: list[str] = field(factory=list)
    order: StopOrder | None = None
    save_due: float = math.inf
    check_due: float = math.inf
    stirred: trio.Event = field(factory=trio.Event)

    def __attrs_post_init__(self) -> None:
        self.transcripts = Transcripts(self.session_id, self._house.hub, self._house.limits.transcript_item_bytes)

    # --- what lives -----------------------------------------------------------------------------------------------

    def take_over(self, stored: Iterable[AgentRecord], last_seqs: Mapping[str, int]) -> None:
        """What an earlier runner of the session has left.  Of what seems to live the runtime is gone with it."""
        self.records.update({record.id: record for record in stored})
        for agent_id, seq in last_seqs.items():
            self.transcripts.begin(agent_id, seq)
        self.interrupt_all(AgentEndReason.PROCESS_ENDED)
        self.opened = True

    @property
    def live(self) -> list[AgentRecord]:
        return [record for record in self.records.values() if record.live]

    @property
    def count(self) -> int:
        """Live agents, housekeeping left out."""
        return sum(record.counts for record in self.records.values())

    @property
    def known(self) -> frozenset[str]:
        """The ids of those that the present runtime has started."""
        return frozenset(self._ids.values())

    def ref_of(self, agent_id: str) -> str | None:
        """The name by which the present runtime knows it."""
        return self.records[agent_id].ref if self._ids.get(self.records[agent_id].ref) == agent_id else None

    def of_ref(self, ref: str) -> AgentRecord | None:
        return self.records.get(self._ids.get(ref, ""))

    # --- what the runtime says ------------------------------------------------------------------------------------

    def hear(self, event: SubagentEvent) -> None:
        """Raises STORE_FULL when more waits for the disk than may."""
        now = self._house.effects.now()
        if isinstance(event, AgentSpawned):
            self._spawned(event, now)
            return
        record = self.of_ref(event.ref)
        if record is None:
            log.debug("session %s: the runtime told of an agent that it never started", self.session_id)
        elif isinstance(event, AgentResumed):
            if not record.live:
                self._put(agents.resumed(record, now))
        elif record.live:
            self._heard_of_live(record, event, now)

    def _spawned(self, event: AgentSpawned, now: datetime) -> None:
        if event.ref in self._ids:
            return
        parent = None if event.parent_ref is None else self.of_ref(event.parent_ref)
        record = AgentRecord(
            id=event.agent_id or self._house.effects.new_id("agent"),
            session_id=self.session_id,
            backend=self.backend,
            kind=event.kind,
            ref=event.ref,
            spawn_tool_use_id=event.spawn_tool_use_id,
            parent_agent_id=None if parent is None else parent.id,
            depth=depth_below(parent),
            name=event.name,
            description=event.description,
            agent_type=event.agent_type,
            command=event.command,
            background=event.background,
            ambient=event.ambient,
            requested_model=event.requested_model,
            created_at=now,
            rev=agents.next_rev(0, now),
        )
        self._ids[event.ref] = record.id
        self.texts[record.id] = AgentTexts(event.prompt, None)
        self.check_due = min(self.check_due, trio.current_time() + CHECK_SECONDS)
        self._put(self._born(record, now))

    def _born(self, record: AgentRecord, now: datetime) -> AgentRecord:
        """Stopping, if it appears under a stop.  The runtime is asked to end it unless the turn's end does that."""
        order, above = self.order, stopping_ancestor(self.records, record)
        if above is not None and above.stop_cause is not None:
            stopping = agents.stop_requested(record, above.stop_cause, above.stopped_by_actor_id, now)
        elif order is not None and order.reaches(self.records, record):
            stopping = agents.stop_requested(record, order.cause, order.actor_id, now)
        else:
            return record
        if order is None or not waited_for(self.records, record):
            self.born_stopping.append(record.ref)
        return stopping

    def _heard_of_live(self, record: AgentRecord, event: SubagentEvent, now: datetime) -> None:
        match event:
            case AgentStarted():
                known = {"task_id": event.task_id, "task_type": event.task_type, "model": event.model}
                facts: dict[str, Any] = {key: value for key, value in known.items() if value is not None}
                if event.output_path is not None:
                    facts["output_path"] = str(event.output_path)
                self._put(agents.started(record, now, **facts))
            case AgentActed(deed=deed):
                child = None
                values: dict[str, Any] = {"last_activity_at": now}
                if isinstance(deed, AgentToolStarted):
                    child = self._spawned_by(deed.tool_use_id)
                    values |= {"activity": activity(deed.tool, deed.input), "tool_uses": record.tool_uses + 1}
                self.transcripts.deed(record.id, deed, now, child)
                self._put(agents.changed(record, now, **values), urgent=False)
            case AgentProgressed():
                self._put(_progressed(record, event, now), urgent=False)
            case AgentModelObserved(model=model):
                self._put(_served_by(record, model, now), urgent=False)
            case AgentEnded():
                self._ended(record, event, now)

    def _spawned_by(self, tool_use_id: str) -> str | None:
        calls = (r.id for r in reversed(self.records.values()) if r.spawn_tool_use_id == tool_use_id)
        return next(calls, None)

    def _ended(self, record: AgentRecord, event: AgentEnded, now: datetime) -> None:
        status, reason = ENDS.get(event.outcome) or agents.stopped(record)
        if event.result is not None:
            self.texts[record.id] = self.texts.get(record.id, NO_TEXTS).with_(AgentTexts(None, event.result))
        self._settle(agents.ended(record, status, reason, now, result=event.result, error=event.error))

    def _settle(self, record: AgentRecord) -> None:
        self._put(record)
        if agents.is_news(record):
            self.settled.append(record)
        if agents.starts_turn(record):
            self._on_settled()

    def news(self) -> tuple[AgentRecord, ...]:
        """What a turn that begins now has to tell of ends; nothing unless one of them makes it begin by itself."""
        self._learned = len(self.settled)
        return tuple(self.settled) if any(agents.starts_turn(record) for record in self.settled) else ()

    # --- what the house says --------------------------------------------------------------------------------------

    def stopping(self, targets: Iterable[AgentRecord], cause: AgentEndReason, actor_id: str | None) -> list[str]:
        """The targets are asked to stop; the ids of those that are stopping now."""
        now = self._house.effects.now()
        asked = []
        for record in targets:
            if self.records[record.id].live:
                self._put(agents.stop_requested(self.records[record.id], cause, actor_id, now))
                asked.append(record.id)
        return asked

    def obey(self, order: StopOrder) -> None:
        """What the order reaches is stopping, and what it reaches later is born so, until it is lifted."""
        self.stand(order)
        self.stopping(order.targets(self.records), order.cause, order.actor_id)

    def stand(self, order: StopOrder) -> None:
        self.order = order if self.order is None else self.order.widened_by(order)

    def lift_order(self) -> None:
        self.order = None

    def interrupt_all(self, reason: AgentEndReason) -> list[str]:
        """The runtime is gone, and with it whatever lived in it; the ids of those, deepest first."""
        now = self._house.effects.now()
        gone = [record.id for record in deepest_first(self.live)]
        for agent_id in gone:
            self._put(agents.interrupted(self.records[agent_id], reason, now))
        for record in [self.records[agent_id] for agent_id in self._ids.values() if agent_id in self.records]:
            if is_resumable(record, self.capabilities):
                self._put(agents.changed(record, now))  # not any more
        self._ids.clear()
        self.born_stopping.clear()
        return gone

    def serve(self, capabilities: Capabilities) -> None:
        """What the runtime can do from here on; what may be done with each agent follows from that."""
        if capabilities != self.capabilities:
            self.capabilities, now = capabilities, self._house.effects.now()
            for record in list(self.records.values()):
                self._put(agents.changed(record, now))

    def forget(self, not_after: datetime) -> None:
        """Those that ended before are the clean-up's."""
        pending = self.unsaved.keys() | self.announcements.dirty.keys()
        for record in list(self.records.values()):
            if record.ended_at is not None and record.ended_at < not_after and record.id not in pending:
                del self.records[record.id]

    def vanished(self, ref: str) -> None:
        """The runtime does not know it any more and never said that it ended."""
        record = self.of_ref(ref)
        if record is not None and record.live:
            now = self._house.effects.now()
            self._settle(agents.ended(record, AgentStatus.LOST, AgentEndReason.VANISHED, now))

    def mark_unconfirmed(self) -> None:
        """Stops that should have been confirmed by now want attention."""
        now = self._house.effects.now()
        for record in self.live:
            if agents.overdue(record, now):
                self._put(agents.changed(record, now, attention=AgentAttention.STOP_UNCONFIRMED))

    def turn_began(self, *, by_message: bool) -> None:
        """What had settled when it was recorded is its affair now; a message acknowledges what wanted attention."""
        del self.settled[: self._learned]
        self._learned = 0
        if by_message:
            now = self._house.effects.now()
            for record in list(self.records.values()):
                self._put(agents.acknowledged(record, now))

    def asking(self, ref: str) -> AskingAgent:
        """Who asks, for those who are to answer."""
        record = self.of_ref(ref)
        if record is None:
            return AskingAgent(agent_id=None, task_id=ref, label=ref)
        return AskingAgent(agent_id=record.id, task_id=record.task_id or ref, label=record.label)

    def needs_input(self, record: AgentRecord, waits: bool) -> None:
        """An interaction of that live agent waits for an answer, or none does any more."""
        attention = AgentAttention.NEEDS_INPUT if waits else None
        if record.attention in (None, AgentAttention.NEEDS_INPUT) and record.attention is not attention:
            self._put(agents.changed(record, self._house.effects.now(), attention=attention))

    def _put(self, record: AgentRecord, *, urgent: bool = True) -> None:
        before = self.records.get(record.id)
        if record is before:
            return
        self.records[record.id] = record
        self.unsaved[record.id] = None
        if record.status is not AgentStatus.STARTING and (before is None or _moved(before, record)):
            self.transcripts.life(record.id, lifecycle(record), self._house.effects.now())
        if record.counts != (before is not None and before.counts):
            self.announcements.count_changed()
        self.announcements.changed(record.id, self.count, urgent=urgent)
        full = len(self.transcripts.waiting) >= BATCH
        self.save_due = min(self.save_due, trio.current_time() + (0 if full else SAVE_SECONDS))
        self.stirred.set()


def _moved(before: AgentRecord, after: AgentRecord) -> bool:
    if before.status is not after.status:
        return True
    return after.status is AgentStatus.STOPPING and before.stop_requested_at != after.stop_requested_at


def _progressed(record: AgentRecord, event: AgentProgressed, now: datetime) -> AgentRecord:
    values: dict[str, Any] = {
        "activity": event.activity and event.activity[: agents.ACTIVITY],
        "summary": event.summary and event.summary[:SUMMARY],
        "tokens": event.tokens,
        "tool_uses": event.tool_uses,
        "cost_usd": _cost(record, event),
        "workflow": event.workflow,
    }
    told = {key: value for key, value in values.items() if value is not None}
    return agents.changed(record, now, last_activity_at=now, **told)


def _cost(record: AgentRecord, event: AgentProgressed) -> float | None:
    """As the runtime says; where it doesn't, what is new since is priced (gaps.md 6.9)."""
    if event.cost_usd is not None or event.tokens is None:
        return event.cost_usd
    fresh = max(0, event.tokens - record.tokens)
    return record.cost_usd + output_cost(record.model or record.requested_model, fresh)


def _served_by(record: AgentRecord, model: str, now: datetime) -> AgentRecord:
    if record.model in (None, model):
        return agents.changed(record, now, model=model)
    change = {"from": record.model, "to": model, "at": instant(now)}
    return agents.changed(record, now, model=model, model_changed=change)
