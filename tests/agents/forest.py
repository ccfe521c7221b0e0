"""Random trees of agents, and people who stop them at random moments."""

import random
from pathlib import Path
from typing import Any

import trio
from attrs import define, field, frozen

from tests.agents.plays import Step, agent, ask, play, say, shell, wait
from tests.agents.seeded import run_seeded
from tests.agents.watching import Frame, Scopes, Watcher
from tests.house import House, open_house
from tests.temporary import temporary_files

DEEPEST, WIDEST = 8, 200
UNCONFIRMED_SECONDS = 12.0  # after that a stop that nobody has confirmed is told


@frozen
class Size:
    """Of one play."""

    agents: int = WIDEST
    depth: int = DEEPEST
    width: int = WIDEST


@define
class Planter:
    """Draws plays; ``_left`` is how many agents the present one may still get.

    ``vanishing`` are the names of those that may end without a word.
    """

    _rng: random.Random
    _size: Size
    _left: int = 0
    _names: int = 0
    vanishing: set[str] = field(factory=set)

    def play(self) -> str:
        self._left = self._rng.randint(1, self._size.agents)
        steps = self._steps(0)
        return play(*steps, on_settled=[say("settled")] if self._rng.random() < 0.5 else None)

    def _steps(self, depth: int) -> list[Step]:
        rng = self._rng
        width = rng.choice((1, 1, 2, 3, 5, self._size.width))
        steps: list[Step] = []
        for _ in range(rng.randint(0 if depth else 1, width)):
            if self._left <= 0:
                break
            steps.append(self._any(depth))
        steps += [wait(self._seconds()), say(f"words of {depth}")]
        return steps

    def _any(self, depth: int) -> Step:
        rng = self._rng
        chance = rng.random()
        if chance < 0.7 and depth < self._size.depth:
            return self._agent(depth)
        if chance < 0.85:
            self._left -= 1
            self._names += 1
            fields = {"background": rng.random() < 0.7, "exit_code": rng.choice((0, 0, 1)), **self._stopping()}
            return shell(f"shell {self._names}", self._seconds(), output=["x"], **fields)
        if chance < 0.88:
            return ask(f"q{rng.randrange(1000)}")
        if chance < 0.885:
            return {"crash": rng.choice((True, "silent"))}
        if chance < 0.9:
            return {"fail": "no"}
        return rng.choice((wait(self._seconds()), {"tool": "Bash", "seconds": self._seconds(), "result": "ok"}))

    def _agent(self, depth: int) -> Step:
        rng = self._rng
        self._left -= 1
        self._names += 1
        first = self._names
        ends = rng.choice(("completed", "completed", "completed", "failed", "vanished"))
        fields = {"background": rng.random() < 0.6, "ends": ends, **self._stopping()}
        grown = agent(f"agent {first}", *self._steps(depth + 1), **fields)
        if ends == "vanished":
            self.vanishing |= {f"{kind} {n}" for n in range(first, self._names + 1) for kind in ("agent", "shell")}
        return grown

    def _stopping(self) -> dict[str, Any]:
        chance = self._rng.random()
        if chance < 0.03:
            return {"on_stop": "ignore"}
        return {"stop_seconds": round(self._rng.uniform(0, 3), 2)} if chance < 0.2 else {}

    def _seconds(self) -> float:
        return self._rng.choice((0, 0, 0.05, 0.3, 1, 5, 20))


