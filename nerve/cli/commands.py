"""``nerve`` and its commands.  Each reads the configuration when it begins; only ``status`` does without one."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from nerve import __version__
from nerve.cli.account import account
from nerve.cli.chat import chat
from nerve.cli.compose import forward, in_compose
from nerve.cli.daemon import Ended, record_of, running_pid, terminate
from nerve.cli.invocation import Failed, Invocation
from nerve.cli.launch import Launch, launch
from nerve.cli.logs import follow, last_lines
from nerve.cli.status import status as read_status
from nerve.cli.token import token
from nerve.config import ConfigError, Paths

F = TypeVar("F", bound=Callable[..., Any])


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-c",
    "--config-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory with config.yaml and config.local.yaml.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
@click.version_option(__version__, prog_name="nerve")
@click.pass_context
def cli(context: click.Context, config_dir: Path | None, verbose: bool) -> None:
    """A self-hosted server that gives AI agents a home."""
    context.obj = Invocation(config_dir, verbose)


def _address(command: F) -> F:
    host = click.option("--host", help="The address to listen on, instead of gateway.host.")
    port = click.option("--port", type=click.IntRange(0, 65535), help="The port, instead of gateway.port; 0: any.")
    return host(port(command))


@cli.command()
@click.option("-f", "--foreground", is_flag=True, help="Stay in this terminal; the log goes to stderr.")
@_address
@click.pass_obj
def start(invocation: Invocation, foreground: bool, host: str | None, port: int | None) -> None:
    """Start the daemon; a fresh one is unclaimed, and `nerve status` tells its setup token."""
    loaded = invocation.loaded()
    paths = loaded.config.paths
    if in_compose(loaded.config):
        _refuse_address(host, port)
        forward(loaded.config, "up", *([] if foreground else ["-d"]))
    if (pid := running_pid(paths)) is not None:
        raise Failed(f"already running (pid {pid}) on {paths.home}")
    if foreground:
        # The whole server; the other commands, and the one that waits for this one, need not load it.
        from nerve.cli.foreground import serve_foreground

        serve_foreground(loaded, host, port, verbose=invocation.verbose)
    else:
        _launch(invocation, paths, host, port)


@cli.command()
@click.pass_obj
def stop(invocation: Invocation) -> None:
    """Stop the daemon: what runs is interrupted and recorded.  After 15 s it is killed."""
    config = invocation.loaded().config
    if in_compose(config):
        forward(config, "stop")
    _stop(config.paths)


@cli.command()
@_address
@click.pass_obj
def restart(invocation: Invocation, host: str | None, port: int | None) -> None:
    """Stop the daemon and start it again, with the options that it was started with unless new ones are given."""
    config = invocation.loaded().config
    if in_compose(config):
        _refuse_address(host, port)
        forward(config, "restart")
    paths = config.paths
    pid = running_pid(paths)
    if pid is not None:
        record = record_of(paths, pid)
        if record is not None:
            host = record.host if host is None else host
            port = record.chosen_port if port is None else port
        if config.environment.systemd:
            # The unit's restart policy brings it back; a second one beside it would only find the home locked.
            _stop(paths)
            click.echo("systemd starts it again")
            return
        _stop(paths)
    _launch(invocation, paths, host, port)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def status(invocation: Invocation, as_json: bool) -> None:
    """Tell whether it runs and where, and the setup token while nobody has claimed the instance."""
    try:
        found = read_status(invocation.flag_dir)
        if found.problem is None and in_compose(invocation.loaded().config):
            forward(invocation.loaded().config, "ps", *(["--format", "json"] if as_json else []))
    except ConfigError as error:
        raise Failed(str(error)) from None
    click.echo(json.dumps(found.as_json()) if as_json else "\n".join(found.as_lines()))


@cli.command()
@click.option("-f", "--follow", "following", is_flag=True, help="Go on with what is added, until interrupted.")
@click.pass_obj
def logs(invocation: Invocation, following: bool) -> None:
    """Show the last lines of the log of a daemon in the background."""
    config = invocation.loaded().config
    if in_compose(config):
        forward(config, "logs", *(["-f"] if following else []))
    path = config.paths.log_file
    click.echo(path)
    out = sys.stdout.buffer
    try:
        lines, place = last_lines(path)
        out.write(lines)
        out.flush()
        if following:
            for block in follow(path, place):
                out.write(block)
                out.flush()
    except FileNotFoundError:
        click.echo("there is no log yet", err=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failed(f"{path} can't be read: {error.strerror}") from None
    except KeyboardInterrupt:
        click.echo()


def _launch(invocation: Invocation, paths: Paths, host: str | None, port: int | None) -> None:
    record = launch(Launch(invocation.flag_dir, invocation.verbose, host, port), paths)
    click.echo(f"nerve is running (pid {record.pid}) on {record.address}; its log is {paths.log_file}")


def _refuse_address(host: str | None, port: int | None) -> None:
    if host is not None or port is not None:
        raise click.UsageError("--host and --port are for a daemon outside a container; see docker-compose.yml")


def _stop(paths: Paths) -> None:
    pid = running_pid(paths)
    if pid is None:
        click.echo("nerve is not running")
        return
    try:
        ended = terminate(pid, paths)
    except PermissionError:
        raise Failed(f"process {pid} is another user's") from None
    match ended:
        case Ended.STOPPED:
            click.echo(f"nerve has stopped (pid {pid})")
        case Ended.KILLED:
            click.echo(f"nerve did not stop in time and was killed (pid {pid})")
        case Ended.STILL_THERE:
            raise Failed(f"process {pid} can't be ended")


cli.add_command(account)
cli.add_command(chat)
cli.add_command(token)


def main() -> None:
    """The program ``nerve``.  Exits with 0, 1 for a failure, 2 for a usage error."""
    cli(prog_name="nerve")
