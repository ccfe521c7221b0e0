import inspect
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
import trio.testing
from attrs import define, field, frozen

from nerve.adapters.protocol import (
    AgentAdapter,
    AgentClient,
    AgentEvent,
    InteractionReply,
    InteractionRequest,
    SessionSpec,
    TextAdded,
    ToolResult,
    TurnEnded,
    TurnPrompt,
    TurnSource,
)
from nerve.adapters.scripted import ScriptedAdapter
from nerve.effects import Effects

T = TypeVar("T")


def run_on_own_clock(main: Any, **how: Any) -> Any:
    return trio.run(main, **{**how, "clock": trio.testing.MockClock(autojump_threshold=0)})


def pytest_itemcollected(item: pytest.Item) -> None:
    """Every asynchronous test in here owns its clock, also those that an adapter inherits."""
    if inspect.iscoroutinefunction(getattr(item, "obj", None)):
        item.add_marker(pytest.mark.trio(run=run_on_own_clock))


async def inline(fn: Callable[..., T], /, *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
    await trio.lowlevel.checkpoint()
    return fn(*args)


@define
class FakeHost:
    """Keeps what it is asked to keep: the file's bytes at that moment, None for one that is missing.

    Answers calls of built-in tools with what the test has put into ``answers``, and questions with ``replies``; without
    one of those a question waits until it is cancelled.
    """

    kept: list[tuple[Path, bytes | None]] = field(factory=list)
    refusal: Exception | None = None
    called: list[tuple[str, dict[str, Any], str | None]] = field(factory=list)
    answers: list[ToolResult] = field(factory=list)  # of the tools, in order
    asked: list[InteractionRequest] = field(factory=list)
    replies: list[InteractionReply] = field(factory=list)
    cancelled: int = 0  # questions
    meanwhile: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint

    async def call_tool(self, name: str, tool_input: dict[str, Any], agent_ref: str | None = None) -> ToolResult:
        await self.meanwhile()
        self.called.append((name, tool_input, agent_ref))
        return self.answers.pop(0)

    async def ask(self, request: InteractionRequest) -> InteractionReply:
        self.asked.append(request)
        try:
            await self.meanwhile()
            if not self.replies:
                await trio.sleep_forever()
        except trio.Cancelled:
            self.cancelled += 1
            raise
        return self.replies.pop(0)

    async def before_file_change(self, path: Path) -> None:
        await self.meanwhile()
        if self.refusal is not None:
            raise self.refusal
        self.keep(path)

    def keep(self, path: Path) -> None:
        self.kept.append((path, path.read_bytes() if path.is_file() else None))


@frozen
class Heard:
    """What a turn said, and when (seconds after its prompt)."""

    events: tuple[AgentEvent, ...]
    times: tuple[float, ...]

    @property
    def end(self) -> TurnEnded:
        last = self.events[-1]
        assert isinstance(last, TurnEnded)
        return last

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextAdded))

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    def timed(self, kind: type[T]) -> list[tuple[float, T]]:
        pairs = zip(self.times, self.events, strict=True)
        return [(round(when, 6), event) for when, event in pairs if isinstance(event, kind)]


@define(eq=False)
class Talk:
    """A client with its reader: asks, and hears until the turn ends."""

    client: AgentClient
    ids: Callable[[str], str]

    async def ask(
        self,
        text: str,
        source: TurnSource = TurnSource.WEB,
        model: str | None = None,
        interrupt_after: float | None = None,
    ) -> Heard:
        began = trio.current_time()
        events: list[AgentEvent] = []
        times: list[float] = []

        async def interrupt(seconds: float) -> None:
            await trio.sleep(seconds)
            await self.client.interrupt()

        await self.client.prompt(TurnPrompt(self.ids("turn"), text, source, model))
        async with trio.open_nursery() as nursery:
            if interrupt_after is not None:
                nursery.start_soon(interrupt, interrupt_after)
            async for event in self.client.events:
                events.append(event)
                times.append(trio.current_time() - began)
                if isinstance(event, TurnEnded):
                    break
            nursery.cancel_scope.cancel()
        return Heard(tuple(events), tuple(times))

    async def play(self, steps: str, **how: Any) -> Heard:
        return await self.ask("#!nerve-scenario\n" + steps, **how)


@pytest.fixture
def new_id() -> Callable[[str], str]:
    counts: Counter[str] = Counter()

    def count(kind: str) -> str:
        counts[kind] += 1
        return f"{kind}_{counts[kind]}"

    return count


@pytest.fixture
def effects(new_id: Callable[[str], str]) -> Effects:
    def now() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=trio.current_time())

    return Effects(now=now, new_id=new_id, blocking=inline)


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    (path / "scenarios").mkdir(parents=True)
    return path


@pytest.fixture
def scripted(tmp_path: Path, workspace: Path, effects: Effects) -> ScriptedAdapter:
    return ScriptedAdapter(tmp_path / "home" / "scripted", workspace, effects)


@pytest.fixture
def open_talk(scripted: ScriptedAdapter, cwd: Path, host: FakeHost, new_id: Callable[[str], str]) -> Any:
    """``async with open_talk(native_id=..., ...) as talk``."""

    @asynccontextmanager
    async def opened(adapter: AgentAdapter = scripted, directory: Path = cwd, **spec: Any) -> AsyncIterator[Talk]:
        async with adapter.open(SessionSpec("5e551011", directory, host, **spec)) as client:
            yield Talk(client, new_id)

    return opened


@pytest.fixture
async def talk(open_talk: Any) -> AsyncIterator[Talk]:
    async with open_talk() as talk:
        yield talk
