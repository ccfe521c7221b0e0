"""Operations of the area search.  Generated from spec/ by `make contract`: do not edit."""


from attrs import field, frozen

from nerve.contract.generated.entities import SessionRow
from nerve.contract.route import AuthMode, AuthPolicy, NoBody, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind


@frozen(kw_only=True)
class FoundSessions:
    """search.sessions of spec/."""

    sessions: list[SessionRow] = field(metadata={'max_items': 100})


@frozen(kw_only=True)
class SearchSessionsParams:
    """Parameters of search.sessions."""

    q: str = field(default='', metadata={'max_length': 200})


SEARCH_SESSIONS: Route[SearchSessionsParams, NoBody, FoundSessions] = Route(
    operation_id='search.sessions',
    method='GET',
    path='/api/sessions/search',
    params=SearchSessionsParams,
    body=NoBody,
    body_required=False,
    replies={200: FoundSessions},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.EMPTY_QUERY: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)
