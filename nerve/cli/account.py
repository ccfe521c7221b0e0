"""``nerve account``: for an operator who locked everybody out; straight on the database, without HTTP.

A running daemon notices within a second, and closes the sockets of an account that was disabled.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
import trio

from nerve.cli.invocation import Failed, Invocation
from nerve.contract.codec import unstructure
from nerve.contract.generated.entities import Account
from nerve.effects import Effects
from nerve.errors import NerveError
from nerve.identity.operator import AccountOperator
from nerve.store.failures import StoreUnusable
from nerve.store.threads import open_database

T = TypeVar("T")


@click.group()
def account() -> None:
    """Manage accounts on the database itself, also while nobody can sign in."""


@account.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def list_accounts(invocation: Invocation, as_json: bool) -> None:
    """Show every account, oldest first."""
    found = _operate(invocation, lambda operator: operator.all())
    if as_json:
        click.echo(json.dumps({"accounts": unstructure(found)}))
        return
    rows = [("USERNAME", "ID", "STATE", "PASSWORD", "NAME"), *map(_row, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        click.echo("  ".join(cells).rstrip())


def _row(shown: Account) -> tuple[str, str, str, str, str]:
    state = "enabled" if shown.enabled else "disabled"
    password = "set" if shown.has_password else "none"
    return shown.username or "-", shown.id, state, password, _plain(shown.display_name)


@account.command()
@click.argument("username")
@click.option("--display-name", default="", help="How others see the account.")
@click.pass_obj
def create(invocation: Invocation, username: str, display_name: str) -> None:
    """Add an account.  Its password is asked for, or read from the first line of stdin."""
    password = _new_password()
    made = _operate(invocation, lambda operator: operator.create(username, password, display_name))
    click.echo(f"{made.username} can sign in now ({made.id})")


@account.command()
@click.argument("name")
@click.pass_obj
def enable(invocation: Invocation, name: str) -> None:
    """Let an account sign in again.  NAME is a username or an id."""
    shown = _operate(invocation, lambda operator: operator.enable(name))
    click.echo(f"{_called(shown)} is enabled")


@account.command()
@click.argument("name")
@click.pass_obj
def disable(invocation: Invocation, name: str) -> None:
    """Shut an account out, its open connections included.  NAME is a username or an id."""
    shown = _operate(invocation, lambda operator: operator.disable(name))
    click.echo(f"{_called(shown)} is disabled")


@account.command("set-password")
@click.argument("name")
@click.pass_obj
def set_password(invocation: Invocation, name: str) -> None:
    """Give an account a new password, asked for or read from the first line of stdin."""
    password = _new_password()
    shown = _operate(invocation, lambda operator: operator.set_password(name, password))
    click.echo(f"{_called(shown)} has a new password")


def _operate(invocation: Invocation, action: Callable[[AccountOperator], Awaitable[T]]) -> T:
    """Run one action on the database of this home.  Raises Failed."""
    config = invocation.loaded().config
    if config.auth.mode == "external":
        raise Failed("accounts are the gateway's here (auth.mode is external)")
    if not config.paths.database.is_file():
        raise Failed(f"{config.paths.database} is not there yet; nerve start makes it")
    configured_hash = config.auth.password_hash.reveal() or None

    async def operate() -> T:
        async with open_database(config.paths.database) as database:
            return await action(AccountOperator(database, Effects(), configured_hash))

    try:
        return trio.run(operate)
    except (NerveError, StoreUnusable) as error:
        raise Failed(str(error)) from None


def _new_password() -> str:
    """Never an argument: those can be read by every user of the machine."""
    if sys.stdin.isatty():
        password: str = click.prompt("New password", hide_input=True, confirmation_prompt=True)
        return password
    return sys.stdin.readline().removesuffix("\n").removesuffix("\r")


def _called(shown: Account) -> str:
    return shown.username or shown.id


def _plain(text: str) -> str:
    """A name that people chose, without what could move the cursor."""
    return "".join(character if character.isprintable() else "?" for character in text)
