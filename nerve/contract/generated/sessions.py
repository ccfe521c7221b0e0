"""Operations of the area sessions.  Generated from spec/ by `make contract`: do not edit."""

from enum import StrEnum
from typing import Literal

from attrs import field, frozen

from nerve.contract.generated.entities import AgentBrief, Message, Session, SessionEvent, SessionPage, SessionRow, SessionState, TurnStop, TurnUsage
from nerve.contract.route import AuthMode, AuthPolicy, EventStream, NoBody, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind
from nerve.contract.unset import UNSET, Unset


@frozen(kw_only=True)
class SkippedSession:
    """sessions.archive.skipped of spec/."""

    id: str
    reason: str


@frozen(kw_only=True)
class ArchiveResult:
    """sessions.archive of spec/."""

    archived: bool
    archived_ids: list[str]
    skipped: list[SkippedSession]


@frozen(kw_only=True)
class SessionsArchiveParams:
    """Parameters of sessions.archive."""

    session_id: str
    force: bool = field(default=False)


@frozen(kw_only=True)
class SessionsArchivedParams:
    """Parameters of sessions.archived."""

    offset: int = field(default=0, metadata={'minimum': 0, 'maximum': 1000000000, 'clamp': True})


class NewSessionSource(StrEnum):
    """One of the values that spec/ lists."""
    WEB = 'web'
    API = 'api'


@frozen(kw_only=True)
class NewSession:
    """sessions.create of spec/."""

    title: str | None = field(default=None, metadata={'max_length': 500})
    source: NewSessionSource = field(default=NewSessionSource.WEB)
    backend: str | None = field(default=None)
    model: str | None = field(default=None, metadata={'max_length': 200})
    cwd: str | None = field(default=None, metadata={'max_length': 4096})


@frozen(kw_only=True)
class Deleted:
    """sessions.delete of spec/."""

    deleted: Literal[True] = field(default=True)


@frozen(kw_only=True)
class SessionsDeleteParams:
    """Parameters of sessions.delete."""

    session_id: str


@frozen(kw_only=True)
class EventList:
    """sessions.events of spec/."""

    events: list[SessionEvent]


@frozen(kw_only=True)
class SessionsEventsParams:
    """Parameters of sessions.events."""

    session_id: str
    limit: int = field(default=50, metadata={'minimum': 1, 'maximum': 1000, 'clamp': True})


@frozen(kw_only=True)
class NewFork:
    """sessions.fork of spec/."""

    source_session_id: str
    at_message_id: str | None = field(default=None)
    title: str | None = field(default=None, metadata={'max_length': 500})


@frozen(kw_only=True)
class SessionsGetParams:
    """Parameters of sessions.get."""

    session_id: str


@frozen(kw_only=True)
class SessionFeed:
    """sessions.list of spec/."""

    sessions: list[SessionRow]
    archived_count: int = field(metadata={'minimum': 0})
    system_count: int = field(metadata={'minimum': 0})
    has_more: bool
    next_offset: int = field(metadata={'minimum': 0})


@frozen(kw_only=True)
class SessionsListParams:
    """Parameters of sessions.list."""

    offset: int = field(default=0, metadata={'minimum': 0, 'maximum': 1000000000, 'clamp': True})


@frozen(kw_only=True)
class MessagePage:
    """sessions.messages of spec/."""

    messages: list[Message]
    last_usage: TurnUsage | None


@frozen(kw_only=True)
class SessionsMessagesParams:
    """Parameters of sessions.messages."""

    session_id: str
    limit: int = field(default=100, metadata={'minimum': 1, 'maximum': 1000, 'clamp': True})
    before_id: int | Unset = field(default=UNSET, metadata={'minimum': 0, 'maximum': 9007199254740991, 'clamp': True})


@frozen(kw_only=True)
class SessionsResumeParams:
    """Parameters of sessions.resume."""

    session_id: str


@frozen(kw_only=True)
class SessionsStatusParams:
    """Parameters of sessions.status."""

    session_id: str


@frozen(kw_only=True)
class Stop:
    """sessions.stop of spec/."""

    scope: str = field(default='turn')
    confirm_kill_background: bool = field(default=False)
    include_shells: bool = field(default=True)


