"""What a roster needs done in time: written, told, its stops and its vanished agents looked after."""

import logging
import math
from collections.abc import Awaitable, Callable
from datetime import datetime

import apsw
import trio
from attrs import define, field, frozen

from nerve.adapters.protocol import AgentClient, RuntimeGone
from nerve.contract.generated.entities import AgentAttention, AgentStatus
from nerve.contract.generated.frames_server import AgentUpdateFrame, BackgroundTasksUpdateFrame, SessionAgentsFrame
from nerve.domain.agent_roster import deepest_first, summarised
from nerve.domain.agents import KEPT_ENDED, UNCONFIRMED_SECONDS, AgentRecord
from nerve.errors import NerveError
from nerve.runtime.agent_views import agent_view, background_tasks
from nerve.runtime.house import House
from nerve.runtime.roster import CHECK_SECONDS, SAVE_SECONDS, Roster
from nerve.store import agent_items
from nerve.store import agents as rows
from nerve.store.agents import AgentTexts

log = logging.getLogger("nerve.runtime")

ASK_SECONDS = 1.0  # how long the runtime may take to answer


@frozen
class News:
    """What is to be told, as it stood at one moment: what changes while that is written is told later.

    ``settled``: a status is among it.
    """

    changed: list[AgentRecord]
    everybody: list[AgentRecord]
    settled: bool


