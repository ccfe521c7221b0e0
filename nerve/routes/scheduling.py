"""``POST /api/sessions/run-later``: a person's message that is put off (sessions-and-agents.md 11)."""

from nerve.contract.caller import Caller
from nerve.contract.generated.scheduling import SCHEDULING_RUN_LATER, DeferredMessage, RunLater, RunLaterDelay
from nerve.contract.route import NoParams
from nerve.domain.attachments import id_of
from nerve.domain.wakeups import DELAYS, replacement, written
from nerve.errors import ErrorCode, NerveError
from nerve.routes.binding import bind
from nerve.runtime.reception import NewMessage
from nerve.services import Services


async def run_later(services: Services, caller: Caller, params: NoParams, deferred: DeferredMessage) -> RunLater:
    """Replies once the message is on disk."""
    session_id = deferred.session_id
    message = NewMessage(
        content=deferred.message,
        source="web",
        actor_id=caller.actor_id,
        cause_id=caller.cause_id,
        file_ids=_file_ids(deferred),
    )
    if deferred.delay is RunLaterDelay.NONE:
        await services.supervisor.reception.submit(session_id, message)
        return RunLater(session_id=session_id, scheduled=False, ack="The message was sent.", fire_at=None)
    fire_at, replaced = await services.supervisor.put_off(session_id, message, DELAYS[deferred.delay])
    ack = f"The message will be sent at {written(fire_at)}."
    if replaced is not None:
        ack += " " + replacement(replaced.kind, replaced.fire_at)
    return RunLater(session_id=session_id, scheduled=True, ack=ack, fire_at=fire_at)


def _file_ids(deferred: DeferredMessage) -> tuple[str, ...]:
    """Named by themselves, or by the address in a block.  Raises FILE_NOT_FOUND for a block that names none."""
    named = [id_of(str(block.get("url", ""))) for block in deferred.image_blocks or ()]
    found = [file_id for file_id in named if file_id is not None]
    if len(found) < len(named):
        raise NerveError(ErrorCode.FILE_NOT_FOUND)
    return (*(deferred.file_ids or ()), *found)


ENDPOINTS = (bind(SCHEDULING_RUN_LATER, run_later),)
