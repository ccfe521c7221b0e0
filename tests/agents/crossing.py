"""One busy session and what comes over it: everything that an action could end is alive when the action falls.

``came_of`` tells in the words of the table in ARCHITECTURE.md what the action did to each of it.  The turn waits for
*front*, which waits for a person's answer; *back* works in the background and waits for another answer, *deep* beneath
it; *job* is a shell.  A message waits in the queue; two people watch.
"""

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
from attrs import define
from trio.testing import MockClock

from tests.agents.plays import agent, ask, play, say, shell, wait
from tests.agents.watching import Frame, Watcher
from tests.conformance.subject import new_person
from tests.house import House, open_house
from tests.spec_client import Answer, SocketClient, SpecClient
from tests.temporary import temporary_files

SETTLED_SECONDS = 9.0  # longer than anything that an action may take
LONG = 600.0
PLAY = play(
    agent("back", agent("deep", wait(LONG), background=True), ask("back"), wait(LONG), background=True),
    shell("job", LONG),
    agent("front", ask("front"), wait(LONG)),
)
NEXT = play(say("next"))
AGENTS = ("front", "back", "deep")


@define(eq=False)
class Crossing:
    """``person`` acts; ``watchers`` are the sockets of ``owner`` and of ``person``."""

    house: House
    person: SpecClient
    account_id: str
    session_id: str
    watchers: list[Watcher]
    answer: Answer | None = None
    dead: bool = False

    @property
    def at(self) -> dict[str, str]:
        return {"session_id": self.session_id}

    @property
    def views(self) -> dict[str, Frame]:
        """What a client knows of each agent, by name."""
        return {view["name"]: view for view in self.watchers[0].views.values()}

    async def call(self, operation_id: str, body: Any = ..., **options: Any) -> None:
        self.answer = await self.person.call(operation_id, body, path=self.at, **options)


Act = Callable[[Crossing], Awaitable[None]]


async def _stop_agent(crossing: Crossing) -> None:
    path = {**crossing.at, "agent_id": crossing.views["back"]["id"]}
    crossing.answer = await crossing.person.call("agents.stop", {}, path=path)


def _stop(**body: Any) -> Act:
    return lambda crossing: crossing.call("sessions.stop", body)


async def _disable(crossing: Crossing) -> None:
    await crossing.house.owner.ok("accounts.disable", path={"account_id": crossing.account_id})


async def _shut_down(crossing: Crossing) -> None:
    await crossing.house.faults.close_down()


async def _kill(crossing: Crossing) -> None:
    crossing.dead = True


ACTIONS: dict[str, Act] = {
    "stop agent (*back*)": _stop_agent,
    "stop turn": _stop(scope="turn"),
    "stop all": _stop(scope="all"),
    "stop all, shells spared": _stop(scope="all", include_shells=False),
    "force": _stop(scope="force"),
    "model change": lambda crossing: crossing.call("sessions.update", {"model": "another"}),
    "archive": lambda crossing: crossing.call("sessions.archive"),
    "archive, forced": lambda crossing: crossing.call("sessions.archive", query={"force": "true"}),
    "delete": lambda crossing: crossing.call("sessions.delete"),
    "account disabled": _disable,
    "shutdown": _shut_down,
    "kill -9": _kill,
}


def came_of(action: str) -> dict[str, str]:
    """One cell for each column."""

    async def main() -> dict[str, str]:
        with tempfile.TemporaryDirectory() as directory, temporary_files(Path(directory)):
            return await _crossed(Path(directory), ACTIONS[action])

    return trio.run(main, clock=MockClock(autojump_threshold=0))


async def _crossed(root: Path, act: Act) -> dict[str, str]:
    async with open_house(root / "home") as house:
        person, account = await new_person(house)
        session_id = str((await house.owner.ok("sessions.create", {}))["id"])
        query = {"session_id": session_id}
        async with house.owner.connect(query) as one, person.connect(query) as other, trio.open_nursery() as nursery:
            crossing = Crossing(house, person, account["id"], session_id, [Watcher(one), Watcher(other)])
            for watcher in crossing.watchers:
                nursery.start_soon(watcher.read)
            await _until_busy(crossing, one)
            await act(crossing)
            if crossing.dead:
                await house.copy_disk(root / "disk")
            else:
                await trio.sleep(SETTLED_SECONDS)
                cells = await _cells(crossing)
            nursery.cancel_scope.cancel()
    return await _after_death(root, crossing) if crossing.dead else cells


