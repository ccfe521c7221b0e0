"""One live session: its queue is worked off here, one turn at a time, in the session's own nursery.

A recorded turn is always ended by a record: what begins in ``_one_turn`` ends in ``_finish``, also when the house
closes.
"""

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial

import trio
from attrs import define, field

from nerve.adapters.protocol import AgentClient, Capabilities, RuntimeGone
from nerve.contract.generated.entities import AgentEndReason
from nerve.contract.generated.frames_server import LoggedFrame, RemovalReason, SessionUpdatedFrame
from nerve.domain.agent_roster import StopOrder, deepest_first
from nerve.domain.agents import AgentRecord
from nerve.domain.turns import INTERRUPT_SECONDS, KILL_SECONDS, TurnState
from nerve.errors import ErrorCode, NerveError
from nerve.runtime import turn_stop
from nerve.runtime.announce import gone, publish_queue
from nerve.runtime.auto_turns import AutoEntry
from nerve.runtime.client import ClientSlot
from nerve.runtime.ending import RETRY_SECONDS, record_end
from nerve.runtime.event_log import SessionLog
from nerve.runtime.house import SYSTEM_ACTOR, House
from nerve.runtime.hub import Subscriber
from nerve.runtime.interactions import Interactions
from nerve.runtime.listening import Listener
from nerve.runtime.logs import LogBook
from nerve.runtime.roster import Roster
from nerve.runtime.roster_duties import RosterDuties
from nerve.runtime.turn import Reach, RunningTurn, TurnOutcome, TurnStopped, Waiter
from nerve.runtime.views import LiveState, opening, session_running
from nerve.store import turns, waiting
from nerve.store.turns import BegunTurn

log = logging.getLogger("nerve.runtime")

SILENT = "The agent's runtime was silent for too long."


class Phase(Enum):
    OPEN = "open"
    CLOSING = "closing"  # takes no further turn
    CLOSED = "closed"


