"""The turn queue over REST (contract chapter Agents, gaps.md section 6)."""

from nerve.contract.caller import Caller
from nerve.contract.generated.queue import (
    QUEUE_CANCEL,
    QUEUE_LIST,
    CancelledEntry,
    Queue,
    QueueCancelParams,
    QueueListParams,
)
from nerve.contract.route import NoBody
from nerve.routes.binding import bind
from nerve.services import Services


async def list_entries(services: Services, caller: Caller, params: QueueListParams, body: NoBody) -> Queue:
    return Queue(items=await services.supervisor.reception.queue(params.session_id))


async def cancel(services: Services, caller: Caller, params: QueueCancelParams, body: NoBody) -> CancelledEntry:
    """Replies once the entry is gone for good."""
    content = await services.supervisor.reception.cancel_queued(params.session_id, params.queue_id, caller)
    return CancelledEntry(content=content)


ENDPOINTS = (bind(QUEUE_LIST, list_entries), bind(QUEUE_CANCEL, cancel))
