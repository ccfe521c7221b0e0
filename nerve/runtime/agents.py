"""The agents of sessions as they are asked for: lists, one agent, transcript pages, output, stops of one.

What a live session holds in memory counts; of a session at rest, what is stored.
"""

import logging
from collections.abc import Callable, Collection

import apsw
import trio
from attrs import define, frozen

from nerve.adapters.protocol import AgentClient, Capabilities, RuntimeGone
from nerve.contract.generated.agents import AgentDetails, AgentOutput, TranscriptPage
from nerve.contract.generated.entities import AgentEndReason, AgentSnapshot, AgentView
from nerve.domain.agent_roster import outliving_the_turn, reach
from nerve.domain.agents import AgentRecord
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.agent_output import output_tail
from nerve.runtime.agent_transcripts import read_page
from nerve.runtime.agent_views import agent_snapshot, agent_view
from nerve.runtime.house import House
from nerve.runtime.roster import Roster
from nerve.runtime.session import SessionRunner
from nerve.runtime.views import queue_entries
from nerve.store import agents as rows
from nerve.store import waiting
from nerve.store.agent_items import from_json
from nerve.store.agents import NO_TEXTS, AgentTexts
from nerve.store.queue import QueuedMessage

log = logging.getLogger("nerve.runtime")

SNAPSHOT_LIMIT = 200
ASK_SECONDS = 3.0  # how long the runtime may take to hear of a stop


@frozen
class StopAsked:
    """``stopping`` is empty for an agent that had ended already."""

    agent: AgentView
    stopping: list[str]