@frozen(kw_only=True)
class TurnStopped:
    """sessions.stop of spec/."""

    scope: Literal['turn'] = field(default='turn')
    turn: TurnStop
    would_end: list[AgentBrief]
    shell_count: int = field(metadata={'minimum': 0})


@frozen(kw_only=True)
class AllStopped:
    """sessions.stop of spec/."""

    scope: Literal['all'] = field(default='all')
    turn: TurnStop
    stopping: list[str]
    unsupported: list[str]


@frozen(kw_only=True)
class ForceStopped:
    """sessions.stop of spec/."""

    scope: Literal['force'] = field(default='force')
    turn: TurnStop
    ended: list[str]


@frozen(kw_only=True)
class SessionsStopParams:
    """Parameters of sessions.stop."""

    session_id: str


@frozen(kw_only=True)
class SessionsStreamParams:
    """Parameters of sessions.stream."""

    session_id: str
    last_event_id: int | Unset = field(default=UNSET, metadata={'minimum': 0, 'key': 'Last-Event-ID'})


@frozen(kw_only=True)
class SessionsSystemParams:
    """Parameters of sessions.system."""

    offset: int = field(default=0, metadata={'minimum': 0, 'maximum': 1000000000, 'clamp': True})


@frozen(kw_only=True)
class Unarchived:
    """sessions.unarchive of spec/."""

    unarchived: Literal[True] = field(default=True)


@frozen(kw_only=True)
class SessionsUnarchiveParams:
    """Parameters of sessions.unarchive."""

    session_id: str


@frozen(kw_only=True)
class SessionChange:
    """sessions.update of spec/."""

    title: str | Unset = field(default=UNSET, metadata={'max_length': 500})
    starred: bool | Unset = field(default=UNSET)
    model: str | Unset = field(default=UNSET, metadata={'max_length': 200})
    parent_session_id: str | None | Unset = field(default=UNSET)


@frozen(kw_only=True)
class SessionsUpdateParams:
    """Parameters of sessions.update."""

    session_id: str


