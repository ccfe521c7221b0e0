"""Autobahn's cases against an echo app on the hardened server, deflate off.

NON-STRICT is allowed where a case sends good frames and a broken one in one piece: the socket is failed at once, and
the echo of the good ones is not sent any more.  Group 9 is about throughput with messages above our bound, 12 and 13
about deflate.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kosoku import FailureError, run_fuzzingclient

from tests.hostile.attack import Victim, settled

pytestmark = [pytest.mark.slow, pytest.mark.soak]

# Which cases a group has, and those that may be NON-STRICT.
GROUPS = {"1": 16, "2": 11, "3": 7, "4": 10, "5": 20, "6": 145, "7": 37, "10": 1}
FAIL_FAST = re.compile(r"3\.[234]|4\.[12]\.[345]|5\.15")


@pytest.fixture(scope="module")
def echo() -> Iterator[Victim]:
    victim = Victim({"kind": "hardened"}).start()
    try:
        before = victim.census()
        yield victim
        settled(victim, before)
    finally:
        victim.end()


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_cases(echo: Victim, group: str, say: Callable[[str], None]) -> None:
    results = asyncio.run(_run(f"127.0.0.1:{echo.port}", f"{group}.*"))
    assert len(results) == GROUPS[group]
    verdicts = {result.case_id: (result.behavior.value, result.behavior_close.value) for result in results}
    lax = [case for case, (behavior, _) in verdicts.items() if behavior == "NON-STRICT"]
    wrong = {
        case: verdict
        for case, verdict in verdicts.items()
        if verdict[0] not in ("OK", "NON-STRICT", "INFORMATIONAL") or verdict[1] not in ("OK", "INFORMATIONAL")
    }
    say(f"Autobahn {group}: {len(results)} cases, non-strict: {', '.join(lax) or 'none'}")
    assert wrong == {}
    assert [case for case in lax if FAIL_FAST.fullmatch(case) is None] == []


async def _run(address: str, cases: str) -> list[Any]:
    try:
        return list(await run_fuzzingclient(address, [cases], None, concurrency=4))
    except FailureError as failure:
        return list(failure.results)
