"""The command ``nerve token``: a token on stdout, and nothing else there."""

import click

from nerve.cli.invocation import Invocation

MCP_HOURS = 8
MAX_MCP_HOURS = 24


@click.command()
@click.option("--mcp", is_flag=True, help="A token for an agent's tools, signed with this home's secret.")
@click.option("--session", "session_id", help="With --mcp: the session on whose behalf the tools act.")
@click.option("--hours", type=click.IntRange(1, MAX_MCP_HOURS), help=f"With --mcp: how long it is good [{MCP_HOURS}].")
@click.option("--url", "address", help="Sign in to this server instead of the daemon of this home.")
@click.pass_obj
def token(invocation: Invocation, mcp: bool, session_id: str | None, hours: int | None, address: str | None) -> None:
    """Sign in and print the session token, and nothing else, on stdout.

    NERVE_PASSWORD (and NERVE_USERNAME, where there are several accounts) are used if they are set.
    """
    if not mcp and (session_id is not None or hours is not None):
        raise click.UsageError("--session and --hours belong to --mcp")
    if mcp and address is not None:
        raise click.UsageError("--mcp is for this home's own server; it has no --url")
    # The client need not be loaded for the other commands.
    from nerve.cli.token_sources import mcp_token, session_token

    click.echo(mcp_token(invocation, session_id, hours or MCP_HOURS) if mcp else session_token(invocation, address))
