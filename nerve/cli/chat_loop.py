"""The chat itself: shows a session while it lives, sends what is typed, stops what ^C stops."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable

import trio
from attrs import define, field

from nerve.cli.chat_agents import Agents
from nerve.cli.chat_answers import Answers
from nerve.cli.chat_commands import Commands
from nerve.cli.chat_editing import NotEdited, edit_text
from nerve.cli.chat_editor import Entered, Key, Keyboard
from nerve.cli.chat_events import explained, is_aside
from nerve.cli.chat_input import ABOUT_AGENTS, ABOUT_ASKED, Command, Interrupts, Mistaken, Name, Reaction, Say, parse
from nerve.cli.chat_output import Output
from nerve.cli.chat_render import Renderer
from nerve.cli.chat_screen import Prompt
from nerve.cli.chat_text import Tone
from nerve.client import (
    ApiError,
    CaughtUp,
    Disconnected,
    LiveEvent,
    LiveSession,
    NerveClient,
    Phase,
    SessionGone,
    SocketEnded,
    TurnWatch,
    Unanswered,
    Unconfirmed,
    Unreachable,
)
from nerve.contract.generated.entities import Message
from nerve.contract.generated.frames_server import (
    DoneFrame,
    ErrorFrame,
    InteractionFrame,
    InteractionResolvedFrame,
    SessionRunningFrame,
    SessionStatusFrame,
)

OK, FAILED, INTERRUPTED, BROKEN_PIPE = 0, 1, 130, 141
MAX_COMMANDS = 16  # typed and not carried out yet
KEYS = 4096
HINT = "^C again leaves (also ^D); a running turn goes on without you"


@define(eq=False)
class Chat:
    """``keyboard`` is None for a chat about one message, which ends with its turn."""

    client: NerveClient
    output: Output
    renderer: Renderer
    own: dict[str, str]
    session_id: str
    message: str | None = None
    keyboard: Keyboard | None = None
    descriptor: int = 0
    exit_code: int = OK
    live: LiveSession | None = None
    running: bool = False
    offline: bool = False
    leaving: bool = False
    watch: TurnWatch | None = None
    edit_text: Callable[[str], Awaitable[str]] = edit_text
    _interrupts: Interrupts = field(factory=Interrupts)
    _stop_asked: bool = False
    _interrupted: bool = False
    _scope: trio.CancelScope = field(factory=trio.CancelScope)
    _commands: Commands = field(init=False)
    _aside: Renderer = field(init=False)
    _answers: Answers = field(init=False)
    _agents: Agents = field(init=False)
    _asked: trio.MemorySendChannel[Command] | None = None  # commands that are carried out one after another
    _lent: trio.Event | None = None  # set when the terminal is ours again

    def __attrs_post_init__(self) -> None:
        self._commands = Commands(self)
        self._answers = Answers(self)
        self._agents = Agents(self)
        shown = self.renderer
        apart = Renderer(shown.symbols, shown.names, shown.own, shown.me)
        self._aside = apart if self.output.apart else shown

    async def run(self) -> int:
        """Chat until the person leaves, the turn is over, or coming back can't help; the exit code."""
        numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGCONT}
        with trio.open_signal_receiver(*numbers) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._heed, signals, nursery)
                if self.keyboard is not None:
                    self._asked, receive = trio.open_memory_channel[Command](MAX_COMMANDS)
                    nursery.start_soon(self._type, self.keyboard, nursery)
                    nursery.start_soon(self._carry_out, receive)
                while not self.leaving:
                    await self._follow(self.session_id)
                nursery.cancel_scope.cancel()
        if self.exit_code != BROKEN_PIPE:
            self.output.prompt(None)
            self.output.show(self.renderer.close())
        return self.exit_code

    # --- the session ----------------------------------------------------------------------------------------------

    async def _follow(self, session_id: str) -> None:
        """Show one session, until another one is wanted or all is over."""
        self.running = self.offline = self._stop_asked = False
        self.renderer.begin()
        self._aside.begin()
        self._answers.begin()
        self._agents.begin()
        try:
            with trio.CancelScope() as self._scope:
                async with self.client.follow(session_id) as live:
                    self.live = live
                    if self.message is not None and self.watch is None:
                        self.say(self.message)
                    async for event in live:
                        if self._lent is not None:
                            await self._lent.wait()
                        self._seen(event)
        except (SocketEnded, SessionGone) as ended:
            self.complain(explained(ended))
            self.leave(FAILED)
        except BrokenPipeError:
            self.leave(BROKEN_PIPE)
        finally:
            self.live = None

    def switch(self, session_id: str) -> None:
        self.session_id = session_id
        self._scope.cancel()

    def leave(self, exit_code: int) -> None:
        self.exit_code, self.leaving = exit_code, True
        self._scope.cancel()

    def _seen(self, event: LiveEvent) -> None:
        self.output.event(event)
        self._note_state(event)
        was_over = self.watch is not None and self.watch.over
        ours = self._watched(event)
        asks = isinstance(event, InteractionFrame | InteractionResolvedFrame)
        if is_aside(event, alone=self.keyboard is None):
            self.output.remark(self._aside.render(event))
        elif ours or (self.keyboard is not None and not asks):
            self.output.show(self.renderer.render(event))
        self._agents.seen(event)
        if self.keyboard is not None:
            self._answers.seen(event)
        elif isinstance(event, InteractionFrame):
            self.remark(f"to answer, talk in `nerve chat --session {self.session_id}`; here, ^C stops the turn")
        self.draw()
        # A refusal may be followed by its reason; whatever follows, that is the end.
        if self.keyboard is None and self.watch is not None and self.watch.over and (self.watch.explained or was_over):
            self._turn_over(event)

    def _note_state(self, event: LiveEvent) -> None:
        match event:
            case SessionStatusFrame(is_running=running) | SessionRunningFrame(is_running=running):
                self.running = running
                if not running:
                    self._stop_asked = False
                    self._interrupts.forget()
            case Disconnected():
                self.offline = True
            case CaughtUp():
                self.offline = False

    def _watched(self, event: LiveEvent) -> bool:
        """Whether this belongs to the turn that the chat is about."""
        if self.watch is None:
            return False
        match event:
            case CaughtUp():
                self.watch.caught_up()
            case Unconfirmed(client_msg_id=sent):
                if sent == self.watch.client_msg_id:
                    self.watch.give_up()
            case Disconnected() | Unanswered():
                pass
            case _:
                return self.watch.see(event)
        return False

    def _turn_over(self, event: LiveEvent) -> None:
        assert self.watch is not None
        if self.watch.lost:
            self.complain("the turn has ended while the line was lost; its answer is in the session's history")
        elif self.watch.refusal is not None and not (self._interrupted or isinstance(event, ErrorFrame | Unconfirmed)):
            self.complain(self.watch.refusal)
        self._agents.farewell()
        if isinstance(event, DoneFrame):
            self.leave(OK)
        else:
            self.leave(INTERRUPTED if self._interrupted else FAILED)

    # --- what the person does -------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Send a message, and show it where the prompt has been."""
        if self.live is None:
            self.complain("another session is being opened; the arrow key brings your line back")
            return
        try:
            sent = self.live.send(text)
        except ValueError as refused:
            self.complain(str(refused))
            if self.keyboard is None:
                self.leave(FAILED)
            return
        self.own[sent] = text
        if self.keyboard is None:
            self.watch = TurnWatch(self.session_id, sent)
        else:
            self.output.show(self.renderer.message(text))
            if self.offline:
                self.remark("it goes out once the line is back")

    async def _type(self, keyboard: Keyboard, nursery: trio.Nursery) -> None:
        self.draw()
        while True:
            await trio.lowlevel.wait_readable(self.descriptor)
            try:
                data = os.read(self.descriptor, KEYS)
            except OSError:  # the terminal is gone
                data = b""
            for typed in keyboard.feed(data):
                self._interrupts.forget()
                match typed:
                    case Entered(text=text):
                        self._entered(text, nursery)
                        await self._edit()
                    case Key.EOF:
                        self.leave(OK)
                    case Key.CLEAR:
                        self.output.resized(clear=True)
                    case Key.TOO_LONG:
                        self.complain("that is too long to be pasted; send it with nerve chat < FILE")
            self.draw()
            if not data:
                return

    def _entered(self, line: str, nursery: trio.Nursery) -> None:
        asked = self._answers.asked
        match parse(line):
            case None if asked:
                self._answers.take("")
            case Say(text=text) if asked:
                self._answers.take(text)
            case Say(text=text):
                self.say(text)
            case Command(name=name) as command if name in ABOUT_ASKED:
                self._answers.carry_out(command)
            case Mistaken(reason=reason):
                self.complain(reason)
            case Command(name=Name.QUIT):
                self.leave(OK)
            case Command(name=Name.STOP, argument=""):
                self._stop(nursery)
            case Command() as command:
                self.later(command)

    def later(self, command: Command) -> None:
        """Carry it out behind what was asked for before it."""
        try:
            if self._asked is not None:
                self._asked.send_nowait(command)
        except trio.WouldBlock:
            self.complain("the server does not answer yet; one thing after another")

    async def _edit(self) -> None:
        """Let the person edit a plan, if that is what was asked for; the session waits meanwhile, unread."""
        text, self._answers.editing = self._answers.editing, None
        if text is None:
            return
        self.output.show(self.renderer.close())
        self._lent = trio.Event()
        try:
            with self.output.lent():
                edited = await self.edit_text(text)
        except NotEdited as failed:
            self.complain(str(failed))
        else:
            self._answers.edited(edited)
        finally:
            self._lent.set()
            self._lent = None

    async def _carry_out(self, commands: trio.MemoryReceiveChannel[Command]) -> None:
        async for command in commands:
            try:
                await (self._agents if command.name in ABOUT_AGENTS else self._commands).carry_out(command)
            except ApiError as error:
                self.complain(error.message)
            except Unreachable as error:
                self.complain(str(error))

    # --- signals --------------------------------------------------------------------------------------------------

    async def _heed(self, signals: AsyncIterator[int], nursery: trio.Nursery) -> None:
        async for number in signals:
            match number:
                case signal.SIGINT if self._lent is None:
                    self._interrupt(nursery)
                case signal.SIGINT:
                    pass  # it is the editor's
                case signal.SIGWINCH:
                    self.output.resized()
                case signal.SIGCONT:
                    self.output.continued()
                case _:
                    self.leave(128 + number)

    def _interrupt(self, nursery: trio.Nursery) -> None:
        keyboard, watch = self.keyboard, self.watch
        reaction = self._interrupts.interrupt(
            typing=keyboard is not None and bool(keyboard.text),
            running=self.running if watch is None else watch.phase is Phase.RUNNING,
            waiting=watch is not None and watch.phase in (Phase.SENT, Phase.WAITING),
            interactive=keyboard is not None,
        )
        match reaction:
            case Reaction.CLEAR:
                assert keyboard is not None
                keyboard.discard()
                self.draw()
            case Reaction.STOP:
                self._interrupted = True
                self._stop(nursery)
            case Reaction.TAKE_BACK:
                self._interrupted = True
                nursery.start_soon(self._take_back)
            case Reaction.HINT:
                self.remark(HINT)
            case Reaction.LEAVE:
                self.leave(INTERRUPTED)

    def _stop(self, nursery: trio.Nursery) -> None:
        if not self._stop_asked:
            self._stop_asked = True
            self.draw()
            nursery.start_soon(self._commands.stop, self.session_id)

    def stop_failed(self) -> None:
        """The turn goes on, so it may be stopped again."""
        self._stop_asked = False
        self.draw()

    async def _take_back(self) -> None:
        """Leave before the message has become a turn, and see to it that it does not become one later."""
        assert self.watch is not None
        if self.watch.queue_id is not None:
            await self._commands.cancel(self.session_id, self.watch.queue_id)
        else:
            self.leave(INTERRUPTED)

    # --- output ---------------------------------------------------------------------------------------------------

    def history(self, messages: list[Message]) -> None:
        for message in messages:
            self.output.show(self.renderer.stored(message))

    def remark(self, text: str) -> None:
        self.output.remark(self._aside.note(text))

    def complain(self, text: str) -> None:
        self.mention(text, Tone.BAD, self._aside.symbols.bad)

    def mention(self, text: str, tone: Tone, mark: str) -> None:
        self.output.remark(self._aside.note(text, tone, mark))

    def ask(self, preamble: str, text: str) -> None:
        self.output.remark(self._aside.asked(preamble, text))

    def draw(self) -> None:
        if self.keyboard is not None and not self.leaving:
            symbols = self.renderer.symbols
            state = symbols.more if self.running else ""
            if self.offline:
                state = "offline "
            elif self._stop_asked:
                state = symbols.stopped
            elif self._answers.asked:
                state = symbols.asks
            behind = f"{symbols.behind}{len(working)} " if (working := self._agents.working) else ""
            self.output.prompt(Prompt(f"{behind}{state}{symbols.prompt}", self.keyboard.text, self.keyboard.cursor))
