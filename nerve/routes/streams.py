"""A session's event log as server-sent events (decisions D6)."""

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from nerve.contract.caller import Caller
from nerve.contract.generated.sessions import SESSIONS_STREAM, SessionsStreamParams
from nerve.contract.route import EventStream, NoBody
from nerve.contract.unset import Unset
from nerve.routes.binding import bind
from nerve.runtime.binding import Binding
from nerve.runtime.hub import ACCOUNT_DISABLED
from nerve.runtime.outbox import Outbox
from nerve.services import Services
from nerve.store import event_log

QUIET_SECONDS = 15.0
COMMENT = b": still here\n\n"

SendPiece = Callable[[bytes], Awaitable[None]]


def as_event(frame: bytes, seq: int | None) -> bytes:
    """One event; the JSON of a frame has no line breaks.  A gap has no number, so it moves no client's cursor."""
    return b"data: %b\n\n" % frame if seq is None else b"id: %d\ndata: %b\n\n" % (seq, frame)


async def stream_session(services: Services, caller: Caller, params: SessionsStreamParams, body: NoBody) -> EventStream:
    await services.database.read(event_log.reserved, params.session_id)  # an unknown session is told as an error
    after = None if isinstance(params.last_event_id, Unset) else params.last_event_id
    return EventStream(partial(_follow, services, caller, params.session_id, after))


async def _follow(services: Services, caller: Caller, session_id: str, after: int | None, send: SendPiece) -> None:
    outbox = Outbox(account_id=caller.account_id, form=as_event, logged_only=True)
    binding = await Binding.bind(services.supervisor, outbox, session_id)
    services.hub.add(outbox)
    if not services.identity.is_live(caller):
        outbox.close(ACCOUNT_DISABLED)
    try:
        binding.attach()
        async with trio.open_nursery() as nursery:
            if after is None:
                nursery.start_soon(binding.replay_turn)
            else:
                nursery.start_soon(binding.replay, after)
            await _pass_on(outbox, send)
            nursery.cancel_scope.cancel()
    finally:
        services.hub.remove(outbox)
        binding.release()


async def _pass_on(outbox: Outbox, send: SendPiece) -> None:
    """Until the outbox closes: the account was disabled, the server goes down, or its reader is too slow."""
    while True:
        with trio.move_on_after(QUIET_SECONDS) as quiet:
            piece = await outbox.next()
        if quiet.cancelled_caught:
            await send(COMMENT)
        elif piece is None:
            return
        else:
            await send(piece)
            outbox.taken()


ENDPOINTS = (bind(SESSIONS_STREAM, stream_session),)
