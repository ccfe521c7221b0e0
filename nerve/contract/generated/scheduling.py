"""Operations of the area scheduling.  Generated from spec/ by `make contract`: do not edit."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from attrs import field, frozen
from nerve.contract.route import AuthMode, AuthPolicy, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind


class RunLaterDelay(StrEnum):
    """One of the values that spec/ lists."""
    V30M = '30m'
    V1H = '1h'
    V24H = '24h'
    NONE = 'none'


@frozen(kw_only=True)
class DeferredMessage:
    """scheduling.run_later of spec/."""

    session_id: str
    message: str = field(metadata={'min_length': 1})
    delay: RunLaterDelay
    file_ids: list[str] | None = field(default=None, metadata={'max_items': 20})
    image_blocks: list[dict[str, Any]] | None = field(default=None, metadata={'max_items': 100})


@frozen(kw_only=True)
class RunLater:
    """scheduling.run_later of spec/."""

    session_id: str
    scheduled: bool
    ack: str
    fire_at: datetime | None


SCHEDULING_RUN_LATER: Route[NoParams, DeferredMessage, RunLater] = Route(
    operation_id='scheduling.run_later',
    method='POST',
    path='/api/sessions/run-later',
    params=NoParams,
    body=DeferredMessage,
    body_required=True,
    replies={200: RunLater},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.FILE_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.QUEUE_FULL: ErrorKind.DETAIL, ErrorCode.SHUTTING_DOWN: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)
