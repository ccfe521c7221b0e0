"""The people of the kill test: each session has one who follows and one who sends, for as long as a server lives."""

import random

import trio
from attrs import define, field

from nerve.routes.chat import QUARANTINED
from tests.soak.daemon import Daemon
from tests.soak.plays import random_play
from tests.soak.wire import Wire, WireEnded, open_wire
from tests.soak.witness import Witness

MOST_WAITING = 3
LONGEST_PAUSE = 0.4


@define(eq=False)
class Speaker:
    """One session's conversation over every life of the server.  ``sent`` is in the order of sending.

    A message that nobody acknowledged is sent again under its own id, as every client does.
    """

    daemon: Daemon
    witness: Witness
    rng: random.Random
    over_rest: bool = False
    sent: dict[str, str] = field(factory=dict)
    answered: dict[str, str] = field(factory=dict)  # over REST: what the answer said
    _stirred: trio.Event = field(factory=trio.Event)

    @property
    def session_id(self) -> str:
        return self.witness.session_id

    def unacknowledged(self) -> list[str]:
        return [message_id for message_id in self.sent if message_id not in self.witness.acknowledged]

    async def all_ended(self) -> None:
        """Wait until every message was acknowledged and its turn seen to end."""
        while self.unacknowledged() or self.witness.ended() < len(self.sent):
            self._stirred = trio.Event()
            await self._stirred.wait()

    async def follow(self) -> None:
        """See everything, until the server is gone."""
        try:
            async with open_wire(
                self.daemon.port, self.daemon.token, self.session_id, after_seq=self.witness.cursor
            ) as wire:
                while True:
                    self.witness.follow(await wire.receive(), trio.current_time())
                    self._stirred.set()
        except WireEnded:
            return

    async def speak(self, new: bool) -> None:
        """Send what nobody acknowledged again, then new plays if ``new``, until the server is gone."""
        if self.over_rest:
            await self._speak_over_rest(new)
            return
        try:
            async with (
                open_wire(self.daemon.port, self.daemon.token, self.session_id) as wire,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(self._listen, wire, nursery.cancel_scope)
                await self._talk(wire, new)
        except WireEnded:
            return

    async def _talk(self, wire: Wire, new: bool) -> None:
        """Returns early if the line is cut."""
        try:
            for message_id in self.unacknowledged():
                await self._send(wire, message_id)
            while new:
                await trio.sleep(self.rng.uniform(0, LONGEST_PAUSE))
                if len(self.sent) - self.witness.ended() <= MOST_WAITING:
                    await self._send(wire, self._next())
        except WireEnded:
            return

    async def _listen(self, wire: Wire, scope: trio.CancelScope) -> None:
        try:
            while True:
                self.witness.glance(await wire.receive(), trio.current_time())
        except WireEnded:
            scope.cancel()

    async def _send(self, wire: Wire, message_id: str) -> None:
        content = self.sent[message_id]
        await wire.send(
            {"type": "message", "session_id": self.session_id, "content": content, "client_msg_id": message_id}
        )

    def _next(self) -> str:
        message_id = f"{self.session_id}-{len(self.sent):04}"
        self.sent[message_id] = random_play(self.rng, self.session_id, message_id)
        return message_id

    async def _speak_over_rest(self, new: bool) -> None:
        for message_id in self.unacknowledged():
            if not await self._ask(message_id):
                return
        while new:
            if not await self._ask(self._next()):
                return
            await trio.sleep(self.rng.uniform(0, LONGEST_PAUSE))

    async def _ask(self, message_id: str) -> bool:
        """False once the server is gone, or the session is set aside: the message then waits in its queue."""
        body = {"session_id": self.session_id, "message": self.sent[message_id], "client_msg_id": message_id}
        try:
            status, answer = await trio.to_thread.run_sync(self.daemon.post, "/api/chat", body)
        except OSError:
            return False
        set_aside = status == 502 and answer["detail"] == QUARANTINED
        assert status == 200 or set_aside, f"{status}: {answer}"
        self.witness.acknowledged.add(message_id)
        self._stirred.set()
        if set_aside:
            return False
        if answer["response"]:  # a duplicate answers with nothing (decisions D3)
            self.answered[message_id] = answer["response"]
        return True