@define(eq=False)
class Story:
    """One session, its random plays and the random stops of them.  ``spared`` are agents stopped without cascade."""

    house: House
    rng: random.Random
    size: Size
    scopes: Scopes
    session_id: str = ""
    spared: set[str] = field(factory=set)
    planter: Planter = field(init=False)

    @property
    def at(self) -> dict[str, str]:
        return {"session_id": self.session_id}

    async def tell(self, moments: int) -> None:
        """Play, stop, and look at what is left."""
        self.session_id = (await self.house.owner.ok("sessions.create", {}))["id"]
        async with self.house.owner.connect(self.at) as socket, trio.open_nursery() as nursery:
            watcher = Watcher(socket)
            nursery.start_soon(watcher.read)
            planter = self.planter = Planter(self.rng, self.size)
            await self._say(planter.play())
            for _ in range(moments):
                await trio.sleep(self.rng.choice((0, 0.01, 0.05, 0.3, 1, 4)))
                await self._something(watcher, planter)
            await self._end(watcher)
            await self._check(watcher)
            nursery.cancel_scope.cancel()

    async def _say(self, content: str) -> None:
        async with self.house.owner.connect(self.at) as socket:
            await socket.send_json({"type": "message", "session_id": self.session_id, "content": content})
            await socket.receive_until("queue_update")

    async def _something(self, watcher: Watcher, planter: Planter) -> None:
        rng, live = self.rng, watcher.live
        match rng.choices(("agent", "turn", "all", "force", "say", "nothing"), (6, 1, 1, 0.5, 1, 3))[0]:
            case "agent" if live:
                await self._stop_agent(rng.choice(live), cascade=rng.random() < 0.7)
            case "turn":
                await self._stop(scope="turn")
            case "all":
                await self._stop(scope="all", include_shells=rng.random() < 0.5)
            case "force":
                await self._stop(scope="force")
            case "say":
                await self._say(planter.play())
            case _:
                pass

    async def _stop(self, **body: Any) -> None:
        await self.house.owner.ok("sessions.stop", body, path=self.at)

    async def _stop_agent(self, view: Frame, *, cascade: bool) -> None:
        if not cascade:
            self.spared.add(view["id"])
        answer = await self.house.owner.call(
            "agents.stop", {"cascade": cascade}, path={**self.at, "agent_id": view["id"]}
        )
        assert answer.code in ("", "no_runtime")

    async def _end(self, watcher: Watcher) -> None:
        """Stop everything, then force what does not listen; also what the queue still begins."""
        for _ in range(40):
            await self._stop(scope="all")
            await trio.sleep(UNCONFIRMED_SECONDS)
            for view in watcher.live:  # what was asked to stop long ago is told
                assert view["status"] != "stopping" or view["attention"] == "stop_unconfirmed"
            await self._stop(scope="force")
            await trio.sleep(1.5)
            state = await self.house.owner.ok("sessions.status", path=self.at)
            queue = await self.house.owner.ok("queue.list", path=self.at)
            if not watcher.live and not state["is_running"] and not queue["items"]:
                return
        raise AssertionError("it goes on and on")

    # --- what has to be true ------------------------------------------------------------------------------------

    async def _check(self, watcher: Watcher) -> None:
        assert self.scopes.live == {}
        snapshot = await self.house.owner.ok("agents.list", path=self.at, query={"limit": "500"})
        for view in snapshot["agents"]:
            assert watcher.views[view["id"]] == view
            await self._settled_once(view)
        self._no_scope_outlives_its_parent(watcher.views)

    async def _settled_once(self, view: Frame) -> None:
        path = {**self.at, "agent_id": view["id"]}
        page = await self.house.owner.ok("agents.transcript", path=path, query={"after_seq": "0", "limit": "500"})
        assert [item["seq"] for item in page["items"]] == list(range(1, len(page["items"]) + 1))
        life = [item["event"] for item in page["items"] if item["kind"] == "lifecycle"]
        ends = [event for event in life if event not in ("started", "resumed", "stop_requested")]
        assert ends == [view["status"]], life
        assert life[-1] == view["status"]

    def _no_scope_outlives_its_parent(self, views: dict[str, Frame]) -> None:
        ended = {ref: n for n, ref in enumerate(self.scopes.ended)}
        for view in views.values():
            parent = views.get(view["parent_agent_id"] or "")
            if parent is None or self._was_spared(view, parent):
                continue
            # One that a stop reached before it began never had a scope.
            child, above = ended.get(view["spawn_tool_use_id"], -1), ended[parent["spawn_tool_use_id"]]
            assert child < above, f"{view} outlives {parent}"
            if view["name"] not in self.planter.vanishing:  # that is noticed only later
                assert view["ended_at"] <= parent["ended_at"], f"{view} outlives {parent}"

    def _was_spared(self, view: Frame, parent: Frame) -> bool:
        """Whether its parent was stopped in a way that lets it go on: it then is the session's."""
        # One that the turn waits for may also end with the turn when all is stopped; its children are then asked apart.
        by_turn = not parent["background"] and parent["end_reason"] in ("turn_stop", "stop_all") and view["background"]
        return by_turn or parent["id"] in self.spared


def grow(root: Path, seed: int, size: Size, moments: int) -> int:
    """One session with random plays, shaken at so many moments; how many scopes its agents had."""
    scopes = Scopes()

    async def main(rng: random.Random) -> None:
        with temporary_files(root):
            async with open_house(root / "home") as house:
                await Story(house, rng, size, scopes).tell(moments)

    run_seeded(main, seed, [scopes])
    return len(scopes.ended)
