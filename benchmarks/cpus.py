"""Which processor serves and which one asks, so that the two never compete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def for_server() -> frozenset[int] | None:
    """One processor; None where there is only one for everything."""
    cpus = sorted(os.sched_getaffinity(0))
    return frozenset(cpus[:1]) if len(cpus) > 1 else None


@contextmanager
def as_client() -> Iterator[None]:
    """Keep this process off the server's processor."""
    before = os.sched_getaffinity(0)
    if len(before) > 1:
        os.sched_setaffinity(0, sorted(before)[1:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
