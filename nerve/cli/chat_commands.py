"""What the commands of a chat do: each asks the server, and says what came of it."""

from typing import Protocol

from attrs import frozen

from nerve.cli.chat_input import HELP, Command, Name
from nerve.cli.chat_render import Renderer
from nerve.cli.chat_text import clean, one_line
from nerve.client import ApiError, NerveClient, Unreachable
from nerve.contract.generated.entities import Message, SessionRow, TurnStop
from nerve.contract.generated.sessions import AllStopped, ForceStopped, TurnStopped

HISTORY = 10
MAX_HISTORY = 1000
TITLE = 60


class Talk(Protocol):
    """What a command may do to the chat."""

    client: NerveClient
    session_id: str
    renderer: Renderer

    def remark(self, text: str) -> None: ...

    def complain(self, text: str) -> None: ...

    def switch(self, session_id: str) -> None: ...

    def stop_failed(self) -> None: ...

    def history(self, messages: list[Message]) -> None: ...


@frozen
class Commands:
    _talk: Talk

    async def carry_out(self, command: Command) -> None:
        """Raises ApiError and Unreachable."""
        talk = self._talk
        match command.name:
            case Name.HELP:
                talk.remark(HELP)
            case Name.SESSIONS:
                feed = await talk.client.sessions()
                talk.remark("\n".join(map(self._row, feed.sessions)) or "there are no conversations yet")
            case Name.SWITCH:
                await self._switch(command.argument)
            case Name.NEW:
                made = await talk.client.create_session(command.argument or None)
                self._go(made.id, made.title)
            case Name.FORK:
                made = await talk.client.fork_session(talk.session_id, title=command.argument or None)
                self._go(made.id, made.title)
            case Name.HISTORY:
                limit = max(1, min(MAX_HISTORY, int(command.argument or HISTORY)))
                page = await talk.client.messages(talk.session_id, limit)
                talk.history(page.messages)
            case Name.QUEUE:
                waiting = await talk.client.queue(talk.session_id)
                talk.remark("\n".join(map(talk.renderer.waiting, waiting)) or "nothing waits")
            case Name.CANCEL:
                await talk.client.cancel(talk.session_id, command.argument)
            case _:
                raise AssertionError(command.name)  # the chat's own

    async def _switch(self, session_id: str) -> None:
        found = await self._talk.client.session(session_id)
        self._go(found.id, found.title)

    def _go(self, session_id: str, title: str) -> None:
        self._talk.remark(f"{one_line(title, TITLE, self._talk.renderer.symbols)} ({clean(session_id)})")
        self._talk.switch(session_id)

    def _row(self, session: SessionRow) -> str:
        here = "*" if session.id == self._talk.session_id else " "
        busy = "  (running)" if session.is_running else ""
        return f"{here} {clean(session.id):<14} {one_line(session.title, TITLE, self._talk.renderer.symbols)}{busy}"

    async def stop(self, session_id: str) -> None:
        """Stop the turn, and say so where that did not help."""
        try:
            answer = await self._talk.client.stop(session_id)
        except (ApiError, Unreachable) as error:
            self._talk.complain(f"the turn can't be stopped: {error}")
            self._talk.stop_failed()
            return
        if answer.turn is TurnStop.NOT_RUNNING:
            self._talk.remark("no turn is running")
            self._talk.stop_failed()
        elif answer.turn not in (TurnStop.STOPPED, TurnStop.KILLED):
            self._talk.complain(self._not_stopped(answer))
            self._talk.stop_failed()

    def _not_stopped(self, answer: TurnStopped | AllStopped | ForceStopped) -> str:
        ends = answer.would_end if isinstance(answer, TurnStopped) else []
        names = ", ".join(one_line(agent.label, TITLE, self._talk.renderer.symbols) for agent in ends)
        if answer.turn is TurnStop.NEEDS_CONFIRMATION:
            return f"that would end what works in the background too ({names}); /stop all does so"
        if names:
            return f"the turn does not stop; /stop force ends it, and with it what works in the background ({names})"
        return "the turn does not stop; try again, or leave with a second ^C"

    async def cancel(self, session_id: str, queue_id: str) -> None:
        """Take a message back that waits, and say so where it could not be done."""
        try:
            await self._talk.client.cancel(session_id, queue_id)
        except (ApiError, Unreachable) as error:
            self._talk.complain(f"the message can't be taken back: {error}")
            self._talk.stop_failed()
