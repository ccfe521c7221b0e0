"""Operations of the area setup.  Generated from spec/ by `make contract`: do not edit."""


from attrs import field, frozen

from nerve.contract.generated.entities import Token
from nerve.contract.route import AuthMode, AuthPolicy, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind


@frozen(kw_only=True)
class Claim:
    """setup.claim of spec/."""

    setup_token: str = field(metadata={'min_length': 1})
    username: str | None = field(default=None)
    password: str | None = field(default=None, metadata={'min_length': 1})
    passwordless: bool = field(default=False)
    display_name: str | None = field(default=None, metadata={'max_length': 200})


SETUP_CLAIM: Route[NoParams, Claim, Token] = Route(
    operation_id='setup.claim',
    method='POST',
    path='/api/setup/claim',
    params=NoParams,
    body=Claim,
    body_required=True,
    replies={200: Token},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.OPEN,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.SETUP_COMPLETE: ErrorKind.DETAIL, ErrorCode.WRONG_SETUP_TOKEN: ErrorKind.DETAIL, ErrorCode.PASSWORD_OR_PASSWORDLESS: ErrorKind.DETAIL, ErrorCode.USERNAME_REQUIRED: ErrorKind.DETAIL, ErrorCode.BAD_USERNAME: ErrorKind.DETAIL, ErrorCode.PASSWORD_TOO_LONG: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)
