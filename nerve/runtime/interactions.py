"""What a live session asks of people: told, waited for, answered once, and settled whatever happens.

Waiting depends on no socket.  Each end of a wait is on record before anybody is told of it; one that the disk refuses
is recorded with the turn's end, or found at the next start.
"""

import logging
from collections.abc import Callable, Sequence

import apsw
import trio
from attrs import define, field

from nerve.adapters.protocol import Allowed, Denied, InteractionReply, InteractionRequest
from nerve.contract.caller import Caller
from nerve.contract.frames import encode_logged
from nerve.contract.generated.entities import InteractionType
from nerve.contract.generated.frames_server import (
    AskingAgent,
    InteractionFrame,
    InteractionResolvedFrame,
    LoggedFrame,
    PlanSummaryFrame,
    PlanSummaryStatus,
    SessionAwaitingInputFrame,
)
from nerve.domain import answers
from nerve.domain.answers import PersonsAnswer
from nerve.errors import NerveError
from nerve.runtime.event_log import SessionLog
from nerve.runtime.house import House
from nerve.store import interactions, session_events

log = logging.getLogger("nerve.runtime")

WAIT_SECONDS = 3600.0


class UnknownInteraction(Exception):
    """It was never asked here, or is settled already."""


@define(eq=False)
class _Waiting:
    """``reply`` is set once it is known what the runtime gets; ``settled`` wakes whoever asked."""

    request: InteractionRequest
    frame: InteractionFrame
    seq: int
    reply: InteractionReply | None = None
    settled: trio.Event = field(factory=trio.Event)

    @property
    def id(self) -> str:
        return self.frame.interaction_id

    def settle(self, reply: InteractionReply) -> None:
        if self.reply is None:
            self.reply = reply
        self.settled.set()


