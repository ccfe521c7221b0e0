"""Operations of the area accounts.  Generated from spec/ by `make contract`: do not edit."""


from attrs import field, frozen

from nerve.contract.generated.entities import Account
from nerve.contract.route import AuthMode, AuthPolicy, NoBody, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind
from nerve.contract.unset import UNSET, Unset


@frozen(kw_only=True)
class PasswordChange:
    """accounts.change_password of spec/."""

    current_password: str | None = field(default=None)
    new_password: str


@frozen(kw_only=True)
class NewAccount:
    """accounts.create of spec/."""

    username: str
    password: str
    display_name: str = field(default='', metadata={'max_length': 200})


@frozen(kw_only=True)
class AccountsDisableParams:
    """Parameters of accounts.disable."""

    account_id: str


@frozen(kw_only=True)
class AccountsEnableParams:
    """Parameters of accounts.enable."""

    account_id: str


@frozen(kw_only=True)
class AccountList:
    """accounts.list of spec/."""

    accounts: list[Account]


@frozen(kw_only=True)
class AccountChange:
    """accounts.update of spec/."""

    username: str | Unset = field(default=UNSET)
    display_name: str | Unset = field(default=UNSET, metadata={'max_length': 200})


@frozen(kw_only=True)
class AccountsUpdateParams:
    """Parameters of accounts.update."""

    account_id: str


ACCOUNTS_CHANGE_PASSWORD: Route[NoParams, PasswordChange, Account] = Route(
    operation_id='accounts.change_password',
    method='PUT',
    path='/api/accounts/me/password',
    params=NoParams,
    body=PasswordChange,
    body_required=True,
    replies={200: Account},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.PERSON,
    refusal=ErrorCode.ACCOUNTS_NEED_PERSON,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.PASSWORD_TOO_LONG: ErrorKind.DETAIL, ErrorCode.EMPTY_PASSWORD: ErrorKind.DETAIL, ErrorCode.SETUP_INCOMPLETE: ErrorKind.DETAIL, ErrorCode.CURRENT_PASSWORD_REQUIRED: ErrorKind.DETAIL, ErrorCode.WRONG_CURRENT_PASSWORD: ErrorKind.DETAIL, ErrorCode.LOGIN_BUSY: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.ACCOUNTS_NEED_PERSON: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

ACCOUNTS_CREATE: Route[NoParams, NewAccount, Account] = Route(
    operation_id='accounts.create',
    method='POST',
    path='/api/accounts',
    params=NoParams,
    body=NewAccount,
    body_required=True,
    replies={200: Account},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.PERSON,
    refusal=ErrorCode.ACCOUNTS_NEED_PERSON,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.BAD_USERNAME: ErrorKind.DETAIL, ErrorCode.PASSWORD_TOO_LONG: ErrorKind.DETAIL, ErrorCode.EMPTY_PASSWORD: ErrorKind.DETAIL, ErrorCode.SETUP_INCOMPLETE: ErrorKind.DETAIL, ErrorCode.USERNAME_TAKEN: ErrorKind.DETAIL, ErrorCode.FIRST_ACCOUNT_UNNAMED: ErrorKind.DETAIL, ErrorCode.FIRST_ACCOUNT_PASSWORDLESS: ErrorKind.DETAIL, ErrorCode.LOGIN_BUSY: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.ACCOUNTS_NEED_PERSON: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

ACCOUNTS_DISABLE: Route[AccountsDisableParams, NoBody, Account] = Route(
    operation_id='accounts.disable',
    method='POST',
    path='/api/accounts/{account_id}/disable',
    params=AccountsDisableParams,
    body=NoBody,
    body_required=False,
    replies={200: Account},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.PERSON,
    refusal=ErrorCode.ACCOUNTS_NEED_PERSON,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.ACCOUNT_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.LAST_ENABLED_ACCOUNT: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.ACCOUNTS_NEED_PERSON: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

ACCOUNTS_ENABLE: Route[AccountsEnableParams, NoBody, Account] = Route(
    operation_id='accounts.enable',
    method='POST',
    path='/api/accounts/{account_id}/enable',
    params=AccountsEnableParams,
    body=NoBody,
    body_required=False,
    replies={200: Account},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.PERSON,
    refusal=ErrorCode.ACCOUNTS_NEED_PERSON,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.ACCOUNT_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.PASSWORDLESS_AMONG_OTHERS: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.ACCOUNTS_NEED_PERSON: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

ACCOUNTS_LIST: Route[NoParams, NoBody, AccountList] = Route(
    operation_id='accounts.list',
    method='GET',
    path='/api/accounts',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: AccountList},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.PERSON,
    refusal=ErrorCode.ACCOUNTS_NEED_PERSON,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.ACCOUNTS_NEED_PERSON: ErrorKind.DETAIL},
)

ACCOUNTS_ME: Route[NoParams, NoBody, Account] = Route(
    operation_id='accounts.me',
    method='GET',
    path='/api/accounts/me',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: Account},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.PERSON,
    refusal=ErrorCode.ACCOUNTS_NEED_PERSON,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.ACCOUNTS_NEED_PERSON: ErrorKind.DETAIL},
)

ACCOUNTS_UPDATE: Route[AccountsUpdateParams, AccountChange, Account] = Route(
    operation_id='accounts.update',
    method='PATCH',
    path='/api/accounts/{account_id}',
    params=AccountsUpdateParams,
    body=AccountChange,
    body_required=True,
    replies={200: Account},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.PERSON,
    refusal=ErrorCode.ACCOUNTS_NEED_PERSON,
    modes=frozenset({AuthMode.LOCAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    errors={ErrorCode.BAD_USERNAME: ErrorKind.DETAIL, ErrorCode.ACCOUNT_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.SETUP_INCOMPLETE: ErrorKind.DETAIL, ErrorCode.USERNAME_TAKEN: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.ACCOUNTS_NEED_PERSON: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)
