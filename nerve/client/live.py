"""A session that is followed live, whatever becomes of the line."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import trio
from attrs import define, field

from nerve.client.backoff import Backoff
from nerve.client.errors import SessionGone, SocketEnded, TurnLost, TurnRefused
from nerve.client.following import CaughtUp, Disconnected, Follower, LineEvent, LiveEvent, Unanswered, Unconfirmed
from nerve.client.socket import REASON_SECONDS, new_message_id
from nerve.client.turns import TurnWatch
from nerve.contract import codec
from nerve.contract.generated.frames_client import (
    AnswerInteractionFrame,
    ClientFrame,
    ForkFrame,
    MessageFrame,
    PingFrame,
    ResumeFrame,
)
from nerve.contract.generated.frames_server import InteractionFrame, ServerFrame
from nerve.contract.unset import UNSET

EVENTS = 256  # shown and not read yet; the socket then waits, and the server closes one that stalls
SILENCE_SECONDS = 30.0  # then the server is asked for a sign of life
ANSWER_SECONDS = 15.0
MAX_MESSAGE_BYTES = 1024 * 1024  # of a frame, which is more than its content


class Socket(Protocol):
    """One connection; both raise SocketEnded."""

    async def send(self, frame: ClientFrame) -> None: ...

    async def receive(self) -> ServerFrame: ...


Connect = Callable[[str, int | None], AbstractAsyncContextManager[Socket]]


@define(eq=False)
class LiveSession:
    """What happens in one session, as an asynchronous iterator of server frames and what became of the line.

    It connects again by itself, with back-off, and goes on behind the last frame it has shown: no numbered frame comes
    twice, and what can't be had any more comes as a ``gap`` frame.  It ends for good only where coming back can't help:
    iterating then raises SocketEnded (close codes 4001 and 1008) or SessionGone.  Only one task may iterate.
    """

    session_id: str
    _connect: Connect
    _backoff: Backoff
    _rng: random.Random
    _follower: Follower
    _events: trio.MemorySendChannel[tuple[LiveEvent, int | None]]
    _unread: trio.MemoryReceiveChannel[tuple[LiveEvent, int | None]]
    _cursor: int | None
    _stirred: trio.Event = field(factory=trio.Event)
    _retry: trio.Event = field(factory=trio.Event)
    _failure: Exception | None = None

    def __aiter__(self) -> "LiveSession":
        return self

    async def __anext__(self) -> LiveEvent:
        """The next event.  Cancelled, nothing is lost."""
        try:
            event, self._cursor = await self._unread.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration if self._failure is None else self._failure from None
        return event

    @property
    def cursor(self) -> int | None:
        """The number behind which the next event begins; what to give as ``after_seq`` to go on later."""
        return self._cursor

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Ids of messages that the server has not acknowledged yet."""
        return self._follower.unconfirmed

    def send(self, content: str, *, model: str | None = None, client_msg_id: str | None = None) -> str:
        """Send a message now, or once the line is back; its ``client_msg_id``.

        It is sent again after a lost line unless the server has shown that it arrived; the id keeps it from running
        twice.  Raises ValueError for what a server would refuse to read, and when too much waits for the line.
        """
        sent = client_msg_id or new_message_id()
        frame = MessageFrame(
            session_id=self.session_id, content=content, model=UNSET if model is None else model, client_msg_id=sent
        )
        self._submit(frame)
        return sent

    def answer(
        self,
        interaction_id: str,
        result: dict[str, Any] | None = None,
        *,
        denied: bool = False,
        message: str | None = None,
    ) -> None:
        """Answer an ``interaction`` frame: ``{"answers": {...}}`` to a question or a form, None to approve a plan and
        ``{"plan": ...}`` to approve an edit of it, ``{}`` to allow; or ``denied``, with a message for the agent.

        As ``send``, it reaches the server over lost lines too.  ``interaction_resolved`` shows that it is settled, and
        an ``interaction_not_found`` error that it was before.
        """
        self._submit(
            AnswerInteractionFrame(
                session_id=self.session_id,
                interaction_id=interaction_id,
                result=result,
                denied=denied,
                message=message,
            )
        )

    def fork(self, *, at_message_id: str | None = None, title: str | None = None) -> None:
        """Ask for a fork, whole or at a message; ``session_forked`` tells its id.  Sent once: it may get lost."""
        self._submit(ForkFrame(session_id=self.session_id, at_message_id=at_message_id, title=title))

    def resume(self) -> None:
        """Resume a stopped or idle session; ``session_resumed`` tells that it is.  Sent once: it may get lost."""
        self._submit(ResumeFrame(session_id=self.session_id))

    def subscribe(self, agent_id: str) -> None:
        """Have the agent's transcript come as ``agent_event`` frames, from now on and after lost lines too.

        At most eight at a time; a ninth ends the oldest.  What passed before, or while there was no line, is to be read
        with ``agent_transcript``; ``nerve.client.Transcript`` puts both into one order.
        """
        self._follower.agents.add(agent_id)
        self._stirred.set()

    def unsubscribe(self, agent_id: str) -> None:
        self._follower.agents.remove(agent_id)
        self._stirred.set()

    def _submit(self, frame: ClientFrame) -> None:
        """Raises ValueError."""
        try:
            codec.structure(type(frame), codec.unstructure(frame), ())
        except codec.Invalid as invalid:
            raise ValueError(str(invalid)) from None
        if len(codec.encode(frame)) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message has at most {MAX_MESSAGE_BYTES} bytes")
        self._follower.submit(frame)
        self._stirred.set()

    def retry_now(self) -> None:
        """Don't wait any longer for the next attempt to connect."""
        self._retry.set()

    def turn(self, content: str, *, model: str | None = None) -> "LiveTurn":
        """Send a message; iterating over the answer gives the frames of its turn.  Raises ValueError as ``send``."""
        return LiveTurn(self, TurnWatch(self.session_id, self.send(content, model=model)))

    # --- the connection -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, and connect again, until that can't help or it is cancelled."""
        async with self._events:
            try:
                await self._connect_for_ever()
            except (SocketEnded, SessionGone) as ended:
                self._failure = ended

    async def _connect_for_ever(self) -> None:
        attempt = 0
        while True:
            began = trio.current_time()
            ended = await self._connection()
            self._follower.disconnected()
            if isinstance(ended, SessionGone) or ended.final:
                raise ended
            attempt = 0 if trio.current_time() - began >= self._backoff.steady else attempt
            delay = self._backoff.delay(attempt, self._rng)
            attempt += 1
            self._retry = trio.Event()
            lost = Disconnected(reason=str(ended), code=ended.code, retry_seconds=delay)
            await self._events.send((lost, self._follower.cursor))
            with trio.move_on_after(delay):
                await self._retry.wait()

    async def _connection(self) -> SocketEnded | SessionGone:
        """One connection, to its end; why it has ended."""
        ended: SocketEnded | SessionGone = SocketEnded("the socket was closed")
        try:
            async with self._connect(self.session_id, self._follower.cursor) as socket, trio.open_nursery() as nursery:
                nursery.start_soon(self._write, socket)
                try:
                    await self._read(socket)
                except (SocketEnded, SessionGone) as error:
                    ended = error
                nursery.cancel_scope.cancel()
        except SocketEnded as error:
            return error
        return ended

    async def _write(self, socket: Socket) -> None:
        """Send what is due; what this connection does not take any more goes out with the next one."""
        try:
            while True:
                for frame in self._follower.due(trio.current_time()):
                    await socket.send(frame)
                await self._stirred.wait()
                self._stirred = trio.Event()
        except SocketEnded:
            return

    async def _read(self, socket: Socket) -> None:
        """Show what comes.  Raises SocketEnded when the server closes, or says nothing although it was asked."""
        asked = False
        while True:
            with trio.move_on_after(ANSWER_SECONDS if asked else SILENCE_SECONDS) as silence:
                frame = await socket.receive()
            if silence.cancelled_caught:
                if asked or not self._follower.caught_up:
                    raise SocketEnded("the server is silent")
                asked = True
                await socket.send(PingFrame())
                continue
            asked = False
            await self._show(frame)

    async def _show(self, frame: ServerFrame) -> None:
        cursor = self._follower.cursor
        try:
            shown = self._follower.receive(frame, trio.current_time())
        except codec.Invalid as invalid:
            raise SocketEnded(f"the server sent what is no frame: {invalid}") from None
        if any(isinstance(event, CaughtUp) for event in shown):
            self._stirred.set()
        for number, event in enumerate(shown, start=1):
            # A snapshot is several events: whoever leaves between them has to get the rest when he comes back.
            seq = getattr(event, "seq", UNSET)
            if number == len(shown):
                cursor = self._follower.cursor
            elif isinstance(seq, int) and not (isinstance(event, InteractionFrame) and seq <= (cursor or 0)):
                cursor = seq
            await self._events.send((event, cursor))