@define(eq=False)
class RosterDuties:
    """``client`` gives the open runtime, ``in_turn`` whether a turn runs, ``in_hand`` the event that is being heard.

    ``gone`` is told that the runtime does not answer any more.  One task carries the duties out: ``run``.
    """

    _roster: Roster
    _house: House
    _client: Callable[[], AgentClient | None]
    _in_turn: Callable[[], bool]
    _in_hand: Callable[[], object | None]
    _gone: Callable[[], Awaitable[None]]
    _held_up: object | None = None  # the event in hand at the last look
    _missing: frozenset[str] = frozenset()  # refs that the runtime did not know at the last look
    _told_count: int = 0
    _hold: float = -math.inf  # the disk refused: nothing is tried before
    _saving: trio.Lock = field(factory=trio.Lock)

    async def open(self) -> None:
        """Read what is stored.  Raises SESSION_NOT_FOUND."""
        self._roster.take_over(*await self._house.database.read(_stored, self._roster.session_id))

    async def run(self) -> None:
        """Until cancelled.  Raises what is no refusal of the store."""
        roster = self._roster
        while True:
            roster.stirred = trio.Event()
            with trio.move_on_at(self._next_duty()):
                await roster.stirred.wait()
            if self._next_duty() <= trio.current_time():
                await self._duties()

    def _next_duty(self) -> float:
        roster = self._roster
        told = (roster.announcements.due, roster.announcements.count_due)
        due = min(*told, roster.save_due, roster.check_due, self._unconfirmed_due())
        return max(-math.inf if roster.born_stopping else due, self._hold)

    def _unconfirmed_due(self) -> float:
        """When the next stop should have been confirmed."""
        now = self._house.effects.now()
        waits = [
            UNCONFIRMED_SECONDS - (now - record.stop_requested_at).total_seconds()
            for record in self._roster.records.values()
            if record.status is AgentStatus.STOPPING
            and record.attention is not AgentAttention.STOP_UNCONFIRMED
            and record.stop_requested_at is not None
        ]
        return trio.current_time() + max(0.0, min(waits)) if waits else math.inf

    async def _duties(self) -> None:
        now = trio.current_time()
        await self._stop_the_born()
        self._roster.mark_unconfirmed()
        if self._roster.check_due <= now:
            await self._look_for_vanished()
        news = self._news() if self._roster.announcements.due <= now else None
        if not await self.save():
            if news is not None:
                self._roster.announcements.put_back([record.id for record in news.changed], news.settled)
            return
        if news is not None:
            self._tell(news)
        if self._roster.announcements.count_due <= now:
            self._tell_count()

    async def finish(self) -> None:
        """Write and tell the last of it.  What the disk refuses now, the next start finds live and interrupts."""
        news = self._news()
        if await self.save() and news.changed:
            self._tell(news)
            self._tell_count()

    # --- the disk -------------------------------------------------------------------------------------------------

    async def save(self) -> bool:
        """Write what has changed; False if the disk refused it: it is then tried again a little later."""
        roster = self._roster
        async with self._saving:
            roster.forget(self._kept_since())
            changed = [roster.records[agent_id] for agent_id in roster.unsaved if agent_id in roster.records]
            items, texts = list(roster.transcripts.waiting), dict(roster.texts)
            roster.save_due = math.inf
            if not changed and not items:
                return True
            try:
                gone = await self._house.database.write(self._write, changed, items, texts)
            except NerveError as refusal:
                log.warning("agents of session %s are not recorded yet: %s", roster.session_id, refusal.message)
                self._hold = roster.save_due = trio.current_time() + SAVE_SECONDS
                return False
            self._saved(changed, len(items), texts)
            for agent_id in gone:
                roster.records.pop(agent_id, None)
            return True

    def _saved(self, changed: list[AgentRecord], items: int, texts: dict[str, AgentTexts]) -> None:
        """What has changed again meanwhile stays to be written."""
        roster = self._roster
        for record in changed:
            if roster.records.get(record.id) is record:
                roster.unsaved.pop(record.id, None)
        roster.texts = {key: text for key, text in roster.texts.items() if texts.get(key) is not text}
        roster.transcripts.written(items)

    def _write(
        self, db: object, changed: list[AgentRecord], items: list[tuple[str, int, str]], texts: dict[str, AgentTexts]
    ) -> list[str]:
        rows.save(db, changed, items, texts)  # type: ignore[arg-type]
        if len(self._roster.records) <= KEPT_ENDED:
            return []
        return rows.prune(db, self._roster.session_id, KEPT_ENDED, self._kept_since())  # type: ignore[arg-type]

    def _kept_since(self) -> datetime:
        return self._house.effects.now() - self._house.limits.ended_agents_kept

    # --- sockets --------------------------------------------------------------------------------------------------

    def _news(self) -> News:
        changed, settled = self._roster.announcements.take()
        records = self._roster.records
        return News([records[each] for each in changed if each in records], list(records.values()), settled)

    def _tell(self, news: News) -> None:
        roster, hub = self._roster, self._house.hub
        session_id = roster.session_id
        if not hub.has_bound(session_id):
            return
        known = roster.known
        views = [agent_view(r, roster.capabilities, known=r.id in known) for r in news.changed]
        summary = summarised(news.everybody)
        hub.publish(session_id, AgentUpdateFrame(session_id=session_id, agents=views, summary=summary))
        if news.settled:
            live = [record for record in news.everybody if record.live]
            shown = {r.id: r for r in (*live, *news.changed) if r.background and not r.ambient}
            tasks = background_tasks(shown.values())
            hub.publish(session_id, BackgroundTasksUpdateFrame(session_id=session_id, tasks=tasks))

    def _tell_count(self) -> None:
        self._roster.announcements.count_due = math.inf
        count = self._roster.count
        if count == self._told_count or self._in_turn():
            return  # the end of the turn tells it
        self._told_count = count
        session_id = self._roster.session_id
        self._house.hub.publish_global(
            SessionAgentsFrame(session_id=session_id, background_count=count, has_background_tasks=count > 0)
        )

    def count_told(self) -> None:
        """``session_running`` has told how many live."""
        self._told_count = self._roster.count

    # --- the runtime ----------------------------------------------------------------------------------------------

    async def _stop_the_born(self) -> None:
        client, refs = self._client(), list(self._roster.born_stopping)
        self._roster.born_stopping.clear()
        if client is None:
            return
        for ref in refs:
            with trio.move_on_after(ASK_SECONDS):
                try:
                    await client.stop_agent(ref)
                except RuntimeGone:
                    await self._gone()
                    return

    async def _look_for_vanished(self) -> None:
        """One that the runtime doesn't know at two looks in a row has vanished."""
        roster, client = self._roster, self._client()
        roster.check_due = trio.current_time() + CHECK_SECONDS if roster.live else math.inf
        held_up, self._held_up = self._held_up, self._in_hand()
        if held_up is not None and held_up is self._held_up:
            self._missing = frozenset()  # what it says is not heard at present, ends of agents among it
            return
        if client is None or not roster.live:
            return
        asked = frozenset(record.ref for record in roster.live if record.status is not AgentStatus.STARTING)
        known: frozenset[str] | None = None
        with trio.move_on_after(ASK_SECONDS):
            known = await client.live_agents()
        if known is None:
            return
        missing = asked - known
        for record in deepest_first(roster.live):
            if record.ref in missing & self._missing:
                roster.vanished(record.ref)
        self._missing = missing


def _stored(db: apsw.Connection, session_id: str) -> tuple[list[AgentRecord], dict[str, int]]:
    """The session's agents, and how far the transcripts of those go that seem to live."""
    found = rows.of_session(db, session_id)
    return found, {record.id: agent_items.last_seq(db, record.id) for record in found if record.live}