SESSIONS_ARCHIVE: Route[SessionsArchiveParams, NoBody, ArchiveResult] = Route(
    operation_id='sessions.archive',
    method='POST',
    path='/api/sessions/{session_id}/archive',
    params=SessionsArchiveParams,
    body=NoBody,
    body_required=False,
    replies={200: ArchiveResult},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.MAIN_IS_PERMANENT: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

SESSIONS_ARCHIVED: Route[SessionsArchivedParams, NoBody, SessionPage] = Route(
    operation_id='sessions.archived',
    method='GET',
    path='/api/sessions/archived',
    params=SessionsArchivedParams,
    body=NoBody,
    body_required=False,
    replies={200: SessionPage},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

SESSIONS_CREATE: Route[NoParams, NewSession, Session] = Route(
    operation_id='sessions.create',
    method='POST',
    path='/api/sessions',
    params=NoParams,
    body=NewSession,
    body_required=False,
    replies={200: Session},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.UNKNOWN_BACKEND: ErrorKind.DETAIL, ErrorCode.BACKEND_UNAVAILABLE: ErrorKind.DETAIL, ErrorCode.BAD_CWD: ErrorKind.DETAIL, ErrorCode.EMPTY_MODEL: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

SESSIONS_DELETE: Route[SessionsDeleteParams, NoBody, Deleted] = Route(
    operation_id='sessions.delete',
    method='DELETE',
    path='/api/sessions/{session_id}',
    params=SessionsDeleteParams,
    body=NoBody,
    body_required=False,
    replies={200: Deleted},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.MAIN_IS_PERMANENT: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

SESSIONS_EVENTS: Route[SessionsEventsParams, NoBody, EventList] = Route(
    operation_id='sessions.events',
    method='GET',
    path='/api/sessions/{session_id}/events',
    params=SessionsEventsParams,
    body=NoBody,
    body_required=False,
    replies={200: EventList},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

SESSIONS_FORK: Route[NoParams, NewFork, Session] = Route(
    operation_id='sessions.fork',
    method='POST',
    path='/api/sessions/fork',
    params=NoParams,
    body=NewFork,
    body_required=True,
    replies={200: Session},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.MESSAGE_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.NOT_FORKABLE: ErrorKind.DETAIL, ErrorCode.ANCHOR_NOT_MAPPED: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

SESSIONS_GET: Route[SessionsGetParams, NoBody, Session] = Route(
    operation_id='sessions.get',
    method='GET',
    path='/api/sessions/{session_id}',
    params=SessionsGetParams,
    body=NoBody,
    body_required=False,
    replies={200: Session},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)

SESSIONS_LIST: Route[SessionsListParams, NoBody, SessionFeed] = Route(
    operation_id='sessions.list',
    method='GET',
    path='/api/sessions',
    params=SessionsListParams,
    body=NoBody,
    body_required=False,
    replies={200: SessionFeed},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

SESSIONS_MESSAGES: Route[SessionsMessagesParams, NoBody, MessagePage] = Route(
    operation_id='sessions.messages',
    method='GET',
    path='/api/sessions/{session_id}/messages',
    params=SessionsMessagesParams,
    body=NoBody,
    body_required=False,
    replies={200: MessagePage},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

SESSIONS_RESUME: Route[SessionsResumeParams, NoBody, Session] = Route(
    operation_id='sessions.resume',
    method='POST',
    path='/api/sessions/{session_id}/resume',
    params=SessionsResumeParams,
    body=NoBody,
    body_required=False,
    replies={200: Session},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.NOT_RESUMABLE: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

SESSIONS_STATUS: Route[SessionsStatusParams, NoBody, SessionState] = Route(
    operation_id='sessions.status',
    method='GET',
    path='/api/sessions/{session_id}/status',
    params=SessionsStatusParams,
    body=NoBody,
    body_required=False,
    replies={200: SessionState},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)

SESSIONS_STOP: Route[SessionsStopParams, Stop, TurnStopped | AllStopped | ForceStopped] = Route(
    operation_id='sessions.stop',
    method='POST',
    path='/api/sessions/{session_id}/stop',
    params=SessionsStopParams,
    body=Stop,
    body_required=False,
    replies={200: (TurnStopped | AllStopped | ForceStopped)},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.CODE, ErrorCode.BAD_SCOPE: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

SESSIONS_STREAM: Route[SessionsStreamParams, NoBody, EventStream] = Route(
    operation_id='sessions.stream',
    method='GET',
    path='/api/sessions/{session_id}/stream',
    params=SessionsStreamParams,
    body=NoBody,
    body_required=False,
    replies={200: EventStream},
    kind=ReplyKind.EVENT_STREAM,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.STREAM,
    any_host=False,
    headers=('Last-Event-ID',),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

SESSIONS_SYSTEM: Route[SessionsSystemParams, NoBody, SessionPage] = Route(
    operation_id='sessions.system',
    method='GET',
    path='/api/sessions/system',
    params=SessionsSystemParams,
    body=NoBody,
    body_required=False,
    replies={200: SessionPage},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

SESSIONS_UNARCHIVE: Route[SessionsUnarchiveParams, NoBody, Unarchived] = Route(
    operation_id='sessions.unarchive',
    method='POST',
    path='/api/sessions/{session_id}/unarchive',
    params=SessionsUnarchiveParams,
    body=NoBody,
    body_required=False,
    replies={200: Unarchived},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

SESSIONS_UPDATE: Route[SessionsUpdateParams, SessionChange, Session] = Route(
    operation_id='sessions.update',
    method='PATCH',
    path='/api/sessions/{session_id}',
    params=SessionsUpdateParams,
    body=SessionChange,
    body_required=True,
    replies={200: Session},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.NOTHING_TO_UPDATE: ErrorKind.DETAIL, ErrorCode.EMPTY_TITLE: ErrorKind.DETAIL, ErrorCode.EMPTY_MODEL: ErrorKind.DETAIL, ErrorCode.PARENT_CYCLE: ErrorKind.DETAIL, ErrorCode.PARENT_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.SESSION_NOT_STARTED: ErrorKind.DETAIL, ErrorCode.LIVE_BACKGROUND_AGENTS: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)
