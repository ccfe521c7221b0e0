"""An open scripted runtime: the turns of one session, one after the other, and their events."""

from collections.abc import AsyncIterator
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

import trio
from attrs import define, field

from nerve.adapters.protocol import (
    AgentEvent,
    Capabilities,
    ModelObserved,
    RuntimeGone,
    SessionSpec,
    TurnEnded,
    TurnPrompt,
    TurnSource,
    TurnStatus,
    Usage,
)
from nerve.adapters.scripted.acts.part import Completed, Crashed, Ending, Failed
from nerve.adapters.scripted.cast import Cast, Spared
from nerve.adapters.scripted.conversation import Conversations
from nerve.adapters.scripted.files import Place
from nerve.adapters.scripted.interruption import Interruption
from nerve.adapters.scripted.limits import MAX_SECONDS, MAX_SETTLED
from nerve.adapters.scripted.player import Player
from nerve.adapters.scripted.problem import PlayError
from nerve.adapters.scripted.reply import built_in_reply
from nerve.adapters.scripted.source import PlaySource
from nerve.adapters.scripted.steps import Step
from nerve.effects import Effects
from nerve.processes import Children

EVENTS_WAITING = 256
SETTLED = "Work in the background has ended."


class Life(Enum):
    RUNNING = auto()
    DEAD = auto()
    DEAD_UNNOTICED = auto()


