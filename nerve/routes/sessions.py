"""Sessions over REST (contract chapter Sessions): lists, rows, messages, events, archive and stop."""

from collections.abc import Callable
from typing import TypeVar

import apsw

from nerve.contract.caller import Caller
from nerve.contract.generated.entities import AgentEndReason, Session, SessionPage, SessionRow, SessionState
from nerve.contract.generated.frames_server import SessionUpdatedFrame
from nerve.contract.generated.sessions import (
    SESSIONS_ARCHIVE,
    SESSIONS_ARCHIVED,
    SESSIONS_CREATE,
    SESSIONS_DELETE,
    SESSIONS_EVENTS,
    SESSIONS_FORK,
    SESSIONS_GET,
    SESSIONS_LIST,
    SESSIONS_MESSAGES,
    SESSIONS_RESUME,
    SESSIONS_STATUS,
    SESSIONS_STOP,
    SESSIONS_SYSTEM,
    SESSIONS_UNARCHIVE,
    SESSIONS_UPDATE,
    AllStopped,
    ArchiveResult,
    Deleted,
    EventList,
    ForceStopped,
    MessagePage,
    NewFork,
    NewSession,
    SessionChange,
    SessionFeed,
    SessionsArchivedParams,
    SessionsArchiveParams,
    SessionsDeleteParams,
    SessionsEventsParams,
    SessionsGetParams,
    SessionsListParams,
    SessionsMessagesParams,
    SessionsResumeParams,
    SessionsStatusParams,
    SessionsStopParams,
    SessionsSystemParams,
    SessionsUnarchiveParams,
    SessionsUpdateParams,
    Stop,
    TurnStopped,
    Unarchived,
)
from nerve.contract.route import NoBody, NoParams
from nerve.contract.unset import UNSET
from nerve.domain import attribution
from nerve.domain.attribution import Attribution
from nerve.domain.forks import message_number
from nerve.domain.turns import StopScope
from nerve.errors import ErrorCode, NerveError
from nerve.routes.binding import bind
from nerve.routes.making import session_maker
from nerve.runtime import views
from nerve.runtime.archiving import Archiver, Deleter, restore
from nerve.runtime.branching import Branching
from nerve.runtime.views import LiveState
from nerve.services import Services
from nerve.store import messages, session_events, session_feeds, sessions
from nerve.store.session_feeds import StoredPage, StoredRow

T = TypeVar("T")

_READ_INLINE = 100  # rows; a longer page is read on the pool


async def list_conversations(
    services: Services, caller: Caller, params: SessionsListParams, body: NoBody
) -> SessionFeed:
    found = await _read_feed(services, session_feeds.conversations, params.offset)
    return SessionFeed(
        sessions=_rows(services, found.starred + found.window.rows),
        archived_count=found.archived_count,
        system_count=found.system_count,
        has_more=found.window.has_more,
        next_offset=found.window.next_offset,
    )


async def list_archived(
    services: Services, caller: Caller, params: SessionsArchivedParams, body: NoBody
) -> SessionPage:
    return _page(services, await _read_feed(services, session_feeds.archived, params.offset))


async def list_system(services: Services, caller: Caller, params: SessionsSystemParams, body: NoBody) -> SessionPage:
    return _page(services, await _read_feed(services, session_feeds.system, params.offset))


async def _read_feed(services: Services, feed: Callable[[apsw.Connection, int, int], T], offset: int) -> T:
    size = services.config.sessions.sidebar_page_size
    if 0 < size <= _READ_INLINE:
        return await services.database.read(services.kept.read, feed, offset, size)
    return await services.database.read_large(feed, offset, size)


def _page(services: Services, page: StoredPage) -> SessionPage:
    return SessionPage(sessions=_rows(services, page.rows), has_more=page.has_more, next_offset=page.next_offset)


def _rows(services: Services, rows: list[StoredRow]) -> list[SessionRow]:
    return [session_feeds.with_live(row, services.supervisor.live(row[0])) for row in rows]


async def create(services: Services, caller: Caller, params: NoParams, new: NewSession) -> Session:
    """Replies once the row is stored; the runtime starts with the first message."""
    maker = session_maker(services)
    return await maker.create(new, attribution.of(caller))


async def fork(services: Services, caller: Caller, params: NoParams, new: NewFork) -> Session:
    """Replies once the fork and its copies of the messages are stored."""
    return await Branching(services.supervisor).fork(
        new.source_session_id, message_number(new.at_message_id), new.title, attribution.of(caller)
    )


async def resume(services: Services, caller: Caller, params: SessionsResumeParams, body: NoBody) -> Session:
    return await Branching(services.supervisor).resume(params.session_id, attribution.of(caller))


async def get(services: Services, caller: Caller, params: SessionsGetParams, body: NoBody) -> Session:
    return await services.database.read(sessions.get, params.session_id)


