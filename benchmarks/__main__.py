"""``python -m benchmarks [requests] [sessions] [store] [stream] [agents] [transcripts] [process]``.

All of them without a name.
"""

import sys
import time
from collections.abc import Callable

from benchmarks import (
    agent_events,
    http_requests,
    many_sessions,
    process_costs,
    store_writes,
    token_stream,
    transcript_pages,
)
from benchmarks.figures import Figure, table

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "requests": http_requests.measure,
    "sessions": many_sessions.measure,
    "store": store_writes.measure,
    "stream": token_stream.measure,
    "agents": agent_events.measure,
    "transcripts": transcript_pages.measure,
    "process": process_costs.measure,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    figures: list[Figure] = []
    for name in names or BENCHMARKS:
        begun = time.monotonic()
        print(f"{name} ...", end="", flush=True, file=sys.stderr)
        figures += BENCHMARKS[name]()
        print(f" {time.monotonic() - begun:.0f} s", file=sys.stderr)
    print(table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
