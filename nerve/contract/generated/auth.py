"""Operations of the area auth.  Generated from spec/ by `make contract`: do not edit."""

from typing import Literal

from attrs import field, frozen

from nerve.contract.generated.entities import Account, Actor, AuthStatus, Token
from nerve.contract.route import AuthMode, AuthPolicy, NoBody, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind


@frozen(kw_only=True)
class Authenticated:
    """auth.check of spec/."""

    authenticated: Literal[True] = field(default=True)


@frozen(kw_only=True)
class Login:
    """auth.login of spec/."""

    password: str
    username: str | None = field(default=None)


@frozen(kw_only=True)
class Me:
    """auth.me of spec/."""

    actor: Actor
    account: Account | None


AUTH_CHECK: Route[NoParams, NoBody, Authenticated] = Route(
    operation_id='auth.check',
    method='GET',
    path='/api/auth/check',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: Authenticated},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)

AUTH_LOGIN: Route[NoParams, Login, Token] = Route(
    operation_id='auth.login',
    method='POST',
    path='/api/auth/login',
    params=NoParams,
    body=Login,
    body_required=True,
    replies={200: Token},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.OPEN,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.CHECK,
    any_host=False,
    headers=(),
    errors={ErrorCode.BAD_CREDENTIALS: ErrorKind.DETAIL, ErrorCode.SETUP_INCOMPLETE: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.LOGIN_BUSY: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

AUTH_ME: Route[NoParams, NoBody, Me] = Route(
    operation_id='auth.me',
    method='GET',
    path='/api/auth/me',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: Me},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)

AUTH_STATUS: Route[NoParams, NoBody, AuthStatus] = Route(
    operation_id='auth.status',
    method='GET',
    path='/api/auth/status',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: AuthStatus},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.OPEN,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL},
)
