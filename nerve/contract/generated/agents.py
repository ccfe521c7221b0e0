"""Operations of the area agents.  Generated from spec/ by `make contract`: do not edit."""


from attrs import field, frozen

from nerve.contract.generated.entities import AgentEventItem, AgentSnapshot, AgentView
from nerve.contract.route import AuthMode, AuthPolicy, NoBody, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind
from nerve.contract.unset import UNSET, Unset


@frozen(kw_only=True)
class AgentDetails:
    """agents.get of spec/."""

    agent: AgentView
    prompt: str | None
    result_text: str | None


@frozen(kw_only=True)
class AgentsGetParams:
    """Parameters of agents.get."""

    session_id: str
    agent_id: str


@frozen(kw_only=True)
class AgentsListParams:
    """Parameters of agents.list."""

    session_id: str
    limit: int = field(default=200, metadata={'minimum': 1, 'maximum': 500, 'clamp': True})


@frozen(kw_only=True)
class AgentOutput:
    """agents.output of spec/."""

    agent_id: str
    text: str
    size: int = field(metadata={'minimum': 0})
    truncated: bool
    available: bool


@frozen(kw_only=True)
class AgentsOutputParams:
    """Parameters of agents.output."""

    session_id: str
    agent_id: str
    tail_bytes: int = field(default=65536, metadata={'minimum': 1, 'maximum': 262144, 'clamp': True})


@frozen(kw_only=True)
class StopAgent:
    """agents.stop of spec/."""

    cascade: bool = field(default=True)


@frozen(kw_only=True)
class AgentStopping:
    """agents.stop of spec/."""

    agent: AgentView
    stopping: list[str]


@frozen(kw_only=True)
class AgentAtRest:
    """agents.stop of spec/."""

    agent: AgentView
    stopping: list[str] = field(metadata={'max_items': 0})


@frozen(kw_only=True)
class AgentsStopParams:
    """Parameters of agents.stop."""

    session_id: str
    agent_id: str


@frozen(kw_only=True)
class TranscriptPage:
    """agents.transcript of spec/."""

    agent_id: str
    items: list[AgentEventItem]
    first_seq: int | None
    last_seq: int | None
    has_more_before: bool


@frozen(kw_only=True)
class AgentsTranscriptParams:
    """Parameters of agents.transcript."""

    session_id: str
    agent_id: str
    before_seq: str | Unset = field(default=UNSET)
    after_seq: str | Unset = field(default=UNSET)
    limit: int = field(default=200, metadata={'minimum': 1, 'maximum': 500, 'clamp': True})


AGENTS_GET: Route[AgentsGetParams, NoBody, AgentDetails] = Route(
    operation_id='agents.get',
    method='GET',
    path='/api/sessions/{session_id}/agents/{agent_id}',
    params=AgentsGetParams,
    body=NoBody,
    body_required=False,
    replies={200: AgentDetails},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.CODE, ErrorCode.AGENT_NOT_FOUND: ErrorKind.CODE, ErrorCode.AGENT_IN_OTHER_SESSION: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)

AGENTS_LIST: Route[AgentsListParams, NoBody, AgentSnapshot] = Route(
    operation_id='agents.list',
    method='GET',
    path='/api/sessions/{session_id}/agents',
    params=AgentsListParams,
    body=NoBody,
    body_required=False,
    replies={200: AgentSnapshot},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

AGENTS_OUTPUT: Route[AgentsOutputParams, NoBody, AgentOutput] = Route(
    operation_id='agents.output',
    method='GET',
    path='/api/sessions/{session_id}/agents/{agent_id}/output',
    params=AgentsOutputParams,
    body=NoBody,
    body_required=False,
    replies={200: AgentOutput},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.CODE, ErrorCode.AGENT_NOT_FOUND: ErrorKind.CODE, ErrorCode.AGENT_IN_OTHER_SESSION: ErrorKind.CODE, ErrorCode.NOT_A_SHELL: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

AGENTS_STOP: Route[AgentsStopParams, StopAgent, AgentStopping | AgentAtRest] = Route(
    operation_id='agents.stop',
    method='POST',
    path='/api/sessions/{session_id}/agents/{agent_id}/stop',
    params=AgentsStopParams,
    body=StopAgent,
    body_required=False,
    replies={202: AgentStopping, 200: AgentAtRest},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.CODE, ErrorCode.AGENT_NOT_FOUND: ErrorKind.CODE, ErrorCode.AGENT_IN_OTHER_SESSION: ErrorKind.CODE, ErrorCode.NO_RUNTIME: ErrorKind.CODE, ErrorCode.UNSUPPORTED: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

AGENTS_TRANSCRIPT: Route[AgentsTranscriptParams, NoBody, TranscriptPage] = Route(
    operation_id='agents.transcript',
    method='GET',
    path='/api/sessions/{session_id}/agents/{agent_id}/transcript',
    params=AgentsTranscriptParams,
    body=NoBody,
    body_required=False,
    replies={200: TranscriptPage},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.CODE, ErrorCode.AGENT_NOT_FOUND: ErrorKind.CODE, ErrorCode.AGENT_IN_OTHER_SESSION: ErrorKind.CODE, ErrorCode.BAD_CURSOR: ErrorKind.CODE, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)
