"""`nerve chat` without a server, a terminal or a process: scripted connections, a pipe of keys, a screen in memory."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import trio
from attrs import define, field
from trio.testing import MockClock, wait_all_tasks_blocked

from nerve.cli.chat_editing import NotEdited
from nerve.cli.chat_editor import Editor
from nerve.cli.chat_loop import Chat
from nerve.cli.chat_output import TerminalOutput
from nerve.cli.chat_render import Renderer
from nerve.cli.chat_screen import Screen
from nerve.cli.chat_text import Symbols
from nerve.client import LiveSession, NerveClient
from nerve.contract.codec import encode_plain, parse_json
from nerve.contract.generated.errors import ErrorCode
from nerve.contract.generated.frames_client import AnswerInteractionFrame, MessageFrame
from nerve.errors import NerveError, error_body
from tests.client.lines import Line, Server, server
from tools.terminal import Terminal

COLUMNS = 80
LONG_SECONDS = 60.0  # more than any wait between two connections


class Tty(Terminal):
    """As the kernel does it: a line feed also goes back to the first column."""

    def feed(self, text: str) -> None:
        super().feed(text.replace("\n", "\r\n"))


@define(eq=False)
class InMemory(TerminalOutput):
    """The terminal's output, with the terminal's bytes going to one in memory."""

    keyboard: int = -1
    descriptor: int = -1
    tty: Tty = field(factory=lambda: Tty(COLUMNS, 100))
    lendings: int = 0

    def put(self, text: str) -> None:
        self.tty.feed(text)

    def take_keys(self) -> None:
        return

    def leave_keys(self) -> None:
        self.lendings += 1


@define(eq=False)
class Rest:
    """What the server answers to REST calls: by method and path, a status with it where it is not 200.

    ``asked`` is what it was asked for.
    """

    answers: dict[str, Any] = field(factory=dict)
    asked: list[tuple[str, Any]] = field(factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        call = f"{request.method} {request.url.path}"
        self.asked.append((call, parse_json(request.content) if request.content else None))
        answer = self.answers.get(call, ErrorCode.SESSION_NOT_FOUND)
        if isinstance(answer, ErrorCode):
            refused = error_body(NerveError(answer))
            return httpx.Response(refused.status, content=encode_plain(refused.body))
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        return httpx.Response(status, content=encode_plain(body))


@define(eq=False)
class StagedClient(NerveClient):
    """Its sockets are the scripted ones; a session has a server of its own where ``places`` names one."""

    main: Server = field(kw_only=True)
    places: dict[str, Server] = field(factory=dict, kw_only=True)

    def follow(self, session_id: str, **how: Any) -> AbstractAsyncContextManager[LiveSession]:
        return self.places.get(session_id, self.main).follow()


@define(eq=False)
class Stage:
    """``edits`` says what the person's editor makes of a text; ``code`` is the exit code once the chat has ended."""

    chat: Chat
    rest: Rest
    house: Server
    output: InMemory
    clock: MockClock
    keys: int
    edits: Callable[[str], str]
    code: int | None = None
    edited: trio.Event | None = None  # set: the editor is left

    @property
    def screen(self) -> str:
        return self.output.tty.text()

    @property
    def prompt(self) -> str:
        return self.screen.splitlines()[-1]

    @property
    def line(self) -> Line:
        """The connection that is open, or was the last one."""
        return self.house.opened[-1]

    @property
    def sent(self) -> list[str]:
        return [one.content for line in self.house.opened for one in line.sent if isinstance(one, MessageFrame)]

    @property
    def answered(self) -> list[AnswerInteractionFrame]:
        return [one for one in self.line.sent if isinstance(one, AnswerInteractionFrame)]

    async def type(self, text: str) -> None:
        os.write(self.keys, text.encode())
        await wait_all_tasks_blocked()

    async def enter(self, text: str) -> None:
        await self.type(f"{text}\r")

    async def signal(self, number: signal.Signals = signal.SIGINT) -> None:
        signal.raise_signal(number)
        await wait_all_tasks_blocked()

    async def says(self, *frames: Any) -> None:
        self.line.say(*frames)
        await wait_all_tasks_blocked()

    async def drops(self, why: Any = None) -> None:
        self.line.drop(*(() if why is None else (why,)))
        await wait_all_tasks_blocked()

    async def waits(self, seconds: float = LONG_SECONDS) -> None:
        self.clock.jump(seconds)
        await wait_all_tasks_blocked()

    async def _edit(self, text: str) -> str:
        if self.edited is not None:
            await self.edited.wait()
        return self.edits(text)


def unedited(text: str) -> str:
    raise NotEdited("no editor is there")


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


@asynccontextmanager
async def on_stage(
    clock: MockClock,
    *lines: Line,
    message: str | None = None,
    answers: dict[str, Any] | None = None,
    edits: Callable[[str], str] = unedited,
    places: dict[str, Server] | None = None,
) -> AsyncIterator[Stage]:
    """A chat in session ``main`` over these connections, until the block is left."""
    rest, house, output = Rest(answers or {}), server(*lines), InMemory(Screen(lambda: COLUMNS))
    own: dict[str, str] = {}
    renderer = Renderer(Symbols(), lambda actor_id: "somebody", own, "act_me")
    with _pipe() as (read, write):
        async with httpx.AsyncClient(transport=httpx.MockTransport(rest)) as http, trio.open_nursery() as nursery:
            client = StagedClient("http://house", "token", http=http, main=house, places=places or {})
            keyboard = None if message is not None else Editor()
            chat = Chat(client, output, renderer, own, "main", message, keyboard, read)
            stage = Stage(chat, rest, house, output, clock, write, edits)
            chat.edit_text = stage._edit

            async def run() -> None:
                stage.code = await chat.run()

            nursery.start_soon(run)
            await wait_all_tasks_blocked()
            yield stage
            nursery.cancel_scope.cancel()