@define(eq=False)
class ScriptedClient:
    """One per open session; its nursery is that of the context that opened it."""

    native_id: str
    began_afresh: bool
    capabilities: Capabilities
    model: str
    _session: SessionSpec
    _effects: Effects
    _conversations: Conversations
    _source: PlaySource
    _nursery: trio.Nursery
    _reason: str | None
    _reply_pace: float
    _plan_file: Place
    _closed: tuple[Path, ...] = ()
    _children: Children | None = None
    _life: Life = field(default=Life.RUNNING, init=False)
    _closed_down: bool = field(default=False, init=False)
    _turn: Interruption | None = field(default=None, init=False)
    _on_settled: tuple[Step, ...] | None = field(default=None, init=False)  # of the latest play
    _settled: int = field(default=0, init=False)  # how often that was played
    _last_known: frozenset[str] = field(default=frozenset(), init=False)  # refs, when it died unnoticed
    _cast: Cast = field(init=False)
    _send: trio.MemorySendChannel[AgentEvent] = field(init=False)
    _receive: trio.MemoryReceiveChannel[AgentEvent] = field(init=False)
    _sent: int = field(default=0, init=False)
    _taken_in: int = field(default=0, init=False)  # of those, how many the reader is done with
    _reading: bool = field(default=False, init=False)
    _took_in: trio.Event = field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[AgentEvent](EVENTS_WAITING)
        self._cast = Cast(self._nursery, self.emit, self._crash)

    @property
    def events(self) -> AsyncIterator[AgentEvent]:
        return _Events(self)

    async def prompt(self, turn: TurnPrompt) -> None:
        """Begin a turn.  Returns once the conversation remembers the message; cancelled before that, nothing began.

        Raises RuntimeGone after a crash, and when it is closed meanwhile.
        """
        if self._life is not Life.RUNNING:
            self._life = Life.DEAD
            raise self.gone()
        if self._turn is not None:
            raise RuntimeError("a turn is running already")
        # In place before anything waits, so that an interrupt from now on finds the turn.
        self._turn = interruption = Interruption()
        native_turn_id = self._effects.new_id("native")
        begun = False
        try:
            refusal = await self._remember(native_turn_id, None if turn.source is TurnSource.AUTO else turn.text)
            if self._closed_down:
                raise RuntimeGone("the scripted runtime was closed")
            self._nursery.start_soon(
                self._run, turn, interruption, native_turn_id, refusal, name=f"scripted turn {turn.turn_id}"
            )
            begun = True
        finally:
            if not begun:
                self._turn = None

    async def interrupt(self) -> None:
        """Ask the turn to end; without a turn nothing happens."""
        if self._turn is not None:
            if not self.capabilities.interrupt_spares_background:
                self._cast.stop_all()
            self._turn.request()

    async def stop_agent(self, ref: str, *, spare_children: bool = False) -> None:
        """Raises RuntimeGone after a crash."""
        if self._life is not Life.RUNNING:
            self._life = Life.DEAD
            raise self.gone()
        member = self._cast.members.get(ref)
        if member is not None:
            self._cast.stop(member, Spared.ALL if spare_children else Spared.NONE)

    async def live_agents(self) -> frozenset[str] | None:
        return self._last_known if self._life is Life.DEAD_UNNOTICED else frozenset(self._cast.members)

    def close(self) -> None:
        """The context is being left: the events end."""
        self._closed_down = True
        self._send.close()

    def gone(self) -> RuntimeGone:
        return RuntimeGone("the scripted runtime crashed, as its play said", retryable=False)

    async def next_event(self) -> AgentEvent:
        """The next event.  Raises StopAsyncIteration once closed, RuntimeGone once all was read after a crash."""
        if self._reading:
            # Whoever comes for the next one is done with the last.
            self._reading = False
            self._taken_in += 1
            self._took_in.set()
            self._took_in = trio.Event()
        try:
            event = await self._receive.receive()
            self._reading = True
            return event
        except trio.EndOfChannel:
            if self._life is Life.DEAD:
                raise self.gone() from None
            raise StopAsyncIteration from None

    # --- what a play acts on -------------------------------------------------------------------------------------

    async def emit(self, event: AgentEvent) -> None:
        """What a dead runtime says nobody hears."""
        if self._life is not Life.RUNNING:
            await trio.lowlevel.checkpoint()
            return
        with suppress(trio.ClosedResourceError):
            await self._tell(event)

    async def _tell(self, event: AgentEvent) -> None:
        await self._send.send(event)
        self._sent += 1

    async def heard(self) -> None:
        sent = self._sent
        while self._taken_in < sent:
            await self._took_in.wait()

    async def step_over(self, usage: Usage | None) -> None:
        """The turn's usage is told with its end."""

    async def keep_capabilities(self, capabilities: Capabilities) -> None:
        """They hold for the session's runtime, also when it is opened again."""
        await self._effects.blocking(self._conversations.set_capabilities, self.native_id, capabilities)
        self.capabilities = capabilities

    async def history(self, max_characters: int) -> str:
        return await self._effects.blocking(self._conversations.history, self.native_id, max_characters)

    # --- a turn --------------------------------------------------------------------------------------------------

    async def _remember(self, native_turn_id: str, text: str | None) -> str | None:
        """Add the message to the conversation; gives why the turn must fail if that is impossible."""
        try:
            await self._effects.blocking(self._conversations.add_turn, self.native_id, native_turn_id, text)
        except OSError as error:
            return f"the conversation's record can't be written: {error.strerror}"
        return None

    async def _run(
        self, turn: TurnPrompt, interruption: Interruption, native_turn_id: str, refusal: str | None
    ) -> None:
        player = Player(
            self._session,
            self._effects,
            self,
            interruption,
            self._cast,
            self._plan_file,
            self._closed,
            self._children,
        )
        ending: Ending | None = None
        with interruption.scope:
            ending = Failed(refusal) if refusal is not None else await self._perform(turn, player)
        # Free before its end is told, because whoever hears it may prompt at once.
        self._turn = None
        if isinstance(ending, Crashed):
            self._crash(ending.silent)
        match self._life:
            case Life.DEAD:
                return
            case Life.DEAD_UNNOTICED:
                ending = Completed()
        on_record = refusal is None and player.mapped
        await self._tell(_turn_ended(ending, player, native_turn_id if on_record else None))

    def _crash(self, silent: bool) -> None:
        """It ends as if its process had died, with all that lives in it."""
        self._last_known = frozenset(self._cast.members)
        self._life = Life.DEAD_UNNOTICED if silent else Life.DEAD
        self._cast.die()
        if self._turn is not None:
            self._turn.kill()
        if not silent:
            self._send.close()

    async def _perform(self, turn: TurnPrompt, player: Player) -> Ending:
        if turn.source is TurnSource.AUTO:
            return await self._go_on(player)
        try:
            play = await self._source.play_for(turn)
        except PlayError as error:
            return Failed(str(error))
        self._on_settled, self._settled = None if play is None else play.on_settled, 0
        if turn.model is not None and turn.model != self.model:
            self.model = turn.model
            await self.emit(ModelObserved(turn.model))
        # The sum of a play's seconds is checked when it is read; variables and files can still make it longer.
        with trio.move_on_after(MAX_SECONDS + 1):
            if play is None:
                await player.speak(built_in_reply(turn.text, self._reason), self._reply_pace)
                return Completed()
            return await player.play(play.steps)
        return Failed("a play lasts at most one hour in all")

    async def _go_on(self, player: Player) -> Ending:
        """The turn that background work starts by its end."""
        with trio.move_on_after(MAX_SECONDS + 1):
            self._settled += 1
            if self._on_settled is not None and self._settled <= MAX_SETTLED:
                return await player.play(self._on_settled)
            await player.speak(SETTLED, 0)
            return Completed()
        return Failed("a play lasts at most one hour in all")


@define
class _Events:
    """The iterator over a client's events; any number of them share the one stream."""

    _client: ScriptedClient

    def __aiter__(self) -> "_Events":
        return self

    async def __anext__(self) -> AgentEvent:
        return await self._client.next_event()


def _turn_ended(ending: Ending | None, player: Player, native_turn_id: str | None) -> TurnEnded:
    status, error = TurnStatus.COMPLETED, None
    match ending:
        case None:
            status = TurnStatus.INTERRUPTED
        case Failed(reason=reason):
            status, error = TurnStatus.FAILED, reason
    return TurnEnded(status, error, player.usage, native_turn_id)
