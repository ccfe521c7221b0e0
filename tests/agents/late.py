"""A session on a runtime whose strings the test pulls, and what a client sees of its agents."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import trio
from attrs import define, field

from tests.agents.watching import LIVE, Frame, Watcher
from tests.house import House
from tests.runtime.puppets import Puppet, PuppetAdapter
from tests.spec_client import Answer, SocketClient

PATIENCE = 3.0


@define(eq=False)
class SlowDisk:
    """Holds a write up until ``let_go``; ``reached`` once it is held."""

    reached: trio.Event = field(factory=trio.Event)
    _going_on: trio.Event = field(factory=trio.Event)

    async def pass_by(self) -> None:
        self.reached.set()
        await self._going_on.wait()

    def let_go(self) -> None:
        self._going_on.set()


@define(eq=False)
class Late:
    house: House
    adapter: PuppetAdapter
    session_id: str
    _socket: SocketClient
    _watcher: Watcher
    _begun: int = 0

    @property
    def at(self) -> dict[str, str]:
        return {"session_id": self.session_id}

    async def say(self, content: str) -> None:
        await self._socket.send_json({"type": "message", "session_id": self.session_id, "content": content})

    async def begin(self) -> Puppet:
        """A turn that runs; its runtime."""
        await self.say("hello")
        self._begun += 1
        return await self.prompted(self._begun)

    async def prompted(self, times: int) -> Puppet:
        return await self.adapter.prompted(times)

    # --- acts -----------------------------------------------------------------------------------------------------

    async def stop(self, body: dict[str, Any], into: list[Any] | None = None) -> Any:
        answer = await self.house.owner.ok("sessions.stop", body, path=self.at)
        if into is not None:
            into.append(answer)
        return answer

    async def stop_agent(self, name: str, *, cascade: bool = True) -> Answer:
        path = {**self.at, "agent_id": self.id_of(name)}
        answer = await self.house.owner.call("agents.stop", {"cascade": cascade}, path=path)
        await trio.sleep(0.1)  # until it is told
        return answer

    @asynccontextmanager
    async def slow_disk(self) -> AsyncIterator[SlowDisk]:
        """The write that begins a turn takes its time."""
        disk = SlowDisk()

        async def before_write(call: tuple[Any, ...]) -> None:
            if any("_begin." in getattr(part, "__qualname__", "") for part in call):
                await disk.pass_by()

        self.house.faults.before_write = before_write
        yield disk
        self.house.faults.before_write = None

    # --- what is seen ---------------------------------------------------------------------------------------------

    def id_of(self, name: str) -> str:
        return str(self._watcher.named(name)["id"])

    def names(self, agent_ids: list[str]) -> list[str]:
        return [self._watcher.views[agent_id]["name"] for agent_id in agent_ids]

    def statuses(self) -> dict[str, str]:
        return {view["name"]: view["status"] for view in self._watcher.views.values()}

    def attentions(self) -> dict[str, str | None]:
        return {view["name"]: view["attention"] for view in self._watcher.views.values()}

    async def known(self, *names: str) -> None:
        await self._until(lambda: set(names) <= self.statuses().keys())

    async def fates(self, *, partly: bool = False, **expected: str) -> None:
        """Each by name: its status, and once it has ended why."""

        def seen() -> dict[str, str]:
            views = self._watcher.views.values()
            return {view["name"]: _fate(view) for view in views if not partly or view["name"] in expected}

        with suppress(trio.TooSlowError):
            await self._until(lambda: seen() == expected)
        assert seen() == expected

    async def transcript(self, name: str) -> list[Frame]:
        path = {**self.at, "agent_id": self.id_of(name)}
        page = await self.house.owner.ok("agents.transcript", path=path)
        return cast("list[Frame]", page["items"])

    async def contents(self) -> list[str]:
        page = await self.house.owner.ok("sessions.messages", path=self.at)
        return [message["content"] for message in page["messages"]]

    async def is_running(self) -> bool:
        return bool((await self.house.owner.ok("sessions.status", path=self.at))["is_running"])

    async def at_rest(self) -> None:
        await self._until(lambda: not self._watcher.of("session_running")[-1]["is_running"])

    async def _until(self, happens: Callable[[], bool]) -> None:
        await self._watcher.until(happens, PATIENCE)


def _fate(view: Frame) -> str:
    return str(view["status"]) if view["status"] in LIVE else f"{view['status']} {view['end_reason']}"


@asynccontextmanager
async def opened(house: House, prepare: Callable[[Puppet], None]) -> AsyncIterator[Late]:
    adapter = PuppetAdapter(prepare=prepare)
    cast("dict[str, Any]", house.services.supervisor.house.backends.adapters)["scripted"] = adapter
    session_id = str((await house.owner.ok("sessions.create", {}))["id"])
    query = {"session_id": session_id}
    async with house.owner.connect(query) as watching, house.owner.connect(query) as speaking:
        watcher = Watcher(watching)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watcher.read)
            yield Late(house, adapter, session_id, speaking, watcher)
            nursery.cancel_scope.cancel()
