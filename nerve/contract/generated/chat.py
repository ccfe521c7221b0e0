"""Operations of the area chat.  Generated from spec/ by `make contract`: do not edit."""


from attrs import field, frozen
from nerve.contract.route import AuthMode, AuthPolicy, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind


@frozen(kw_only=True)
class ChatMessage:
    """chat.send of spec/."""

    message: str = field(metadata={'min_length': 1})
    session_id: str | None = field(default=None)
    client_msg_id: str | None = field(default=None, metadata={'min_length': 1, 'max_length': 200})
    model: str | None = field(default=None, metadata={'min_length': 1})


@frozen(kw_only=True)
class ChatReply:
    """chat.send of spec/."""

    response: str
    session_id: str


CHAT_SEND: Route[NoParams, ChatMessage, ChatReply] = Route(
    operation_id='chat.send',
    method='POST',
    path='/api/chat',
    params=NoParams,
    body=ChatMessage,
    body_required=True,
    replies={200: ChatReply},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.QUEUE_FULL: ErrorKind.DETAIL, ErrorCode.CHAT_FAILED: ErrorKind.DETAIL, ErrorCode.SHUTTING_DOWN: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)