@define(eq=False)
class Interactions:
    """``_changed`` is called when something began or ceased to wait; ``agent`` finds who asks.

    ``unsettled`` are those whose end the disk refused.
    """

    session_id: str
    _house: House
    _changed: Callable[[], None]
    agent: Callable[[str], AskingAgent]
    unsettled: list[str] = field(factory=list)
    _log: SessionLog | None = None
    _waiting: dict[str, _Waiting] = field(factory=dict)
    _settling: trio.Lock = field(factory=trio.Lock)

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def asked_by(self, agent_ref: str) -> bool:
        """Whether this sub-agent waits for a person."""
        return any(each.request.agent_ref == agent_ref for each in self._waiting.values())

    def pending(self) -> list[tuple[int, bytes]]:
        """The frames of those that wait, each with its number, ascending."""
        return [(each.seq, encode_logged(each.frame, each.seq)) for each in self._waiting.values()]

    def open(self, session_log: SessionLog) -> None:
        """From here on questions are taken."""
        self._log = session_log

    async def close(self) -> None:
        """Settle what still waits as interrupted, and take no further question."""
        await self.end(of_turn_only=False)
        self._log = None

    async def end(self, *, of_turn_only: bool) -> None:
        """``deny``, and return when the ends are on record: they come before the end of whatever asked."""
        self.deny(of_turn_only=of_turn_only)
        for each in [each for each in self._waiting.values() if each.reply is not None]:
            await self._end(each)

    # --- asking ---------------------------------------------------------------------------------------------------

    async def ask(self, request: InteractionRequest) -> InteractionReply:
        """Wait for the answer, ``WAIT_SECONDS`` at most.  Cancelled, the question is settled before this returns."""
        session_log = self._log
        if session_log is None:
            return Denied(answers.INTERRUPTED)
        try:
            waiting = await self._begin(session_log, request)
        except NerveError as refused:
            return Denied(refused.message)
        if waiting is None:
            return Denied(answers.NOBODY_THERE)
        try:
            with trio.move_on_after(WAIT_SECONDS):
                await waiting.settled.wait()
        finally:
            await self._end(waiting)
        return waiting.reply or Denied(answers.TIMED_OUT)

    async def _begin(self, session_log: SessionLog, request: InteractionRequest) -> _Waiting | None:
        """Record the question and tell it; None where nobody could answer."""
        frame = self._frame(request)
        first = 0

        def make(db: apsw.Connection) -> tuple[bool, Sequence[LoggedFrame]]:
            nonlocal first
            if interactions.source(db, self.session_id) in answers.UNATTENDED:
                return False, []
            first = session_log.last_seq + 1
            now = self._house.effects.now()
            interactions.begin(db, self.session_id, frame.interaction_id, first, session_log.turn_id, now)
            return True, self._asked(frame)

        if not await session_log.record_made(make):
            return None
        # Nothing waits between the publication and this, so no answer and no reader can come too early.
        waiting = self._waiting[frame.interaction_id] = _Waiting(request, frame, first)
        if len(self._waiting) == 1:
            self._tell(awaiting=True)
        self._changed()
        return waiting

    def _frame(self, request: InteractionRequest) -> InteractionFrame:
        return InteractionFrame(
            session_id=self.session_id,
            interaction_id=self._house.effects.new_id("interaction"),
            interaction_type=request.kind,
            tool_name=request.tool_name,
            tool_input=request.tool_input,
            agent=None if request.agent_ref is None else self.agent(request.agent_ref),
        )

    def _asked(self, frame: InteractionFrame) -> list[LoggedFrame]:
        """The question; after a plan also its summary, which nobody can write without a model."""
        if frame.interaction_type is not InteractionType.PLAN_EXIT:
            return [frame]
        summary = PlanSummaryFrame(
            session_id=self.session_id,
            interaction_id=frame.interaction_id,
            bullets=[],
            status=PlanSummaryStatus.UNAVAILABLE,
        )
        return [frame, summary]

    # --- settling -------------------------------------------------------------------------------------------------

    async def answer(self, interaction_id: str, answer: PersonsAnswer, by: Caller) -> None:
        """Settle it as a person says, on record when this returns.

        Raises UnknownInteraction, ``answers.BadAnswer``, and NerveError where the disk refuses it (it still waits).
        """
        waiting = self._waiting.get(interaction_id)
        if waiting is None:
            raise UnknownInteraction
        reply = _reply(waiting.request, answer)
        async with self._settling:
            if interaction_id not in self._waiting or waiting.reply is not None:
                raise UnknownInteraction
            await self._record_end(waiting, by, denied=isinstance(reply, Denied))
            self._settled(waiting, reply)

    def deny(self, *, of_turn_only: bool) -> None:
        """Answer what waits as interrupted; ``of_turn_only`` leaves alone what sub-agents ask, whom a stop spares."""
        for each in self._waiting.values():
            if not of_turn_only or each.request.agent_ref is None:
                each.settle(Denied(answers.INTERRUPTED))

    async def _end(self, waiting: _Waiting) -> None:
        """Put the end on record unless an answer has done so."""
        with trio.CancelScope(shield=True):
            async with self._settling:
                if waiting.id not in self._waiting:
                    return
                try:
                    await self._record_end(waiting)
                except NerveError as refused:
                    log.warning("session %s: the end of a question is not recorded: %s", self.session_id, refused)
                    self.unsettled.append(waiting.id)
                self._settled(waiting, waiting.reply or Denied(answers.TIMED_OUT))

    async def _record_end(self, waiting: _Waiting, by: Caller | None = None, *, denied: bool = False) -> None:
        assert self._log is not None
        await self._log.record(self.resolved([waiting.id]), self._write_end, waiting, by, denied)

    def _write_end(self, db: apsw.Connection, waiting: _Waiting, by: Caller | None, denied: bool) -> None:
        interactions.end(db, [waiting.id])
        if by is not None:
            session_events.record(
                db,
                self.session_id,
                "interaction_answered",
                {
                    "interaction_id": waiting.id,
                    "interaction_type": waiting.request.kind.value,
                    "denied": denied,
                },
                actor_id=by.actor_id,
                caused_by_actor_id=by.cause_id,
                now=self._house.effects.now(),
            )

    def resolved(self, interaction_ids: Sequence[str]) -> list[LoggedFrame]:
        return [InteractionResolvedFrame(session_id=self.session_id, interaction_id=each) for each in interaction_ids]

    def _settled(self, waiting: _Waiting, reply: InteractionReply) -> None:
        del self._waiting[waiting.id]
        waiting.settle(reply)
        if not self._waiting:
            self._tell(awaiting=False)
        self._changed()

    def _tell(self, *, awaiting: bool) -> None:
        self._house.hub.publish_global(SessionAwaitingInputFrame(session_id=self.session_id, awaiting=awaiting))


def _reply(request: InteractionRequest, answer: PersonsAnswer) -> InteractionReply:
    if answer.denied:
        return Denied(answers.refusal(answer.message))
    return Allowed(answers.accepted(request.kind, request.tool_input, answer.result))
