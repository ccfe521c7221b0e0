"""Contract chapter Accounts."""

from nerve.contract.caller import Caller
from nerve.contract.generated.accounts import (
    ACCOUNTS_CHANGE_PASSWORD,
    ACCOUNTS_CREATE,
    ACCOUNTS_DISABLE,
    ACCOUNTS_ENABLE,
    ACCOUNTS_LIST,
    ACCOUNTS_ME,
    ACCOUNTS_UPDATE,
    AccountChange,
    AccountList,
    AccountsDisableParams,
    AccountsEnableParams,
    AccountsUpdateParams,
    NewAccount,
    PasswordChange,
)
from nerve.contract.generated.entities import Account
from nerve.contract.route import NoBody, NoParams
from nerve.routes.binding import bind
from nerve.services import Services


async def list_accounts(services: Services, caller: Caller, params: NoParams, body: NoBody) -> AccountList:
    return AccountList(accounts=services.identity.accounts())


async def me(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Account:
    return services.identity.account(caller)


async def create(services: Services, caller: Caller, params: NoParams, body: NewAccount) -> Account:
    """Answers once the account is stored and can sign in."""
    return await services.identity.create_account(caller.peer, body)


async def update(services: Services, caller: Caller, params: AccountsUpdateParams, body: AccountChange) -> Account:
    return await services.identity.update_account(params.account_id, body)


async def disable(services: Services, caller: Caller, params: AccountsDisableParams, body: NoBody) -> Account:
    """Answers once the account's next request would fail and its sockets are being closed."""
    return await services.identity.disable_account(params.account_id)


async def enable(services: Services, caller: Caller, params: AccountsEnableParams, body: NoBody) -> Account:
    return await services.identity.enable_account(params.account_id)


async def change_password(services: Services, caller: Caller, params: NoParams, body: PasswordChange) -> Account:
    return await services.identity.change_password(caller, body)


ENDPOINTS = (
    bind(ACCOUNTS_LIST, list_accounts),
    bind(ACCOUNTS_ME, me),
    bind(ACCOUNTS_CREATE, create),
    bind(ACCOUNTS_UPDATE, update),
    bind(ACCOUNTS_DISABLE, disable),
    bind(ACCOUNTS_ENABLE, enable),
    bind(ACCOUNTS_CHANGE_PASSWORD, change_password),
)
