"""How ``nerve chat`` begins: sign in, look around, and hand over to the chat.  Loaded only when it is wanted."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import trio
from attrs import frozen

from nerve.cli.chat_editor import CookedLines, Editor, Keyboard
from nerve.cli.chat_loop import BROKEN_PIPE, INTERRUPTED, Chat
from nerve.cli.chat_output import JsonOutput, Output, PlainOutput, TerminalOutput, columns, edited, symbols_for
from nerve.cli.chat_render import Renderer
from nerve.cli.chat_screen import Screen
from nerve.cli.chat_signin import Given, Server, find_server, sign_in, terminal_asker
from nerve.cli.chat_text import Symbols, clean
from nerve.cli.invocation import Failed, Invocation
from nerve.client import ApiError, NerveClient, Unreachable, open_client
from nerve.contract.generated.entities import Actor, Message, MessageRole, Session

SHOWN_BEFORE = 4  # messages of the history, when a chat begins
GREETING = "/help tells what can be done, ^C stops a turn, ^D leaves."


@frozen
class Wanted:
    """What the command line says."""

    session_id: str
    message: str | None
    as_json: bool


def run_chat(invocation: Invocation, address: str | None, wanted: Wanted) -> int:
    """The exit code.  Raises Failed."""
    server = find_server(invocation, address)
    try:
        code = trio.run(_chat, server, wanted)
    except ApiError as error:
        raise Failed(error.message) from None
    except Unreachable as error:
        raise Failed(str(error)) from None
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    if code == BROKEN_PIPE:
        # Nobody reads any more; what Python still holds for stdout has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


async def _chat(server: Server, wanted: Wanted) -> int:
    """Raises ApiError, Unreachable and Failed before the chat has begun."""
    async with open_client(server.address, tls=server.tls) as client:
        await sign_in(client, Given.from_environment(os.environ), terminal_asker(), server.setup_token)
        session = await _session(client, wanted.session_id)
        me, names = await _people(client)
        own: dict[str, str] = {}
        renderer = Renderer(symbols_for(sys.stdout.encoding), names, own, me)
        keyboard = None if wanted.message is not None else _keyboard(wanted)
        introduced = keyboard is not None and not wanted.as_json
        before = await _said_before(client, session.id) if introduced else []
        # From here on a signal is the chat's, which gives the terminal back.
        with _output(renderer.symbols, wanted, keyboard) as output:
            talk = Chat(client, output, renderer, own, session.id, wanted.message, keyboard, sys.stdin.fileno())
            if introduced:
                talk.history(before)
                talk.remark(f"{clean(session.title)} ({session.id}).  {GREETING}")
            return await talk.run()


async def _session(client: NerveClient, session_id: str) -> Session:
    try:
        return await client.session(session_id)
    except ApiError as error:
        if error.status != 404:
            raise
        raise Failed(f"there is no session {session_id}; /sessions in `nerve chat` lists them") from None


async def _people(client: NerveClient) -> tuple[str, Callable[[str | None], str]]:
    """Our own actor, and what to call the others."""
    me = (await client.me()).actor.id
    called = {actor.id: _name(actor) for actor in await client.actors()}
    return me, lambda actor_id: called.get(actor_id or "", "somebody")


def _name(actor: Actor) -> str:
    return clean(actor.display_name or actor.username or "").strip() or "somebody"


async def _said_before(client: NerveClient, session_id: str) -> list[Message]:
    """What was said last, but for the message of a running turn, which the turn itself shows."""
    messages = (await client.messages(session_id, SHOWN_BEFORE)).messages
    state = await client.session_status(session_id)
    return messages[:-1] if state.is_running and messages and messages[-1].role is MessageRole.USER else messages


def _keyboard(wanted: Wanted) -> Keyboard:
    edits = sys.stdout.isatty() and not wanted.as_json and os.environ.get("TERM") not in (None, "", "dumb")
    return Editor() if edits else CookedLines()


@contextmanager
def _output(symbols: Symbols, wanted: Wanted, keyboard: Keyboard | None) -> Iterator[Output]:
    terminal = sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if wanted.as_json:
        yield JsonOutput(sys.stdout, sys.stderr)
    elif isinstance(keyboard, Editor):
        with edited(sys.stdin.fileno()):
            yield TerminalOutput(Screen(columns, colour, symbols))
    else:
        yield PlainOutput(sys.stdout, sys.stdout if terminal else sys.stderr, colour)
