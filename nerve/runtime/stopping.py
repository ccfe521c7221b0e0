"""Stops by scope: who asked is recorded, then the turn, the agents or the whole runtime of a session is ended."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import trio
from attrs import define

from nerve.adapters.protocol import RuntimeGone
from nerve.contract.caller import Caller
from nerve.contract.generated.entities import AgentEndReason, TurnStop
from nerve.contract.generated.sessions import AllStopped, ForceStopped, TurnStopped
from nerve.domain.agent_roster import StopOrder, deepest_first, outliving_the_turn
from nerve.domain.agents import AgentRecord
from nerve.domain.turns import StopScope
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.agent_views import agent_brief
from nerve.runtime.agents import ask_to_stop
from nerve.runtime.house import House
from nerve.runtime.roster import Roster
from nerve.runtime.session import SessionRunner
from nerve.store import event_log, intake

log = logging.getLogger("nerve.runtime")


@define(eq=False)
class Stops:
    """``_runner`` finds the live session; ``_resume`` goes on with a queue whose quarantine a stop lifted."""

    _house: House
    _nursery: trio.Nursery
    _runner: Callable[[str], SessionRunner | None]
    _resume: Callable[[str], Awaitable[None]]

    async def stop(
        self,
        session_id: str,
        scope: StopScope,
        by: Caller,
        *,
        include_shells: bool = True,
        kill_background: bool = False,
    ) -> TurnStopped | AllStopped | ForceStopped:
        """Stop by scope; who asked for what is recorded first.

        ``include_shells`` counts for the scope ``all``, ``kill_background`` for ``turn``: background agents may end too
        where the runtime can't spare them.  Raises SESSION_NOT_FOUND.  Waits at most about twelve seconds.
        A disk that refuses the record does not keep the stop from happening.
        """
        now = self._house.effects.now()
        details: dict[str, Any] = {"scope": scope.value}
        if scope is StopScope.ALL:
            details["include_shells"] = include_shells
        request = (session_id, details, by.actor_id, by.cause_id, now)
        lifted = False
        try:
            lifted = await self._house.database.write(intake.stop_requested, *request)
        except NerveError as refusal:
            if refusal.code not in (ErrorCode.STORE_FULL, ErrorCode.STORE_BUSY):
                raise
            # A full disk is no reason to let an agent run on.
            await self._house.database.read(event_log.reserved, session_id)
            log.warning("who stopped session %s is not recorded (%s): %s", session_id, by.actor_id, refusal.message)
        answer = await self._stop(session_id, scope, by.actor_id, include_shells, kill_background)
        if lifted:
            await self._resume(session_id)
        return answer

    def stop_soon(self, session_id: str, by: Caller, tell: Callable[[TurnStop | NerveError], None]) -> None:
        """Stop the turn without waiting for it, and ``tell`` what came of it; whoever asked may leave meanwhile."""
        self._nursery.start_soon(self._stop_and_tell, session_id, by, tell, name=f"stop {session_id}")

    async def _stop_and_tell(self, session_id: str, by: Caller, tell: Callable[[TurnStop | NerveError], None]) -> None:
        try:
            answer = await self.stop(session_id, StopScope.TURN, by)
        except NerveError as error:
            tell(error)
        else:
            tell(answer.turn)

    async def _stop(
        self, session_id: str, scope: StopScope, actor_id: str | None, include_shells: bool, kill_background: bool
    ) -> TurnStopped | AllStopped | ForceStopped:
        runner = self._runner(session_id)
        match scope:
            case StopScope.FORCE if runner is not None:
                forced, ended = await runner.force()
                return ForceStopped(turn=TurnStop(forced.value), ended=ended)
            case StopScope.FORCE:
                return ForceStopped(turn=TurnStop.NOT_RUNNING, ended=[])
            case StopScope.ALL if runner is not None:
                return await _stop_all(runner, runner.roster, actor_id, include_shells)
            case StopScope.ALL:
                return AllStopped(turn=TurnStop.NOT_RUNNING, stopping=[], unsupported=[])
            case StopScope.TURN if runner is not None:
                return await _stop_turn(runner, runner.roster, actor_id, kill_background)
            case _:
                return _turn_stopped(TurnStop.NOT_RUNNING, [])


async def _stop_turn(runner: SessionRunner, roster: Roster, actor_id: str | None, kill_background: bool) -> TurnStopped:
    turn = await runner.running()
    background = outliving_the_turn(roster.records)
    spares = roster.capabilities.interrupt_spares_background
    if turn is not None and background and not spares and not kill_background:
        return _turn_stopped(TurnStop.NEEDS_CONFIRMATION, background)
    order = StopOrder(AgentEndReason.TURN_STOP, actor_id, whole=not spares)
    came = TurnStop((await runner.stop_turn(turn, order)).value)
    would_end = [record for record in roster.live if not record.ambient] if came is TurnStop.NOT_STOPPED else []
    return _turn_stopped(came, would_end)


def _turn_stopped(came: TurnStop, would_end: Sequence[AgentRecord]) -> TurnStopped:
    return TurnStopped(
        turn=came,
        would_end=[agent_brief(record) for record in would_end],
        shell_count=sum(record.is_shell for record in would_end),
    )


async def _stop_all(runner: SessionRunner, roster: Roster, actor_id: str | None, include_shells: bool) -> AllStopped:
    """Every agent, deepest first, then the turn."""
    turn = await runner.running()
    targets = deepest_first(record for record in roster.live if include_shells or not record.is_shell)
    one_by_one, spares = roster.capabilities.stop_task, roster.capabilities.interrupt_spares_background
    order = StopOrder(
        AgentEndReason.STOP_ALL, actor_id, whole=one_by_one or not spares, shells=include_shells or not spares
    )
    if turn is not None:
        roster.stand(order)
    stopping = await _ask_each(runner, targets, order) if one_by_one else []
    came = await runner.stop_turn(turn, order)
    await runner.duties.save()
    unsupported = [] if one_by_one else [record.id for record in targets]
    return AllStopped(turn=TurnStop(came.value), stopping=stopping, unsupported=unsupported)


async def _ask_each(runner: SessionRunner, targets: Sequence[AgentRecord], order: StopOrder) -> list[str]:
    """The ids of those that are stopping now; none if the runtime turns out to be gone."""
    client, roster = runner.slot.client, runner.roster
    if client is None:
        return []
    asked = roster.stopping(targets, order.cause, order.actor_id)
    try:
        await ask_to_stop(client, roster, asked)
    except RuntimeGone:
        await runner.runtime_gone()
        return []
    return asked
