"""Random trees of agents, and people who stop them at random moments."""

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import trio
from attrs import define, field, frozen

from tests.agents.plays import Step, agent, ask, play, say, shell, wait
from tests.agents.seeded import run_seeded
from tests.agents.watching import Frame, Scopes, Watcher
from tests.house import House, now, open_house
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
    """Draws plays.  ``vanishing`` are the names of those that may end without a word."""

    _rng: random.Random
    _size: Size
    _names: int = 0
    vanishing: set[str] = field(factory=set)

    def play(self) -> str:
        rng = self._rng
        steps = self._steps(0, rng.choice((3, self._size.agents)), rng.choice((2, self._size.width, self._size.width)))
        return play(*steps, on_settled=[say("settled")] if rng.random() < 0.5 else None)

    def _steps(self, depth: int, agents: int, width: int) -> list[Step]:
        """So many agents in all, in so many branches."""
        steps: list[Step] = []
        branches = min(agents, width)
        for n in range(branches):
            steps.append(self._any(depth, agents // branches + (n < agents % branches)))
        return [*steps, wait(self._seconds()), say(f"words of {depth}")]

    def _any(self, depth: int, agents: int) -> Step:
        rng = self._rng
        chance = rng.random()
        if chance < 0.7 and depth < self._size.depth:
            return self._agent(depth, agents)
        if chance < 0.85:
            self._names += 1
            fields = {
                "background": rng.random() < (0.7 if depth else 0.97),
                "exit_code": rng.choice((0, 0, 1)),
                **self._stopping(),
            }
            return shell(f"shell {self._names}", self._seconds(), output=["x"], **fields)
        if chance < 0.86 and depth:
            return ask(f"q{rng.randrange(1000)}")
        if chance < 0.862:
            return {"crash": rng.choice((True, "silent"))}
        if chance < 0.866:
            return {"fail": "no"}
        seconds = self._seconds() if depth else 0
        return rng.choice((wait(seconds), {"tool": "Bash", "seconds": seconds, "result": "ok"}))

    def _agent(self, depth: int, agents: int) -> Step:
        rng = self._rng
        self._names += 1
        first = self._names
        ends = rng.choice(("completed", "completed", "completed", "failed", "vanished"))
        # Most of what a turn starts goes on in the background, so that much lives at once.
        fields = {"background": rng.random() < (0.6 if depth else 0.97), "ends": ends, **self._stopping()}
        below = self._steps(depth + 1, agents - 1, rng.choice((1, 2, 4, self._size.width)))
        grown = agent(f"agent {first}", *below, **fields)
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
            for view in watcher.live:
                assert view["attention"] == "stop_unconfirmed" or not _asked_long_ago(view)
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


def _asked_long_ago(view: Frame) -> bool:
    """So that it should have confirmed its stop.  (What appears under a stop is asked when it does.)"""
    asked = view["stop_requested_at"] if view["status"] == "stopping" else None
    return asked is not None and now() - datetime.fromisoformat(asked) > timedelta(seconds=UNCONFIRMED_SECONDS - 1)


def grow(root: Path, seed: int, size: Size, moments: int) -> int:
    """One session with random plays, shaken at so many moments; how many scopes its agents had."""
    scopes = Scopes()

    async def main(rng: random.Random) -> None:
        with temporary_files(root):
            async with open_house(root / "home") as house:
                await Story(house, rng, size, scopes).tell(moments)

    run_seeded(main, seed, [scopes])
    return len(scopes.ended)
