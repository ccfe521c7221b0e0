"""What does not grow with a home: a page of messages, the list of sessions, a search, each over HTTP.

The yardsticks: stock Hypercorn-trio for the list and a search, the same page of a short session for messages.
"""

import statistics

from benchmarks import cpus
from benchmarks.figures import Figure, percentile, ratio
from benchmarks.homes import LONG, SHORT, lived_in_home
from benchmarks.http_requests import stock
from benchmarks.load import Load, burst

SESSIONS, EACH, LONGEST, SHORTEST = 5_000, 10, 10_000, 100
ROUNDS = 7
SECONDS = 1.0
CONNECTIONS = 8


def measure() -> list[Figure]:
    home = lived_in_home(cpus.for_server(), SESSIONS, SESSIONS * EACH, {LONG: LONGEST, SHORT: SHORTEST})
    with home as daemon, stock() as port, cpus.as_client():
        daemon.start()
        asked = {
            "stock": (port, "/", ""),
            "list": (daemon.port, "/api/sessions", daemon.token),
            "long": (daemon.port, f"/api/sessions/{LONG}/messages", daemon.token),
            "short": (daemon.port, f"/api/sessions/{SHORT}/messages", daemon.token),
            "rare": (daemon.port, f"/api/sessions/search?q=conversation+{SESSIONS // 2}", daemon.token),
            "title": (daemon.port, f"/api/sessions/search?q=number+{SESSIONS // 2}", daemon.token),
            "common": (daemon.port, "/api/sessions/search?q=message", daemon.token),
        }
        for where in asked.values():
            burst(*where, connections=CONNECTIONS, seconds=0.3)
        loads: dict[str, list[Load]] = {name: [] for name in asked}
        for _ in range(ROUNDS):
            for name, where in asked.items():
                loads[name].append(burst(*where, connections=CONNECTIONS, seconds=SECONDS))
    messages = SESSIONS * EACH + LONGEST + SHORTEST
    return [
        _figure(f"GET /api/sessions (50 of {SESSIONS:,}), against stock 'ok'", loads, "list", "stock", ">= 0.6x"),
        _figure(f"newest 100 of {LONGEST:,} messages, against those of {SHORTEST}", loads, "long", "short", ">= 0.8x"),
        _figure(f"search: one of {SESSIONS:,} by its messages, against stock 'ok'", loads, "rare", "stock", ">= 0.03x"),
        _figure(f"search: one of {SESSIONS:,} by its title, against stock 'ok'", loads, "title", "stock", ">= 0.05x"),
        _figure(f"search: a word of all {messages:,} messages, against stock 'ok'", loads, "common", "stock", "none"),
    ]


def _figure(what: str, loads: dict[str, list[Load]], ours: str, yardstick: str, target: str) -> Figure:
    rates, others = [load.rate for load in loads[ours]], [load.rate for load in loads[yardstick]]
    latencies = [latency for load in loads[ours] for latency in load.latencies]
    context = (
        f"{statistics.median(rates):,.0f}/s against {statistics.median(others):,.0f}/s, "
        f"p99 {percentile(latencies, 0.99) * 1000:.1f} ms at {CONNECTIONS} connections"
    )
    return Figure(what, f"{ratio(rates, others):.2f}x", target, context)
