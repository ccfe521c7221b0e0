"""Our ``GET /health`` and ``GET /api/sessions`` against stock Hypercorn-trio that says ``ok``."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import cpus
from benchmarks.figures import Figure, percentile, ratio
from benchmarks.homes import SESSIONS, lived_in_home
from benchmarks.load import Load, burst
from tests.ports import free_port

ROUNDS = 9
SECONDS = 1.0
CONNECTIONS = 16
PAGE = "/api/sessions"


def measure() -> list[Figure]:
    with lived_in_home(cpus.for_server()) as daemon, stock() as port, cpus.as_client():
        daemon.start()
        asked = {
            "stock": (port, "/", ""),
            "health": (daemon.port, "/health", ""),
            "page": (daemon.port, PAGE, daemon.token),
        }
        for where in asked.values():
            burst(*where, connections=CONNECTIONS, seconds=0.5)
        loads: dict[str, list[Load]] = {name: [] for name in asked}
        for _ in range(ROUNDS):
            for name, where in asked.items():
                loads[name].append(burst(*where, connections=CONNECTIONS, seconds=SECONDS))
    return [
        _figure(
            "GET /health, against stock 'ok'", loads["health"], loads["stock"], ">= 1.5x (hardened server, part 2)"
        ),
        _figure(
            f"GET /api/sessions (50 of {SESSIONS:,}), against stock 'ok'",
            loads["page"],
            loads["stock"],
            ">= 0.6x (hardened server, part 2)",
        ),
    ]


def _figure(what: str, ours: list[Load], stock: list[Load], target: str) -> Figure:
    rates, yardstick = [load.rate for load in ours], [load.rate for load in stock]
    latencies = [latency for load in ours for latency in load.latencies]
    context = (
        f"{statistics.median(rates):,.0f}/s against {statistics.median(yardstick):,.0f}/s, "
        f"p99 {percentile(latencies, 0.99) * 1000:.1f} ms at {CONNECTIONS} connections"
    )
    return Figure(what, f"{ratio(rates, yardstick):.2f}x", target, context)


@contextmanager
def stock() -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.stock_server", str(port)], stderr=subprocess.DEVNULL)
    try:
        chosen = cpus.for_server()
        if chosen is not None:
            os.sched_setaffinity(process.pid, chosen)
        deadline = time.monotonic() + 30
        while True:
            try:
                burst(port, "/", "", connections=1, seconds=0.01)
                break
            except ConnectionRefusedError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        yield port
    finally:
        process.kill()
        process.wait()
