"""Where ``nerve token`` gets its tokens: from the server, or signed with the home's own secret."""

import os

import apsw
import click
import trio
from attrs import evolve

from nerve.cli.chat_signin import Given, find_server, sign_in, terminal_asker
from nerve.cli.invocation import Failed, Invocation
from nerve.client import ApiError, Unreachable, open_client
from nerve.config.homes import read_signing_secret
from nerve.effects import Effects
from nerve.errors import NerveError
from nerve.identity.tokens import mint_mcp
from nerve.store import sessions
from nerve.store.failures import StoreUnusable
from nerve.store.inspection import inspect


def mcp_token(invocation: Invocation, session_id: str | None, hours: int) -> str:
    """Needs no password: whoever can read the home's secret is the operator.  Raises Failed."""
    config = invocation.loaded().config
    if session_id is not None:
        try:
            known = inspect(config.paths.database, _knows, session_id)
        except StoreUnusable as error:
            raise Failed(str(error)) from None
        if not known:
            raise Failed(f"there is no session {session_id}")
    secret, warnings = read_signing_secret(config)
    if secret is None:
        raise Failed(
            f"there is no secret to sign tokens with; the first `nerve start` makes one ({'; '.join(warnings)})"
        )
    for warning in warnings:
        click.echo(f"nerve: {warning}", err=True)
    return mint_mcp(secret.reveal().encode(), session_id, Effects().now(), hours)


def _knows(db: apsw.Connection, session_id: str) -> bool:
    try:
        sessions.get(db, session_id)
    except NerveError:
        return False
    return True


def session_token(invocation: Invocation, address: str | None) -> str:
    server = find_server(invocation, address)
    given = evolve(Given.from_environment(os.environ), token=None)  # an old token is not what is asked for

    async def sign() -> str:
        async with open_client(server.address, tls=server.tls) as client:
            await sign_in(client, given, terminal_asker(), server.setup_token)
            assert client.token is not None
            return client.token

    try:
        return trio.run(sign)
    except ApiError as error:
        raise Failed(error.message) from None
    except Unreachable as error:
        raise Failed(str(error)) from None