@define(eq=False)
class SessionRunner:
    """``wanted`` is set when a message arrived while it was closing: its owner then starts another one."""

    session_id: str
    _house: House
    _logs: LogBook
    _sender: Callable[[str], Subscriber | None]  # who sent a queue entry, if that socket is still there
    _waiter: Callable[[str], Waiter | None]
    phase: Phase = Phase.OPEN
    wanted: bool = False
    resting: bool = False  # the queue is empty: what comes now starts at once
    turn: RunningTurn | None = None
    _base: str = ""  # the session's, or its runtime's own
    _asked: str = ""  # what the runtime was last asked to serve with
    closed: trio.Event = field(factory=trio.Event)
    slot: ClientSlot = field(init=False)
    interactions: Interactions = field(init=False)
    roster: Roster = field(init=False)
    duties: RosterDuties = field(init=False)
    _listener: Listener = field(init=False)
    _log: SessionLog = field(init=False)
    _beginning: bool = False  # a turn is being recorded
    _begun: trio.Event = field(factory=trio.Event)  # it is not any more
    _farewell: tuple[bool, str | None] = (False, None)  # how the last turn is recorded: interrupted, or failed of that
    _nursery: trio.Nursery | None = None
    _woken: trio.Event = field(factory=trio.Event)
    _pause: trio.CancelScope = field(factory=trio.CancelScope)

    def __attrs_post_init__(self) -> None:
        self.interactions = asked = Interactions(
            self.session_id, self._house, self._interactions_changed, lambda ref: self.roster.asking(ref)
        )
        self._listener = heard = Listener(
            self.session_id, self._house.limits.silence_seconds, lambda: self.turn, lambda: asked.waiting
        )
        self.roster = Roster(self.session_id, self._house, lambda: self._woken.set())
        self.duties = RosterDuties(
            self.roster,
            self._house,
            lambda: self.slot.client,
            lambda: self.turn is not None or self._beginning,
            lambda: heard.in_hand,
            self.runtime_gone,
        )
        self.slot = ClientSlot(
            self.session_id, self._house, asked.ask, heard.on_event, heard.on_lost, heard.on_replaced
        )

    def _interactions_changed(self) -> None:
        self._listener.heard()
        for record in self.roster.live:
            self.roster.needs_input(record, self.interactions.asked_by(record.ref))

    # --- for the supervisor ---------------------------------------------------------------------------------------

    @property
    def live(self) -> LiveState:
        return LiveState(
            self.turn is not None or self._beginning,
            self.interactions.waiting,
            self.roster.count,
            wakeup=self._house.schedule.pending(self.session_id),
        )

    @property
    def capabilities(self) -> Capabilities | None:
        """None until its runtime has said them."""
        return self._listener.capabilities

    def wake(self) -> None:
        """Something was put into the queue."""
        if self.phase is Phase.OPEN:
            self._woken.set()
        else:
            self.wanted = True

    async def run(self) -> None:
        """Work the queue off until ``close``, or until nothing has come for ``client_idle_seconds``."""
        try:
            self._log = await self._logs.hold(self.session_id)
            self.interactions.open(self._log)
            try:
                await self.duties.open()
                self._listener.listen(self._log, self.roster)
                await self._live()
            finally:
                self._log.refused = None
                self._logs.drop(self.session_id)
        finally:
            self.phase = Phase.CLOSED
            self.closed.set()

    async def _live(self) -> None:
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self._log.run, name=f"log {self.session_id}")
            self._nursery.start_soon(self.duties.run, name=f"agents {self.session_id}")
            await self._work()
            await self.slot.close()
            await self.interactions.close()
            await self.duties.finish()
            await self._log.flush()
            await self._house.database.write(turns.detached, self.session_id, self._house.effects.now())
            self._nursery.cancel_scope.cancel()

    async def stop_turn(self, turn: RunningTurn | None, order: StopOrder) -> TurnStopped:
        """Stop this turn, which ``running`` has given, and no later one.  Waits as ``turn_stop.stop`` does."""
        if turn is None or turn is not self.turn:
            return TurnStopped.NOT_RUNNING
        return await turn_stop.stop(self.slot, self.interactions, turn, self.roster, order)

    async def force(self) -> tuple[TurnStopped, list[str]]:
        """Cancel the turn, or close the runtime when no turn runs; everything in it ends: the ids of those agents."""
        turn = await self.running()
        live = [record.id for record in deepest_first(self.roster.live)]
        self._listener.ending = AgentEndReason.FORCE_STOP  # also of a runtime that takes its time to end
        came = await turn_stop.force(self.slot, turn)
        if self.slot.client is None:
            self.roster.interrupt_all(AgentEndReason.FORCE_STOP)  # what no runtime has told of
            self._listener.ending = AgentEndReason.PROCESS_ENDED
        await self.duties.save()
        left = {record.id for record in self.roster.live}
        return came, [agent_id for agent_id in live if agent_id not in left]

    async def runtime_gone(self) -> None:
        """The runtime does not answer any more: what lived in it is interrupted.  Waits at most ``KILL_SECONDS``."""
        self.roster.interrupt_all(AgentEndReason.PROCESS_ENDED)
        with trio.move_on_after(KILL_SECONDS):
            await self.slot.close()
        await self.duties.save()

    async def running(self) -> RunningTurn | None:
        """The turn that runs; one that is just being recorded is waited for."""
        if self.turn is None and self._beginning:
            with trio.move_on_after(INTERRUPT_SECONDS):
                await self._begun.wait()
        return self.turn

    async def close(self, agents: AgentEndReason, *, interrupted: bool = False, reason: str | None = None) -> None:
        """End the turn and the runtime, and return when both are gone; ``agents`` is why what lives in it ends.

        ``interrupted``: the house shuts down, and the turn is recorded so; ``reason``: the turn failed of that.
        """
        self._listener.ending = agents
        self.phase = Phase.CLOSING if self.phase is Phase.OPEN else self.phase
        self._pause.cancel()
        self._farewell = (interrupted, reason)
        turn = self.turn
        if turn is not None:
            turn.interrupted = turn.interrupted or interrupted
            turn.failure = turn.failure or reason
            self.roster.obey(StopOrder(agents, None, whole=False))
            await turn_stop.take_down(self.slot, self.interactions, turn, self._house.limits.drain_seconds)
        await self.closed.wait()

    # --- the work -------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while self.phase is Phase.OPEN:
            token: object | None = None
            with trio.CancelScope() as self._pause:
                if not await self._something_waits():
                    self.phase = Phase.CLOSING
                    return
                token = await self._take_slot()
            if token is None:
                continue
            try:
                if self.phase is Phase.OPEN:
                    await self._one_turn()
            finally:
                self._house.slots.release_on_behalf_of(token)

    async def _something_waits(self) -> bool:
        """True once the queue holds an entry; False after an idle time without any."""
        while True:
            self._woken = trio.Event()
            if await self._house.database.read(waiting.may_run, self.session_id) or self._settled:
                return True
            self.resting = True
            try:
                with trio.move_on_after(self._house.limits.client_idle_seconds) as scope:
                    await self._woken.wait()
            finally:
                self.resting = False
            # Woken in the same instant in which the time ran out, it has work after all.
            if scope.cancelled_caught and not self._woken.is_set() and not self.live.background_count:
                return False

    @property
    def _settled(self) -> tuple[AgentRecord, ...]:
        """Background work whose end makes the open runtime go on by itself."""
        news = self.roster.news()
        return () if self.slot.client is None else news

    async def _take_slot(self) -> object:
        token = object()
        try:
            self._house.slots.acquire_on_behalf_of_nowait(token)
        except trio.WouldBlock:
            await publish_queue(self._house, self.session_id)
            await self._house.slots.acquire_on_behalf_of(token)
        return token

    async def _begin(self, turn_id: str) -> tuple[BegunTurn, int] | None:
        """Record the head of the queue as begun; with it the number of the turn's first frame.

        Tries again while the disk is full or the database busy: the entry waits.  None: nothing waits, or it closes.
        """
        first_seq = 0

        def make(db: object) -> tuple[BegunTurn | None, list[LoggedFrame]]:
            nonlocal first_seq
            first_seq = self._log.last_seq + 1
            now, settled = self._house.effects.now(), self._settled
            begun = turns.begin(db, self.session_id, turn_id, first_seq, SYSTEM_ACTOR, now)  # type: ignore[arg-type]
            if begun is None and settled:
                entry = AutoEntry.of(self.session_id, turn_id, settled, now)
                begun = turns.begin_unasked(db, entry, turn_id, first_seq, now)  # type: ignore[arg-type]
            return begun, [] if begun is None else [opening(begun.entry, begun.attachments)]

        while self.phase is Phase.OPEN:
            self._beginning, self._begun = True, trio.Event()
            try:
                begun = await self._log.record_made(
                    make, skip=lambda b: None if b is None else self._sender(b.entry.id)
                )
                return None if begun is None else (begun, first_seq)
            except NerveError as refusal:
                if refusal.code not in (ErrorCode.STORE_FULL, ErrorCode.STORE_BUSY):
                    raise
            finally:
                self._beginning = False
                self._begun.set()
            await trio.sleep(RETRY_SECONDS)
        return None

    async def _one_turn(self) -> None:
        turn_id = self._house.effects.new_id("turn")
        self._log.turn_id = turn_id
        recorded = await self._begin(turn_id)
        if recorded is None:
            return
        begun, first_seq = recorded
        turn = self.turn = RunningTurn(turn_id, begun.entry, first_seq, begun.attachments)
        self.roster.turn_began(by_message=begun.user_message_id is not None)
        try:
            await self._announce(begun)
            if self.phase is Phase.OPEN:
                await self._converse(turn)
            else:  # closed while the turn was being recorded, when there was nothing to end yet
                turn.interrupted, turn.failure = self._farewell
        except trio.Cancelled:
            turn.interrupted = True  # the house falls, and did not ask the turn to end
            raise
        except Exception as exc:
            log.exception("turn failed: %s", turn.facts())
            turn.failure = turn.failure or (exc.message if isinstance(exc, NerveError) else "Internal error.")
        finally:
            await self._finish(turn)

    async def _announce(self, begun: BegunTurn) -> None:
        hub = self._house.hub
        if begun.scheduled:
            await self._house.schedule.refresh(self.session_id)
        if not isinstance(begun.entry, AutoEntry):
            await publish_queue(self._house, self.session_id, gone(begun.entry, RemovalReason.STARTED))
        self._tell_running()
        if begun.title is not None:
            hub.publish(self.session_id, SessionUpdatedFrame(session_id=self.session_id, title=begun.title))

    def _tell_running(self) -> None:
        self.duties.count_told()
        self._house.hub.publish_global(session_running(self.session_id, self.live))

    async def _converse(self, turn: RunningTurn) -> None:
        """Have the runtime play the turn; once more on a fresh runtime if it died before it said anything."""
        for attempt in (1, 2):
            stale = self.slot.client is not None
            try:
                with turn.scope, trio.CancelScope() as self._listener.silence:
                    self._listener.heard()
                    await self._prompt(turn)
                    await turn.ended.wait()
                if self._listener.silence.cancelled_caught:
                    turn.failure = turn.failure or SILENT
            except RuntimeGone as gone:
                turn.lose(gone)
            if attempt == 2 or not turn.may_retry(stale=stale):
                return
            await self.slot.close()
            turn.retry()

    async def _prompt(self, turn: RunningTurn) -> None:
        assert self._nursery is not None
        before = self.slot.client
        client = await self.slot.ensure(self._nursery)
        self._welcome(client, before)
        if client is not before or not self._listener.model:
            facts = await self._house.database.read(turns.runtime_facts, self.session_id)
            self._listener.model = self._base = facts.model or self._house.backends.adapter(facts.backend).default_model
            self._asked = self._base
        if turn.unwanted:
            turn.scope.cancel()  # nothing has been sent, so there is nothing to interrupt
            return
        entry = turn.entry
        # A message's own model is for its turn only: the next one asks for the session's again.
        model = entry.model or (self._base if self._asked != self._base else None)
        self._asked = entry.model or self._base
        turn.reach = Reach.SENDING
        await client.prompt(turn.prompt(model))
        turn.reach = Reach.SENT

    def _welcome(self, client: AgentClient, before: AgentClient | None) -> None:
        self._listener.capabilities = client.capabilities
        self.roster.serve(client.capabilities)
        if client is not before:
            self.roster.backend = self.slot.backend

    async def _finish(self, turn: RunningTurn) -> None:
        outcome = TurnOutcome(TurnState.FAILED, "", "Internal error.")
        try:
            if turn.reach is not Reach.UNSENT and turn.end is None:
                # The runtime may still be at this turn; what it does must not run into the next one.
                with trio.move_on_after(KILL_SECONDS, shield=True):
                    await self.slot.close()
            if self.slot.client is None or turn.end is not None or turn.reach is Reach.UNSENT:
                turn.over.set()
            await self.interactions.end(of_turn_only=True)
            outcome = await record_end(
                self._house, self._log, turn, self._listener.model, self.interactions, partial(self._settle, turn)
            )
        except Exception:
            log.exception("the end of a turn could not be recorded: %s", turn.facts())
        finally:
            # Nothing waits in here: what is recorded is told at once.
            self.turn = None
            self.roster.lift_order()
            turn.outcome = outcome
            self._log.turn_id = None
            self._tell_running()
            turn.finished.set()
            self._settle(turn, outcome)

    def _settle(self, turn: RunningTurn, outcome: TurnOutcome) -> None:
        waiter = self._waiter(turn.entry.id)
        if waiter is not None:
            waiter.settle(outcome)