@define(eq=False)
class LiveTurn:
    """The frames of one turn, from its start on; the last one is ``done``, ``stopped`` or ``error``.

    Turns before it are waited for; other events are passed over.  Iterating raises TurnRefused, TurnLost, and what ends
    the session that it belongs to.
    """

    _live: LiveSession
    _watch: TurnWatch

    def __aiter__(self) -> "LiveTurn":
        return self

    async def __anext__(self) -> ServerFrame:
        while not self._watch.over:
            event = await anext(self._live)
            match event:
                case CaughtUp():
                    self._watch.caught_up()
                case Unconfirmed(client_msg_id=sent) if sent == self._watch.client_msg_id:
                    self._watch.give_up()
                case Disconnected() | Unconfirmed() | Unanswered():
                    pass
                case _ if self._watch.see(event):
                    return event
        with trio.move_on_after(REASON_SECONDS):
            while not self._watch.explained:
                event = await anext(self._live)
                if not isinstance(event, LineEvent):
                    self._watch.see(event)
        if self._watch.refusal is not None:
            raise TurnRefused(self._watch.refusal)
        if self._watch.lost:
            raise TurnLost("the end of the turn passed while the line was lost")
        raise StopAsyncIteration


@asynccontextmanager
async def follow(
    connect: Connect, session_id: str, *, after_seq: int | None, backoff: Backoff, rng: random.Random
) -> AsyncIterator[LiveSession]:
    """A LiveSession over connections that ``connect(session_id, after_seq)`` opens, as long as the block lasts."""
    events, unread = trio.open_memory_channel[tuple[LiveEvent, int | None]](EVENTS)
    follower = Follower(session_id, after_seq)
    live = LiveSession(session_id, connect, backoff, rng, follower, events, unread, after_seq)
    failure: Exception | None = None
    async with unread, trio.open_nursery() as nursery:
        nursery.start_soon(live.run, name=f"live session {session_id}")
        try:
            yield live
        except Exception as error:  # noqa: BLE001 - raised below, so that the nursery does not wrap it in a group
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