async def _until_busy(crossing: Crossing, socket: SocketClient) -> None:
    for content in (PLAY, NEXT):
        await socket.send_json({"type": "message", "session_id": crossing.session_id, "content": content})
        await trio.sleep(2)
    statuses = {name: view["status"] for name, view in crossing.views.items()}
    assert statuses == dict.fromkeys((*AGENTS, "job"), "running")
    assert len(crossing.watchers[1].of("interaction")) == 2


async def _after_death(root: Path, crossing: Crossing) -> dict[str, str]:
    """The next start, on what the killed one left."""
    async with open_house(root / "home", disk=root / "disk") as house:
        last_seq = max(frame.get("seq", 0) for frame in crossing.watchers[0].frames)
        query = {"session_id": crossing.session_id, "after_seq": last_seq}
        async with house.owner.connect(query) as socket, trio.open_nursery() as nursery:
            watcher = Watcher(socket)
            nursery.start_soon(watcher.read)
            await trio.sleep(SETTLED_SECONDS)
            before = crossing.watchers[0].frames
            watcher.frames[:0] = before
            reborn = Crossing(house, house.owner, "", crossing.session_id, [watcher], dead=True)
            cells = await _cells(reborn)
            nursery.cancel_scope.cancel()
    return cells


# --- what came of it ----------------------------------------------------------------------------------------------


async def _cells(crossing: Crossing) -> dict[str, str]:
    await _agree(crossing)
    return {
        "turn": _turn(crossing),
        "agents": _grouped({name: _fate(crossing.views[name]) for name in AGENTS}),
        "shells": _fate(crossing.views["job"]),
        "queue": _queue(crossing),
        "interactions": _interactions(crossing),
        "sockets": _sockets(crossing),
    }


async def _agree(crossing: Crossing) -> None:
    """What the frames said is what the endpoints say, unless the session is gone."""
    answer = await crossing.house.owner.call("agents.list", path=crossing.at)
    if crossing.answer is not None and crossing.answer.json == {"deleted": True}:
        assert answer.code == "session_not_found"
        return
    assert {view["name"]: view for view in answer.json["agents"]} == crossing.views
    row = await crossing.house.owner.ok("sessions.status", path=crossing.at)
    assert row["background_count"] == answer.json["summary"]["live"]


def _turn(crossing: Crossing) -> str:
    ends = [frame for frame in crossing.watchers[0].of("done", "stopped", "error") if "seq" in frame]
    if not ends:
        return "goes on"
    if ends[0]["type"] == "error":
        return "interrupted" if ends[0]["error"] == "Interrupted by restart" else "failed"
    told = None if crossing.answer is None else crossing.answer.json.get("turn")
    assert (ends[0]["type"], told) in {("stopped", "stopped"), ("stopped", "killed")}
    return str(told)


def _fate(view: Frame) -> str:
    return "goes on" if view["status"] == "running" else f"{view['status']} (`{view['end_reason']}`)"


PLURAL = {"goes on": "go on", "waits": "wait"}


def _grouped(fates: dict[str, str]) -> str:
    """``x`` if it is the same for all, else ``*a* and *b* x, *c* y``."""
    groups: dict[str, list[str]] = {}
    for name, fate in fates.items():
        groups.setdefault(fate, []).append(f"*{name}*")
    told = {fate: PLURAL.get(fate, fate) if len(names) > 1 else fate for fate, names in groups.items()}
    if len(groups) == 1:
        return next(iter(told.values()))
    return ", ".join(f"{' and '.join(names)} {told[fate]}" for fate, names in groups.items())


def _queue(crossing: Crossing) -> str:
    updates = crossing.watchers[0].of("queue_update")
    removed = [left["reason"] for frame in updates for left in frame.get("removed", [])][1:]  # but for the first turn
    if not removed:
        return "waits"
    ran = len(crossing.watchers[0].of("user_message", "done")) >= 1 and removed == ["started"]
    return ("runs at the next start" if crossing.dead else "runs") if ran else removed[0]


def _interactions(crossing: Crossing) -> str:
    resolved = {frame["interaction_id"] for frame in crossing.watchers[0].of("interaction_resolved")}
    fates = {}
    for frame in crossing.watchers[0].of("interaction"):
        fates[frame["agent"]["label"]] = "settled" if frame["interaction_id"] in resolved else "waits"
    return _grouped({name: fates[name] for name in ("front", "back")})


def _sockets(crossing: Crossing) -> str:
    if crossing.dead:
        return "cut"
    owners, persons = (watcher.closed for watcher in crossing.watchers)
    if owners == persons:
        return "stay" if owners is None else f"all closed ({owners})"
    assert owners is None
    return f"the account's closed ({persons})"
