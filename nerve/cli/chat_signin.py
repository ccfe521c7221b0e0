"""Finding the server, and signing a person in: from the environment, silently, by asking, or by claiming."""

import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import click
from attrs import field, frozen

from nerve.cli.compose import in_compose
from nerve.cli.daemon import record_of, running_pid
from nerve.cli.invocation import Failed, Invocation
from nerve.cli.status import url
from nerve.client import ApiError, NerveClient
from nerve.contract.generated.entities import AuthModeName, LoginState
from nerve.contract.generated.errors import ErrorCode
from nerve.store.failures import StoreUnusable
from nerve.store.inspection import inspect
from nerve.store.instance import SETUP_TOKEN, fact

ATTEMPTS = 3
FIRST_USERNAME = "owner"
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
_ASKED_AGAIN = {
    ErrorCode.BAD_CREDENTIALS,
    ErrorCode.BAD_USERNAME,
    ErrorCode.PASSWORD_TOO_LONG,
    ErrorCode.EMPTY_PASSWORD,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.WRONG_SETUP_TOKEN,
}


@frozen
class Server:
    """``database`` is that of our own home, where the setup token can be read; None for somebody else's server."""

    address: str
    tls: ssl.SSLContext | None = None
    database: Path | None = None

    def setup_token(self) -> str | None:
        if self.database is None:
            return None
        try:
            return inspect(self.database, fact, SETUP_TOKEN)
        except StoreUnusable:
            return None


@frozen
class Given:
    """What the environment says about who is here."""

    token: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Given":
        return cls(*(environ.get(name) or None for name in ("NERVE_TOKEN", "NERVE_USERNAME", "NERVE_PASSWORD")))


class Asker(Protocol):
    """Somebody who can be asked."""

    def yes(self, question: str) -> bool: ...

    def text(self, label: str, default: str | None = None) -> str: ...

    def secret(self, label: str, *, twice: bool = False) -> str: ...

    def tell(self, text: str) -> None: ...


class TerminalAsker:
    """Asks on stderr: stdout is for what a command has to say."""

    def yes(self, question: str) -> bool:
        return click.confirm(question, default=True, err=True)

    def text(self, label: str, default: str | None = None) -> str:
        answer: str = click.prompt(label, default=default, err=True)
        return answer

    def secret(self, label: str, *, twice: bool = False) -> str:
        answer: str = click.prompt(label, hide_input=True, confirmation_prompt=twice, err=True)
        return answer

    def tell(self, text: str) -> None:
        click.echo(text, err=True)


def terminal_asker() -> Asker | None:
    """None where nobody can be asked."""
    return TerminalAsker() if sys.stdin.isatty() and sys.stderr.isatty() else None


def find_server(invocation: Invocation, address: str | None) -> Server:
    """The server at this URL, or the daemon of this home.  Raises Failed."""
    if address is not None:
        return _remote(address)
    config = invocation.loaded().config
    if in_compose(config):
        return _local(url(config, config.gateway.host, config.gateway.port), None)
    pid = running_pid(config.paths)
    record = None if pid is None else record_of(config.paths, pid)
    if record is None:
        raise Failed("nerve is not running on this home; `nerve start` starts it, and --url names another server")
    return _local(record.address, config.paths.database)


def _remote(address: str) -> Server:
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        known = None
    if not known or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise click.UsageError("--url is like http://host:8900")
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        click.echo(f"nerve: the line to {parts.hostname} is not encrypted", err=True)
    return Server(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")


def _local(address: str, database: Path | None) -> Server:
    """A server of this machine: reached over loopback, where its certificate need not be a public one."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if host in _WILDCARDS:
        address = f"{parts.scheme}://{_WILDCARDS[host]}:{parts.port}"
    if parts.scheme != "https" or not (host in _WILDCARDS or _is_loopback(host)):
        return Server(address, None, database)
    unchecked = ssl.create_default_context()
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    return Server(address, unchecked, database)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


async def sign_in(client: NerveClient, given: Given, ask: Asker | None, setup_token: Callable[[], str | None]) -> None:
    """Give the client a token.  Raises Failed, and what the client's calls raise."""
    if given.token is not None:
        await _with_token(client, given.token)
        return
    status = await client.auth_status()
    if status.mode is AuthModeName.EXTERNAL:
        raise Failed(f"a gateway signs people in at {client.address}; open it in a browser")
    match status.login:
        case LoginState.NONE:
            await client.login("")
        case LoginState.SETUP:
            await _claim(client, given, ask, setup_token)
        case LoginState.PASSWORD | LoginState.USERNAME_PASSWORD:
            await _login(client, given, ask, named=status.login is LoginState.USERNAME_PASSWORD)


async def _with_token(client: NerveClient, token: str) -> None:
    client.token = token
    try:
        await client.auth_check()
    except ApiError as error:
        if error.status != 401:
            raise
        raise Failed(
            f"{client.address} does not accept NERVE_TOKEN (any more); `nerve token` makes a new one"
        ) from None


async def _login(client: NerveClient, given: Given, ask: Asker | None, *, named: bool) -> None:
    if ask is None and (given.password is None or (named and given.username is None)):
        need = "NERVE_USERNAME and NERVE_PASSWORD" if named else "NERVE_PASSWORD"
        raise Failed(f"nobody can be asked for a password here; set {need}, or NERVE_TOKEN")
    for attempt in range(ATTEMPTS):
        username, password = given.username, given.password
        if username is None and named and ask is not None:
            username = ask.text("Username")
        if password is None and ask is not None:
            password = ask.secret("Password")
        try:
            await client.login(password or "", username)
            return
        except ApiError as error:
            if given.password is not None or not _again(error, ask, attempt):
                raise Failed(error.message) from None


async def _claim(client: NerveClient, given: Given, ask: Asker | None, setup_token: Callable[[], str | None]) -> None:
    if ask is None or not ask.yes(f"Nobody has claimed {client.address} yet.  Claim it now?"):
        raise Failed("this instance is unclaimed; whoever has its setup token (`nerve status`) can claim it")
    own = setup_token()
    for attempt in range(ATTEMPTS):
        token = own or ask.secret("Setup token (`nerve status` shows it on the server's machine)")
        username = given.username or ask.text("Your username", FIRST_USERNAME)
        password = given.password or ask.secret("A password", twice=True)
        try:
            await client.claim(token, username, password)
            ask.tell(f"It is yours now, {username}.")
            return
        except ApiError as error:
            if not _again(error, ask, attempt):
                raise Failed(error.message) from None


def _again(error: ApiError, ask: Asker | None, attempt: int) -> bool:
    """Whether to ask once more; the person is told why."""
    if ask is None or error.code not in _ASKED_AGAIN or attempt == ATTEMPTS - 1:
        return False
    ask.tell(error.message)
    return True
