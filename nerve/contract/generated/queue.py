"""Operations of the area queue.  Generated from spec/ by `make contract`: do not edit."""

from typing import Literal

from attrs import field, frozen

from nerve.contract.generated.entities import QueueEntry
from nerve.contract.route import AuthMode, AuthPolicy, NoBody, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind


@frozen(kw_only=True)
class CancelledEntry:
    """queue.cancel of spec/."""

    cancelled: Literal[True] = field(default=True)
    content: str


@frozen(kw_only=True)
class QueueCancelParams:
    """Parameters of queue.cancel."""

    session_id: str
    queue_id: str


@frozen(kw_only=True)
class Queue:
    """queue.list of spec/."""

    items: list[QueueEntry]


@frozen(kw_only=True)
class QueueListParams:
    """Parameters of queue.list."""

    session_id: str


QUEUE_CANCEL: Route[QueueCancelParams, NoBody, CancelledEntry] = Route(
    operation_id='queue.cancel',
    method='DELETE',
    path='/api/sessions/{session_id}/queue/{queue_id}',
    params=QueueCancelParams,
    body=NoBody,
    body_required=False,
    replies={200: CancelledEntry},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.CODE, ErrorCode.QUEUE_ENTRY_NOT_FOUND: ErrorKind.CODE, ErrorCode.ALREADY_STARTED: ErrorKind.CODE, ErrorCode.NOT_OWNER: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

QUEUE_LIST: Route[QueueListParams, NoBody, Queue] = Route(
    operation_id='queue.list',
    method='GET',
    path='/api/sessions/{session_id}/queue',
    params=QueueListParams,
    body=NoBody,
    body_required=False,
    replies={200: Queue},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)
