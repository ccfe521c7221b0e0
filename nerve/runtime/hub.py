"""Who hears what: every open socket, and the session it is bound to.

Publishing never waits: a subscriber takes the bytes or gives itself up.  A frame is serialised once, before it comes
here.
"""

from typing import Protocol

import trio
from attrs import define, field

from nerve.contract.frames import encode_frame
from nerve.contract.generated.frames_server import ServerFrame

AgentKey = tuple[str, str]  # session and agent

MAX_FOLLOWED = 8  # agents per socket
ACCOUNT_DISABLED = 1008  # the close code of the sockets of an account that may not go on


class Subscriber(Protocol):
    """One open socket.  None of its methods waits."""

    @property
    def account_id(self) -> str | None: ...

    @property
    def progress(self) -> int:
        """Grows whenever the reader takes something."""
        ...

    def deliver(self, data: bytes, seq: int | None = None) -> None:
        """Queue a frame; ``seq`` is its number in the bound session's log, None for state that a snapshot replaces."""
        ...

    def offer(self, data: bytes) -> None:
        """Queue a frame that may be left out when much waits already."""
        ...

    def pass_over(self, seq: int) -> None:
        """A numbered frame that this socket is not to get, also not from a replay that is under way."""
        ...

    def close(self, code: int, reason: str = "") -> None:
        """Have the socket closed once what waits is sent."""
        ...


@define(eq=False)
class Hub:
    _all: dict[Subscriber, None] = field(factory=dict)
    _bound: dict[str, dict[Subscriber, None]] = field(factory=dict)
    _followers: dict[AgentKey, dict[Subscriber, None]] = field(factory=dict)
    _follows: dict[Subscriber, dict[AgentKey, None]] = field(factory=dict)  # oldest first
    _left: trio.Event = field(factory=trio.Event)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, subscriber: Subscriber) -> None:
        self._all[subscriber] = None

    def remove(self, subscriber: Subscriber) -> None:
        self._all.pop(subscriber, None)
        self.unfollow_all(subscriber)
        self._left.set()

    def bind(self, subscriber: Subscriber, session_id: str) -> None:
        self._bound.setdefault(session_id, {})[subscriber] = None

    def unbind(self, subscriber: Subscriber, session_id: str) -> None:
        bound = self._bound.get(session_id)
        if bound is not None:
            bound.pop(subscriber, None)
            if not bound:
                del self._bound[session_id]

    def is_bound(self, subscriber: Subscriber, session_id: str) -> bool:
        return subscriber in self._bound.get(session_id, ())

    def has_bound(self, session_id: str) -> bool:
        return session_id in self._bound

    def publish(self, session_id: str, frame: ServerFrame) -> None:
        """To the sockets that are bound to the session."""
        if session_id in self._bound:
            self.publish_bytes(session_id, encode_frame(frame), None)

    def publish_bytes(self, session_id: str, data: bytes, seq: int | None, skip: Subscriber | None = None) -> None:
        for subscriber in tuple(self._bound.get(session_id, ())):
            if subscriber is skip and seq is not None:
                subscriber.pass_over(seq)
            else:
                subscriber.deliver(data, seq)

    def publish_global(self, frame: ServerFrame) -> None:
        """To every socket."""
        if self._all:
            data = encode_frame(frame)
            for subscriber in tuple(self._all):
                subscriber.deliver(data)

    def publish_to(self, subscriber: Subscriber, frame: ServerFrame) -> None:
        subscriber.deliver(encode_frame(frame))

    # --- one agent's transcript -----------------------------------------------------------------------------------

    def follow(self, subscriber: Subscriber, session_id: str, agent_id: str) -> None:
        """Have the subscriber hear the agent's transcript; the ninth drops the oldest."""
        follows = self._follows.setdefault(subscriber, {})
        key = (session_id, agent_id)
        if key not in follows:
            while len(follows) >= MAX_FOLLOWED:
                self.unfollow(subscriber, *next(iter(follows)))
            self._follows.setdefault(subscriber, follows)[key] = None
            self._followers.setdefault(key, {})[subscriber] = None

    def unfollow(self, subscriber: Subscriber, session_id: str, agent_id: str) -> None:
        key = (session_id, agent_id)
        followers, follows = self._followers.get(key, {}), self._follows.get(subscriber, {})
        followers.pop(subscriber, None)
        follows.pop(key, None)
        if not followers:
            self._followers.pop(key, None)
        if not follows:
            self._follows.pop(subscriber, None)

    def unfollow_all(self, subscriber: Subscriber) -> None:
        for key in tuple(self._follows.get(subscriber, ())):
            self.unfollow(subscriber, *key)

    def is_followed(self, session_id: str, agent_id: str) -> bool:
        return (session_id, agent_id) in self._followers

    def publish_agent(self, session_id: str, agent_id: str, frame: ServerFrame) -> None:
        """To those who follow the agent; one with much to read already may miss it."""
        data = encode_frame(frame)
        for subscriber in tuple(self._followers.get((session_id, agent_id), ())):
            subscriber.offer(data)

    def close_account(self, account_id: str, code: int, reason: str = "") -> None:
        for subscriber in tuple(self._all):
            if subscriber.account_id == account_id:
                subscriber.close(code, reason)

    def close_all(self, code: int, reason: str = "") -> None:
        for subscriber in tuple(self._all):
            subscriber.close(code, reason)

    async def until_left(self, patience: float) -> None:
        """Wait until every socket that is here now has ended, or has taken nothing for ``patience`` seconds.

        Those that come meanwhile don't count.
        """
        here = dict.fromkeys(self._all, -1)
        while here := {each: each.progress for each, before in here.items() if self._goes_on(each, before)}:
            with trio.move_on_after(patience):
                await self._until_gone(list(here))

    def _goes_on(self, subscriber: Subscriber, before: int) -> bool:
        return subscriber in self._all and subscriber.progress > before

    async def _until_gone(self, these: list[Subscriber]) -> None:
        while these:
            if these[-1] in self._all:
                self._left = trio.Event()
                await self._left.wait()
            else:
                these.pop()
