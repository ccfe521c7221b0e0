"""The same client for programs without an event loop: the same names, without ``async`` and ``await``.

    with open_client("http://127.0.0.1:8900") as client:
        client.login("correct horse")
        with client.follow("main") as live:
            for frame in live.turn("Hello"):
                print(frame)

One thread of its own runs trio; a call hands its work over and waits for it.  Calls may come from several threads.
"""

import queue
import random
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import httpx
import trio
from attrs import define, field

from nerve.client.backoff import Backoff
from nerve.client.following import LiveEvent
from nerve.client.live import LiveSession, LiveTurn
from nerve.client.rest import CALL_SECONDS, NerveClient
from nerve.client.rest import open_client as open_async_client
from nerve.contract.generated.frames_server import ServerFrame
from nerve.contract.route import Route

__all__ = ["PlainClient", "PlainLiveSession", "open_client"]

A = ParamSpec("A")
P = TypeVar("P")
B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")


@define(eq=False)
class _Portal:
    """The way into the thread that runs trio."""

    _token: trio.lowlevel.TrioToken
    _nursery: trio.Nursery

    def run(self, fn: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Wait for ``fn`` over there.  Interrupted, it goes on until the client is closed."""
        try:
            return trio.from_thread.run(fn, *args, trio_token=self._token)
        except (trio.RunFinishedError, trio.Cancelled):
            raise RuntimeError("this client is closed") from None

    def run_sync(self, fn: Callable[..., T], *args: Any) -> T:
        try:
            return trio.from_thread.run_sync(fn, *args, trio_token=self._token)
        except trio.RunFinishedError:
            raise RuntimeError("this client is closed") from None

    @contextmanager
    def held(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """An asynchronous context manager, entered and left by one task over there."""
        leave, left = trio.Event(), trio.Event()

        async def hold(*, task_status: trio.TaskStatus[T]) -> None:
            try:
                async with manager as value:
                    task_status.started(value)
                    await leave.wait()
            finally:
                left.set()

        value: T = self.run(self._nursery.start, hold)
        try:
            yield value
        finally:
            self.run_sync(leave.set)
            self.run(left.wait)


@contextmanager
def _open_portal() -> Iterator[_Portal]:
    ready: queue.Queue[_Portal] = queue.Queue(1)
    closing = trio.Event()

    async def live() -> None:
        async with trio.open_nursery() as nursery:
            ready.put_nowait(_Portal(trio.lowlevel.current_trio_token(), nursery))
            await closing.wait()
            nursery.cancel_scope.cancel()

    thread = threading.Thread(target=trio.run, args=(live,), name="nerve client", daemon=True)
    thread.start()
    portal = ready.get()
    try:
        yield portal
    finally:
        portal.run_sync(closing.set)
        thread.join()


def _plain(method: Callable[Concatenate[NerveClient, A], Awaitable[T]]) -> Callable[Concatenate["PlainClient", A], T]:
    """The same method, waited for."""

    def call(self: "PlainClient", /, *args: A.args, **options: A.kwargs) -> T:
        return self.portal.run(partial(method, self.client, *args, **options))

    update_wrapper(call, method)
    return call


@define(eq=False)
class PlainClient:
    """What NerveClient is, for a program without an event loop.  Every call raises ApiError or Unreachable."""

    portal: _Portal = field(repr=False)
    client: NerveClient

    @property
    def address(self) -> str:
        return self.client.address

    @property
    def token(self) -> str | None:
        return self.client.token

    @token.setter
    def token(self, token: str | None) -> None:
        self.client.token = token

    def call(
        self, route: Route[P, B, R], params: P | None = None, body: B | None = None, *, seconds: float = CALL_SECONDS
    ) -> R:
        """Any operation of the contract; see NerveClient.call."""
        return self.portal.run(partial(self.client.call, route, params, body, seconds=seconds))

    health = _plain(NerveClient.health)
    auth_status = _plain(NerveClient.auth_status)
    auth_check = _plain(NerveClient.auth_check)
    claim = _plain(NerveClient.claim)
    login = _plain(NerveClient.login)
    me = _plain(NerveClient.me)
    actors = _plain(NerveClient.actors)
    sessions = _plain(NerveClient.sessions)
    archived_sessions = _plain(NerveClient.archived_sessions)
    session = _plain(NerveClient.session)
    session_status = _plain(NerveClient.session_status)
    create_session = _plain(NerveClient.create_session)
    update_session = _plain(NerveClient.update_session)
    delete_session = _plain(NerveClient.delete_session)
    archive_session = _plain(NerveClient.archive_session)
    unarchive_session = _plain(NerveClient.unarchive_session)
    fork_session = _plain(NerveClient.fork_session)
    resume_session = _plain(NerveClient.resume_session)
    messages = _plain(NerveClient.messages)
    events = _plain(NerveClient.events)
    chat = _plain(NerveClient.chat)
    queue = _plain(NerveClient.queue)
    cancel = _plain(NerveClient.cancel)
    stop = _plain(NerveClient.stop)
    agents = _plain(NerveClient.agents)
    agent = _plain(NerveClient.agent)
    agent_transcript = _plain(NerveClient.agent_transcript)
    agent_output = _plain(NerveClient.agent_output)
    stop_agent = _plain(NerveClient.stop_agent)

    @contextmanager
    def follow(
        self,
        session_id: str,
        *,
        after_seq: int | None = None,
        backoff: Backoff = Backoff(),  # noqa: B008  frozen
        rng: random.Random | None = None,
    ) -> Iterator["PlainLiveSession"]:
        """The session as it happens, whatever becomes of the line; see LiveSession."""
        with self.portal.held(self.client.follow(session_id, after_seq=after_seq, backoff=backoff, rng=rng)) as live:
            yield PlainLiveSession(self.portal, live)


@define(eq=False)
class PlainLiveSession:
    """What LiveSession is, as an iterator that blocks.  Only one thread may iterate."""

    _portal: _Portal = field(repr=False)
    _live: LiveSession

    @property
    def session_id(self) -> str:
        return self._live.session_id

    @property
    def cursor(self) -> int | None:
        return self._live.cursor

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        return self._portal.run_sync(lambda: self._live.unconfirmed)

    def __iter__(self) -> "PlainLiveSession":
        return self

    def __next__(self) -> LiveEvent:
        event = self._portal.run(_next, self._live, float("inf"))
        if event is _OVER:
            raise StopIteration
        return cast("LiveEvent", event)

    def next_within(self, seconds: float) -> LiveEvent | None:
        """The next event, or None if there is none within so many seconds."""
        event = self._portal.run(_next, self._live, seconds)
        return None if event is _OVER else cast("LiveEvent | None", event)

    def send(self, content: str, *, model: str | None = None, client_msg_id: str | None = None) -> str:
        """See LiveSession.send."""
        return self._portal.run_sync(partial(self._live.send, content, model=model, client_msg_id=client_msg_id))

    def answer(
        self,
        interaction_id: str,
        result: dict[str, Any] | None = None,
        *,
        denied: bool = False,
        message: str | None = None,
    ) -> None:
        """See LiveSession.answer."""
        self._portal.run_sync(partial(self._live.answer, interaction_id, result, denied=denied, message=message))

    def fork(self, *, at_message_id: str | None = None, title: str | None = None) -> None:
        """See LiveSession.fork."""
        self._portal.run_sync(partial(self._live.fork, at_message_id=at_message_id, title=title))

    def resume(self) -> None:
        """See LiveSession.resume."""
        self._portal.run_sync(self._live.resume)

    def subscribe(self, agent_id: str) -> None:
        """See LiveSession.subscribe."""
        self._portal.run_sync(self._live.subscribe, agent_id)

    def unsubscribe(self, agent_id: str) -> None:
        self._portal.run_sync(self._live.unsubscribe, agent_id)

    def retry_now(self) -> None:
        self._portal.run_sync(self._live.retry_now)

    def turn(self, content: str, *, model: str | None = None) -> Iterator[ServerFrame]:
        """Send a message and give the frames of its turn; see LiveSession.turn."""
        return self._frames_of(self._portal.run_sync(partial(self._live.turn, content, model=model)))

    def _frames_of(self, turn: LiveTurn) -> Iterator[ServerFrame]:
        while (frame := self._portal.run(_next, turn, float("inf"))) is not _OVER:
            yield cast("ServerFrame", frame)


_OVER = object()


async def _next(events: AsyncIterator[object], seconds: float) -> object:
    """The next one, None if it does not come in time, _OVER at the end."""
    with trio.move_on_after(seconds):
        return await anext(events, _OVER)
    return None


@contextmanager
def open_client(
    address: str,
    token: str | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Iterator[PlainClient]:
    """A client of the server at this address (``http://127.0.0.1:8900``), as long as the block lasts."""
    with (
        _open_portal() as portal,
        portal.held(open_async_client(address, token, tls=tls, transport=transport)) as client,
    ):
        yield PlainClient(portal, client)
