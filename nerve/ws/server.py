"""Carries out what a conversation asks for: one nursery per socket, a reader that never stops reading, one writer."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Protocol

import trio
from attrs import define, field

from nerve.contract.caller import Caller
from nerve.contract.frames import encode_frame
from nerve.contract.generated.entities import TurnStop
from nerve.contract.generated.frames_server import (
    ErrorFrame,
    RemovalReason,
    RemovedEntry,
    ServerFrame,
    SessionSwitchedFrame,
)
from nerve.contract.unset import UNSET
from nerve.domain import attribution
from nerve.domain.answers import BadAnswer
from nerve.domain.forks import message_number
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.announce import publish_queue
from nerve.runtime.binding import Binding
from nerve.runtime.branching import Branching
from nerve.runtime.hub import ACCOUNT_DISABLED
from nerve.runtime.interactions import UnknownInteraction
from nerve.runtime.outbox import TOO_SLOW, Outbox
from nerve.runtime.reception import NewMessage
from nerve.runtime.supervisor import Supervisor
from nerve.services import Services
from nerve.ws.conversation import (
    Answer,
    Bind,
    Close,
    Command,
    Conversation,
    Follow,
    Fork,
    Resume,
    Send,
    Stop,
    Submit,
    Unfollow,
)

FIRST_SESSION = "main"
TRY_AGAIN = 1013
STALL_SECONDS = 10.0
MAX_ANSWER_BYTES = 1024 * 1024  # more of it waiting, the next frame waits too (ten seconds at most)
CLOSE_SECONDS = 2.0
LONGEST_NUMBER = 18  # digits
NOTHING_TO_STOP = "No running task to stop"
NEEDS_CONFIRMATION = "needs_confirmation"
REFUSED = (ErrorCode.SHUTTING_DOWN, ErrorCode.QUEUE_FULL)
# What a client reads as a word instead of a sentence (decisions D26, D53).
WORDS = {ErrorCode.SESSION_NOT_FOUND: "session_not_found", ErrorCode.FILE_NOT_FOUND: "file_not_found"}


class Socket(Protocol):
    """An accepted WebSocket, as the shell hands it over."""

    async def receive(self) -> object:
        """Text or bytes of the next frame; anything else says that the peer is gone."""
        ...

    async def send(self, data: bytes) -> None: ...

    async def close(self, code: int, reason: str = "") -> None: ...

    def on_progress(self, moved: Callable[[], None]) -> None:
        """Have ``moved`` called when the peer takes a part of what is being sent."""
        ...


@define(eq=False)
class SocketServer:
    _services: Services

    async def serve(self, caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        """One socket, from its admission to its end."""
        talk = _Talk(caller, self._services.supervisor, socket, Outbox(account_id=caller.account_id))
        hub = self._services.hub
        hub.add(talk.outbox)
        if not self._services.identity.is_live(caller):
            # Disabled between its admission and the moment from which the hub could close it.
            talk.outbox.close(ACCOUNT_DISABLED, "account disabled")
        try:
            await talk.run(query.get("session_id"), query.get("after_seq"))
        finally:
            hub.remove(talk.outbox)
            talk.end()


@define(eq=False)
class _Talk:
    """One socket's conversation and its tie to a session."""

    _caller: Caller
    _supervisor: Supervisor
    _socket: Socket
    outbox: Outbox
    _conversation: Conversation = field(factory=lambda: Conversation(FIRST_SESSION))
    _binding: Binding | None = None
    _replay: trio.CancelScope | None = None
    _stopping: set[str] = field(factory=set)
    _stall: trio.CancelScope = field(factory=trio.CancelScope)

    async def run(self, session_id: str | None, after_seq: str | None) -> None:
        self._socket.on_progress(self._moved)
        self.outbox.on_overflow = self._give_up
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, nursery.cancel_scope, name="socket writer")
            await self._bind_first(nursery, session_id, after_seq)
            await self._read(nursery)
            nursery.cancel_scope.cancel()

    def end(self) -> None:
        self._supervisor.house.hub.unfollow_all(self.outbox)
        if self._binding is not None:
            self._binding.release()
            self._binding = None

    # --- out ------------------------------------------------------------------------------------------------------

    async def _write(self, whole: trio.CancelScope) -> None:
        """Send what waits; close once the outbox says so, or when nothing moves for ten seconds (decisions D18).

        What a reader that is too slow was being sent has the seconds of the close to go out, and no more.
        """
        while (data := await self.outbox.next()) is not None:
            with trio.move_on_after(STALL_SECONDS) as self._stall:
                await self._socket.send(data)
            if self._stall.cancelled_caught:
                self.outbox.close(TOO_SLOW, "too slow")
                break
            self.outbox.taken()
        assert self.outbox.closing is not None
        with trio.move_on_after(CLOSE_SECONDS):
            await self._socket.close(*self.outbox.closing)
        whole.cancel()

    def _moved(self) -> None:
        self.outbox.moved()
        self._stall.deadline = trio.current_time() + STALL_SECONDS

    def _give_up(self) -> None:
        self._stall.cancel()

    def _send(self, frame: ServerFrame) -> None:
        self.outbox.put(encode_frame(frame))

    # --- in -------------------------------------------------------------------------------------------------------

    async def _read(self, nursery: trio.Nursery) -> None:
        while True:
            message = await self._socket.receive()
            if not isinstance(message, str | bytes):
                return
            # What a client asks for and does not read must not pile up here.
            await self.outbox.room(MAX_ANSWER_BYTES)
            if self.outbox.closing is not None:
                continue
            for command in self._conversation.receive(message):
                if not await self._carry_out(command, nursery):
                    break

    async def _carry_out(self, command: Command, nursery: trio.Nursery) -> bool:
        """False when what follows from the same frame must not be done any more."""
        match command:
            case Send(frame):
                self._send(frame)
            case Bind(session_id, after_seq, client_msg_id):
                return await self._bind(nursery, session_id, after_seq, client_msg_id)
            case Submit():
                await self._submit(command)
            case Stop(session_id):
                # Waits up to eight seconds, and the reader never stops reading; one at a time per session is enough.
                if session_id not in self._stopping:
                    self._stopping.add(session_id)
                    self._supervisor.stops.stop_soon(session_id, self._caller, partial(self._stopped, session_id))
            case Fork() | Resume():
                await self._branch(command)
            case Answer():
                await self._answer(command)
            case Follow(session_id, agent_id):
                await self._follow(session_id, agent_id)
            case Unfollow(session_id, agent_id):
                self._supervisor.house.hub.unfollow(self.outbox, session_id, agent_id)
            case Close(code, reason):
                self.outbox.close(code, reason)
                return False
        return True

    async def _follow(self, session_id: str, agent_id: str) -> None:
        try:
            await self._supervisor.agents.find(session_id, agent_id)
        except NerveError:
            self._send(ErrorFrame(session_id=session_id, error="agent_not_found"))
        else:
            self._supervisor.house.hub.follow(self.outbox, session_id, agent_id)

    async def _bind_first(self, nursery: trio.Nursery, session_id: str | None, after_seq: str | None) -> None:
        """Where the query says, else the conversation that is always there."""
        wanted = session_id or FIRST_SESSION
        number = None if after_seq is None else _number(after_seq)
        if number is None and after_seq is not None:
            self._send(ErrorFrame(session_id=wanted, error="bad_frame"))
        if not await self._bind(nursery, wanted, number) and wanted != FIRST_SESSION:
            await self._bind(nursery, FIRST_SESSION, None)

    async def _bind(
        self, nursery: trio.Nursery, session_id: str, after_seq: int | None, client_msg_id: str | None = None
    ) -> bool:
        try:
            binding = await Binding.bind(self._supervisor, self.outbox, session_id)
        except NerveError as error:
            told = UNSET if client_msg_id is None else client_msg_id
            self._send(ErrorFrame(session_id=session_id, error=_words(error), client_msg_id=told))
            return False
        if self._replay is not None:
            self._replay.cancel()
        self.end()
        self._binding = binding
        binding.attach()
        self._conversation.now_bound(session_id)
        self._send(SessionSwitchedFrame(session_id=session_id))
        with self._deletion_told(session_id):
            if after_seq is None:
                await binding.snapshot()
            else:
                await binding.status_only()
                self._replay = trio.CancelScope()
                nursery.start_soon(self._catch_up, binding, after_seq, self._replay, name=f"replay {session_id}")
        return True

    async def _catch_up(self, binding: Binding, after_seq: int, scope: trio.CancelScope) -> None:
        with scope, self._deletion_told(binding.session_id):
            await binding.replay(after_seq)

    @contextmanager
    def _deletion_told(self, session_id: str) -> Iterator[None]:
        """The session may be deleted while it is being read: its readers stay, and hear no more of it."""
        try:
            yield
        except NerveError as error:
            if error.code is not ErrorCode.SESSION_NOT_FOUND:
                # Half bound it would hear nothing for ever; a client that comes back starts afresh.
                self.outbox.close(TRY_AGAIN, "try again")
                return
            self._send(ErrorFrame(session_id=session_id, error=_words(error)))

    async def _submit(self, submit: Submit) -> None:
        message = NewMessage(
            content=submit.content,
            source="web",
            actor_id=self._caller.actor_id,
            cause_id=self._caller.cause_id,
            client_msg_id=submit.client_msg_id,
            model=submit.model,
            file_ids=submit.file_ids,
        )
        try:
            await self._supervisor.reception.submit(submit.session_id, message, sender=self.outbox)
        except NerveError as error:
            if error.code in REFUSED:  # the removal, then the error that says why
                left = RemovedEntry(queue_id=None, client_msg_id=submit.client_msg_id, reason=RemovalReason.REFUSED)
                await publish_queue(self._supervisor.house, submit.session_id, left, only=self.outbox)
            self._send(
                ErrorFrame(session_id=submit.session_id, error=_words(error), client_msg_id=submit.client_msg_id)
            )

    async def _branch(self, command: Fork | Resume) -> None:
        branching, by = Branching(self._supervisor), attribution.of(self._caller)
        try:
            match command:
                case Fork(session_id, anchor, title):
                    await branching.fork(session_id, message_number(anchor), title, by, sender=self.outbox)
                case Resume(session_id):
                    await branching.resume(session_id, by, sender=self.outbox)
        except NerveError as error:
            self._send(ErrorFrame(session_id=command.session_id, error=_words(error)))

    async def _answer(self, command: Answer) -> None:
        session_id = command.session_id
        try:
            await self._supervisor.answer(session_id, command.interaction_id, command.answer, self._caller)
        except UnknownInteraction:
            self._send(ErrorFrame(session_id=session_id, error="interaction_not_found"))
        except BadAnswer:
            self._send(ErrorFrame(session_id=self._conversation.bound, error="bad_frame"))
        except NerveError as error:
            self._send(ErrorFrame(session_id=session_id, error=_words(error)))

    def _stopped(self, session_id: str, answer: TurnStop | NerveError) -> None:
        self._stopping.discard(session_id)
        if answer is TurnStop.NOT_RUNNING:
            self._send(ErrorFrame(session_id=session_id, error=NOTHING_TO_STOP))
        elif answer is TurnStop.NEEDS_CONFIRMATION:
            self._send(ErrorFrame(session_id=session_id, error=NEEDS_CONFIRMATION))
        elif isinstance(answer, NerveError):
            self._send(ErrorFrame(session_id=session_id, error=_words(answer)))


def _number(text: str) -> int | None:
    """A number of the log as the query gives it; None for anything else."""
    return int(text) if len(text) <= LONGEST_NUMBER and text.isascii() and text.isdigit() else None


def _words(error: NerveError) -> str:
    return WORDS.get(error.code, error.message)
