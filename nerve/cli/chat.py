"""The command ``nerve chat``."""

import sys

import click

from nerve.cli.invocation import Invocation

MAX_MESSAGE_BYTES = 1024 * 1024


@click.command()
@click.option("--session", "session_id", default="main", help="The session to talk in [main].")
@click.option("--url", "address", help="Another server than the daemon of this home, such as https://nerve.example.")
@click.option("--json", "as_json", is_flag=True, help="Print every frame of the session as one line of JSON.")
@click.argument("message", required=False)
@click.pass_obj
def chat(invocation: Invocation, session_id: str, address: str | None, as_json: bool, message: str | None) -> None:
    """Talk with an agent, and see its answer as it comes.

    With MESSAGE (or one on stdin) it sends that, shows its turn and ends: 0 if the turn is done, 1 if it failed, 130 if
    you stopped it.  Without, it is a conversation: /help tells what can be done.  ^C stops the turn, a second one
    leaves.

    NERVE_TOKEN, or NERVE_PASSWORD (and NERVE_USERNAME), sign in without being asked.
    """
    if message is None and not sys.stdin.isatty():
        message = sys.stdin.buffer.read(MAX_MESSAGE_BYTES).decode("utf-8", "replace").removesuffix("\n")
    if message is not None and not message.strip():
        raise click.UsageError("the message is empty")
    # The client and all that draws need not be loaded for the other commands.
    from nerve.cli.chat_start import Wanted, run_chat

    click.get_current_context().exit(run_chat(invocation, address, Wanted(session_id, message, as_json)))
