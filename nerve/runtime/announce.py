"""Telling sockets what waits in a session's queue, and what has just left it."""

from nerve.contract.generated.frames_server import QueueUpdateFrame, RemovalReason, RemovedEntry
from nerve.contract.unset import UNSET
from nerve.runtime.house import House
from nerve.runtime.hub import Subscriber
from nerve.runtime.views import queue_entries
from nerve.store import waiting
from nerve.store.queue import QueuedMessage


def gone(entry: QueuedMessage, reason: RemovalReason) -> RemovedEntry:
    return RemovedEntry(queue_id=entry.id, client_msg_id=entry.client_msg_id, reason=reason)


async def publish_queue(
    house: House,
    session_id: str,
    *removed: RemovedEntry,
    also: Subscriber | None = None,
    only: Subscriber | None = None,
) -> None:
    """To the bound sockets, and to ``also``, which may be bound elsewhere; or to ``only`` one."""
    entries = await house.database.read(waiting.shown, session_id)
    frame = QueueUpdateFrame(
        session_id=session_id, queue=queue_entries(entries), removed=list(removed) if removed else UNSET
    )
    if only is not None:
        house.hub.publish_to(only, frame)
        return
    house.hub.publish(session_id, frame)
    if also is not None and not house.hub.is_bound(also, session_id):
        house.hub.publish_to(also, frame)