async def update(services: Services, caller: Caller, params: SessionsUpdateParams, change: SessionChange) -> Session:
    """Replies with the session after the change; a new model closes an idle runtime, a turn that runs goes on."""
    session_id = params.session_id
    changed = await services.database.write(_update, services, session_id, change, attribution.of(caller))
    before, after = changed.before, changed.after
    if before.title != after.title:
        services.hub.publish(session_id, SessionUpdatedFrame(session_id=session_id, title=after.title))
    if before.quarantined and not after.quarantined:
        await services.supervisor.resume_queue(session_id)
    if before.model != after.model and not services.supervisor.live(session_id).is_running:
        reason = "The model was changed."
        async with services.supervisor.detached(session_id, reason, AgentEndReason.MODEL_SWITCH):
            return await services.database.read(sessions.get, session_id)
    return after


def _update(
    db: apsw.Connection, services: Services, session_id: str, change: SessionChange, by: Attribution
) -> sessions.Changed:
    """Raises what ``sessions.update`` raises, and LIVE_BACKGROUND_AGENTS for a new model that would end some."""
    changed = sessions.update(db, session_id, change, by, services.effects.now())
    live = services.supervisor.agents.background(session_id)
    if live and changed.before.model != changed.after.model:
        raise NerveError(ErrorCode.LIVE_BACKGROUND_AGENTS, live=live)
    return changed


async def delete(services: Services, caller: Caller, params: SessionsDeleteParams, body: NoBody) -> Deleted:
    """Replies once the runtime has ended and the rows are gone."""
    deleter = Deleter(services.database, services.supervisor, services.effects)
    was_running = services.supervisor.live(params.session_id).is_running
    gone = await deleter.delete(params.session_id, attribution.of(caller))
    if not was_running:  # else the end of its turn has told it
        services.hub.publish_global(views.session_running(params.session_id, LiveState()))
    await services.supervisor.deleted(params.session_id, gone.native_id, gone.backend)
    return Deleted()


async def list_messages(
    services: Services, caller: Caller, params: SessionsMessagesParams, body: NoBody
) -> MessagePage:
    before_id = None if params.before_id is UNSET else params.before_id
    return await services.database.read_large(messages.page, params.session_id, params.limit, before_id)


async def status(services: Services, caller: Caller, params: SessionsStatusParams, body: NoBody) -> SessionState:
    session, stored_seq = await services.database.read(sessions.get_with_seq, params.session_id)
    live, last_seq = services.supervisor.live(session.id), services.supervisor.last_seq(session.id)
    return SessionState(
        session_id=session.id,
        status=session.status,
        is_running=live.is_running,
        background_count=live.background_count,
        sdk_session_id=session.sdk_session_id,
        connected_at=session.connected_at,
        parent_session_id=session.parent_session_id,
        message_count=session.message_count,
        total_cost_usd=session.total_cost_usd,
        awaiting_input=live.awaiting_input,
        last_seq=stored_seq if last_seq is None else last_seq,
    )


async def list_events(services: Services, caller: Caller, params: SessionsEventsParams, body: NoBody) -> EventList:
    found = await services.database.read_large(session_events.newest, params.session_id, params.limit)
    return EventList(events=found)


async def archive(services: Services, caller: Caller, params: SessionsArchiveParams, body: NoBody) -> ArchiveResult:
    """Replies once the runtimes of what was archived have ended."""
    archiver = Archiver(services.database, services.supervisor, services.effects)
    return await archiver.archive(params.session_id, attribution.of(caller), force=params.force)


async def unarchive(services: Services, caller: Caller, params: SessionsUnarchiveParams, body: NoBody) -> Unarchived:
    await services.database.write(restore, params.session_id, attribution.of(caller), services.effects.now())
    await services.supervisor.resume_queue(params.session_id)
    return Unarchived()


async def stop(
    services: Services, caller: Caller, params: SessionsStopParams, stop: Stop
) -> TurnStopped | AllStopped | ForceStopped:
    """Replies with what came of it within the bounds of a stop."""
    if stop.scope not in tuple(StopScope):
        raise NerveError(ErrorCode.BAD_SCOPE)
    answer: TurnStopped | AllStopped | ForceStopped
    answer = await services.supervisor.stops.stop(
        params.session_id,
        StopScope(stop.scope),
        caller,
        include_shells=stop.include_shells,
        kill_background=stop.confirm_kill_background,
    )
    return answer


ENDPOINTS = (
    bind(SESSIONS_LIST, list_conversations),
    bind(SESSIONS_ARCHIVED, list_archived),
    bind(SESSIONS_SYSTEM, list_system),
    bind(SESSIONS_CREATE, create),
    bind(SESSIONS_FORK, fork),
    bind(SESSIONS_RESUME, resume),
    bind(SESSIONS_GET, get),
    bind(SESSIONS_UPDATE, update),
    bind(SESSIONS_DELETE, delete),
    bind(SESSIONS_MESSAGES, list_messages),
    bind(SESSIONS_STATUS, status),
    bind(SESSIONS_ARCHIVE, archive),
    bind(SESSIONS_UNARCHIVE, unarchive),
    bind(SESSIONS_EVENTS, list_events),
    bind(SESSIONS_STOP, stop),
)