@define(eq=False)
class Agents:
    """``_runner`` finds the live session."""

    _house: House
    _runner: Callable[[str], SessionRunner | None]

    # --- reading --------------------------------------------------------------------------------------------------

    def roster(self, session_id: str) -> Roster | None:
        runner = self._runner(session_id)
        return runner.roster if runner is not None and runner.roster.opened else None

    def client(self, session_id: str) -> AgentClient | None:
        runner = self._runner(session_id)
        return None if runner is None else runner.slot.client

    def background(self, session_id: str) -> int:
        """How many live agents a new model of the session would end."""
        roster = self.roster(session_id)
        return 0 if roster is None else len(outliving_the_turn(roster.records))

    def capabilities(self, session_id: str) -> Capabilities:
        """What the session's runtime can do: as the open client says, else as its adapter promises."""
        runner = self._runner(session_id)
        said = None if runner is None else runner.capabilities
        return Capabilities() if said is None else said

    async def snapshot(self, session_id: str, limit: int = SNAPSHOT_LIMIT) -> AgentSnapshot:
        """Raises SESSION_NOT_FOUND."""
        await self.save(session_id)
        stored, queued = await self._house.database.read(_read_roster, session_id)
        return self.snapshot_of(session_id, stored, queued, limit)

    def snapshot_of(
        self,
        session_id: str,
        stored: Collection[AgentRecord],
        queued: list[QueuedMessage],
        limit: int = SNAPSHOT_LIMIT,
    ) -> AgentSnapshot:
        """``stored`` is what the disk knows; a live roster knows better."""
        roster = self.roster(session_id)
        return agent_snapshot(
            session_id,
            stored if roster is None else roster.records.values(),
            limit,
            self.capabilities(session_id),
            known=() if roster is None else roster.known,
            quiet_after_minutes=self._house.limits.quiet_after_minutes,
            queue=queue_entries(queued),
            now=self._house.effects.now(),
        )

    async def find(self, session_id: str, agent_id: str) -> tuple[AgentRecord, AgentTexts]:
        """Perhaps not written yet.  Raises SESSION_NOT_FOUND, AGENT_NOT_FOUND, AGENT_IN_OTHER_SESSION."""
        roster = self.roster(session_id)
        try:
            record, texts = await self._house.database.read(rows.get, session_id, agent_id)
        except NerveError as error:
            if error.code is not ErrorCode.AGENT_NOT_FOUND:
                raise
            live = None if roster is None else roster.records.get(agent_id)
            if live is None or roster is None:
                raise await self._not_stored(session_id, agent_id) from None
            return live, roster.texts.get(agent_id, NO_TEXTS)
        if roster is not None:
            record, texts = roster.records.get(agent_id, record), texts.with_(roster.texts.get(agent_id, NO_TEXTS))
        return record, texts

    async def _not_stored(self, session_id: str, agent_id: str) -> NerveError:
        """What to say of an agent that is not on disk: it may be a new one of the session this one was forked from."""
        for owner in await self._house.database.read(rows.ancestors, session_id):
            roster = self.roster(owner)
            if roster is not None and agent_id in roster.records:
                return NerveError(ErrorCode.AGENT_IN_OTHER_SESSION, owner_session_id=owner)
        return NerveError(ErrorCode.AGENT_NOT_FOUND)

    async def save(self, session_id: str) -> None:
        """What is told of agents has to be on disk, unless that refuses it for now."""
        runner = self._runner(session_id)
        if runner is not None:
            await runner.duties.save()

    def view(self, record: AgentRecord) -> AgentView:
        roster = self.roster(record.session_id)
        known = roster is not None and record.id in roster.known
        return agent_view(record, self.capabilities(record.session_id), known=known)

    async def details(self, session_id: str, agent_id: str) -> AgentDetails:
        """Raises what ``find`` raises."""
        await self.save(session_id)
        record, texts = await self.find(session_id, agent_id)
        return AgentDetails(agent=self.view(record), prompt=texts.prompt, result_text=texts.result_text)

    async def transcript(
        self, session_id: str, agent_id: str, before: int | None, after: int | None, limit: int
    ) -> TranscriptPage:
        """What waits to be written is included.  Raises what ``find`` raises."""
        await self.find(session_id, agent_id)
        roster = self.roster(session_id)
        last = None if roster is None else roster.transcripts.last_seq(agent_id)
        # Between this read and what waits in memory nothing is written: reads return without giving way.
        texts, first, end, newest = await self._house.database.read(read_page, agent_id, before, after, limit, last)
        if roster is not None:
            texts = texts | roster.transcripts.waiting_between(agent_id, first, end)
        items = [from_json(texts[seq]) for seq in sorted(texts)]
        return TranscriptPage(
            agent_id=agent_id,
            items=items,
            first_seq=items[0].seq if items else None,
            last_seq=items[-1].seq if items else None,
            has_more_before=first > 1 and newest > 0,
        )

    async def output(self, session_id: str, agent_id: str, tail_bytes: int) -> AgentOutput:
        """Raises what ``find`` raises, and NOT_A_SHELL."""
        record, _ = await self.find(session_id, agent_id)
        if not record.is_shell:
            raise NerveError(ErrorCode.NOT_A_SHELL)
        tail = await self._house.effects.blocking(output_tail, record.output_path, record.task_id, tail_bytes)
        return AgentOutput(
            agent_id=agent_id, text=tail.text, size=tail.size, truncated=tail.truncated, available=tail.available
        )

    # --- stopping one ---------------------------------------------------------------------------------------------

    async def stop(self, session_id: str, agent_id: str, actor_id: str | None, *, cascade: bool) -> StopAsked:
        """Ask the runtime to end the agent, with ``cascade`` what it started first; the records are stopping then.

        Raises what ``find`` raises, UNSUPPORTED, and NO_RUNTIME once the records are settled as interrupted.
        """
        record, _ = await self.find(session_id, agent_id)
        if not record.live:
            return StopAsked(self.view(record), [])
        runner = self._runner(session_id)
        if runner is None or not runner.roster.opened or runner.slot.client is None:
            await self._settle_lost(session_id, runner)
            raise NerveError(ErrorCode.NO_RUNTIME)
        if not self.capabilities(session_id).stop_task:
            raise NerveError(ErrorCode.UNSUPPORTED)
        roster = runner.roster
        targets = reach(roster.records, agent_id) if cascade else [roster.records[agent_id]]
        asked = roster.stopping(targets, AgentEndReason.USER, actor_id)
        try:
            await ask_to_stop(runner.slot.client, roster, asked, spare_children=not cascade)
        except RuntimeGone:
            await runner.runtime_gone()
            raise NerveError(ErrorCode.NO_RUNTIME) from None
        await runner.duties.save()
        return StopAsked(self.view(roster.records[agent_id]), asked)

    async def _settle_lost(self, session_id: str, runner: SessionRunner | None) -> None:
        if runner is not None and runner.roster.opened:
            await runner.runtime_gone()
            return
        now = self._house.effects.now()
        await self._house.database.write(rows.interrupt_live, AgentEndReason.PROCESS_ENDED, now, session_id)


async def ask_to_stop(client: AgentClient, roster: Roster, asked: list[str], *, spare_children: bool = False) -> None:
    """Ask in this order.  Waits ``ASK_SECONDS`` at most: what is not heard by then stays unconfirmed.

    Raises RuntimeGone.
    """
    with trio.move_on_after(ASK_SECONDS):
        for agent_id in asked:
            ref = roster.ref_of(agent_id)
            if ref is not None:
                await client.stop_agent(ref, spare_children=spare_children)


def _read_roster(db: apsw.Connection, session_id: str) -> tuple[list[AgentRecord], list[QueuedMessage]]:
    return rows.of_session(db, session_id), waiting.listed(db, session_id)
