"""What a page of an agent's transcript costs does not grow with the transcript, wherever in it the page lies.

The yardstick is the newest page of a transcript that is a hundredth as long.
"""

import statistics
from contextlib import closing
from datetime import UTC, datetime, timedelta

import apsw

from benchmarks import cpus
from benchmarks.figures import Figure, percentile, ratio
from benchmarks.homes import new_home
from benchmarks.load import Load, burst
from nerve.contract.generated.entities import AgentText, AgentTextKind
from nerve.store import agent_items
from nerve.store.connection import configure, connect
from tests.soak.daemon import Daemon

LONG, SHORT, PAGE = 100_000, 1_000, 200
ROUNDS = 7
SECONDS = 1.0
CONNECTIONS = 8
PLAY = "#!nerve-scenario\n- {agent: long, result: done}\n- {agent: short, result: done}"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
CURSORS = {"first": "&after_seq=0", "middle": f"&before_seq={LONG // 2}", "last": ""}


def measure() -> list[Figure]:
    with new_home(cpus.for_server()) as daemon, cpus.as_client():
        daemon.start()
        daemon.claim()
        session_id, agents = _agents(daemon)
        daemon.end()
        with closing(connect(daemon.database)) as db:
            configure(db)
            with db:
                _write(db, agents["long"], LONG)
                _write(db, agents["short"], SHORT)
        daemon.start()
        pages = {
            agent: f"/api/sessions/{session_id}/agents/{agents[agent]}/transcript?limit={PAGE}" for agent in agents
        }
        asked = {name: pages["long"] + cursor for name, cursor in CURSORS.items()} | {"short": pages["short"]}
        for path in asked.values():
            _check(daemon, path)
            burst(daemon.port, path, daemon.token, connections=CONNECTIONS, seconds=0.3)
        loads: dict[str, list[Load]] = {name: [] for name in asked}
        for _ in range(ROUNDS):
            for name, path in asked.items():
                loads[name].append(burst(daemon.port, path, daemon.token, connections=CONNECTIONS, seconds=SECONDS))
    return [_figure(name, loads) for name in CURSORS]


def _agents(daemon: Daemon) -> tuple[str, dict[str, str]]:
    """A session with two agents that have ended; their ids by their names."""
    _, session = daemon.post("/api/sessions")
    status, answer = daemon.post("/api/chat", {"session_id": session["id"], "message": PLAY})
    assert status == 200, answer
    _, found = daemon.get(f"/api/sessions/{session['id']}/agents")
    return session["id"], {agent["name"]: agent["id"] for agent in found["agents"]}


def _write(db: apsw.Connection, agent_id: str, length: int) -> None:
    """Fill its transcript up."""
    written = agent_items.last_seq(db, agent_id)
    agent_items.append(db, ((agent_id, seq, _item(seq)) for seq in range(written + 1, length + 1)))


def _item(seq: int) -> str:
    text = f"Step {seq} is done; the next one follows. " * 5
    item = AgentText(seq=seq, at=BEGINNING + timedelta(seconds=seq), kind=AgentTextKind.TEXT, text=text)
    return agent_items.to_json(item)


def _check(daemon: Daemon, path: str) -> None:
    """A page that lacked something would be no measurement."""
    status, page = daemon.get(path)
    numbers = [item["seq"] for item in page["items"]]
    assert status == 200, page
    assert numbers == list(range(page["first_seq"], page["first_seq"] + PAGE)), path


def _figure(name: str, loads: dict[str, list[Load]]) -> Figure:
    rates, others = [load.rate for load in loads[name]], [load.rate for load in loads["short"]]
    latencies = [latency for load in loads[name] for latency in load.latencies]
    return Figure(
        f"{name} {PAGE} of {LONG:,} items of a transcript, against the last of {SHORT:,}",
        f"{ratio(rates, others):.2f}x",
        ">= 0.8x",
        f"{statistics.median(rates):,.0f}/s against {statistics.median(others):,.0f}/s, "
        f"p99 {percentile(latencies, 0.99) * 1000:.1f} ms at {CONNECTIONS} connections",
    )
