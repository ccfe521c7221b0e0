"""Stops by scope: who asked is recorded, then the turn, the agents or the whole runtime of a session is ended."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from attrs import define

from nerve.contract.caller import Caller
from nerve.contract.generated.entities import TurnStop
from nerve.contract.generated.sessions import AllStopped, ForceStopped, TurnStopped
from nerve.domain.turns import StopScope
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.house import House
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
        self, session_id: str, scope: StopScope, by: Caller, *, include_shells: bool = True
    ) -> TurnStopped | AllStopped | ForceStopped:
        """Stop by scope; who asked for what is recorded first.

        ``include_shells`` counts for the scope ``all``.  Raises SESSION_NOT_FOUND.  Waits at most about nine seconds.
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
        answer = await self._stop(session_id, scope)
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

    async def _stop(self, session_id: str, scope: StopScope) -> TurnStopped | AllStopped | ForceStopped:
        runner = self._runner(session_id)
        if scope is StopScope.FORCE:
            came = TurnStop.NOT_RUNNING if runner is None else TurnStop((await runner.force()).value)
            return ForceStopped(turn=came, ended=[])
        came = TurnStop.NOT_RUNNING if runner is None else TurnStop((await runner.stop_turn()).value)
        if scope is StopScope.ALL:
            return AllStopped(turn=came, stopping=[], unsupported=[])
        return TurnStopped(turn=came, would_end=[], shell_count=0)
