"""Minutes of silence through nginx and Caddy with their default timeouts: what is open stays open, and works.

nginx gives up on whatever is silent for 60 seconds; the long chat shows that this is so, and what becomes of its turn.
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from nerve.client import ClientSocket
from nerve.contract.generated.frames_client import MessageFrame
from nerve.contract.generated.frames_server import DoneFrame
from tests.proxies.behind import KINDS, Site, nerve_with, running, settings
from tests.soak.scale import amount, only_whole
from tests.spec_client import judged

QUIET_SECONDS = amount(sample=16.0, whole=150.0)  # a comment comes within the shorter one
PROXY_SECONDS = 60.0
CHAT = f"#!nerve-scenario\n- wait: {QUIET_SECONDS - 2}\n- say: at last\n"
WAKE = "#!nerve-scenario\n- say: awake\n"


@only_whole
@pytest.mark.soak
@pytest.mark.slow
async def test_silence_through_proxies(tmp_path: Path, say: Callable[[str], None]) -> None:
    kinds = [kind for kind in KINDS.values() if kind.program is not None]
    if not kinds:
        pytest.skip("neither nginx nor caddy is installed (Debian: apt-get install nginx-light caddy)")
    with ExitStack() as stack:
        nerve = stack.enter_context(nerve_with(settings(), tmp_path / "nerve"))
        proxies = [stack.enter_context(running(kind, tmp_path / kind.name, nerve.upstream)) for kind in kinds]
        with trio.fail_after(QUIET_SECONDS + 60):
            async with trio.open_nursery() as nursery:
                for proxy in proxies:
                    site = Site(nerve, proxy)
                    nursery.start_soon(_idle, site, say)
                    nursery.start_soon(_long_chat, site, say)


async def _idle(site: Site, say: Callable[[str], None]) -> None:
    """A socket and an event stream on which nobody says anything, until somebody does."""
    session_id = await trio.to_thread.run_sync(_new_session, site)
    seen: list[str] = []
    spoken: list[float] = []
    async with site.socket() as live, trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.to_thread.run_sync, _listen, site, session_id, seen, abandon_on_cancel=True))
        nursery.start_soon(_read_on, live, spoken)
        await trio.sleep(QUIET_SECONDS)
        await live.send(MessageFrame(session_id=session_id, content=WAKE))
    comments, types = seen.count(":"), [each for each in seen if each != ":"]
    assert comments >= QUIET_SECONDS / 20
    assert types == ["user_message", "token", "done"]
    silence = max(later - earlier for earlier, later in pairwise(spoken))
    assert silence > 0.8 * QUIET_SECONDS, "others spoke"
    say(f"{site.proxy.kind}: a socket silent for {silence:.0f} s, a stream with {comments} comments, then a turn")


async def _read_on(live: ClientSocket, spoken: list[float]) -> None:
    """When each frame came, until a turn has ended.  A client that does not read does not pong either."""
    while True:
        frame = await live.receive()
        spoken.append(trio.current_time())
        if isinstance(frame, DoneFrame):
            return


def _new_session(site: Site) -> str:
    with site.client() as client:
        return str(judged(client.post("/api/sessions", json={})).json()["id"])


def _listen(site: Site, session_id: str, seen: list[str]) -> None:
    """Until the end of a turn; a stream that is cut before raises."""
    with site.client() as client, client.stream("GET", f"/api/sessions/{session_id}/stream") as stream:
        for line in stream.iter_lines():
            if line.startswith(":"):
                seen.append(":")
            elif line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: "))["type"])
            if seen[-1:] == ["done"]:
                return


async def _long_chat(site: Site, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    session_id, answer = await trio.to_thread.run_sync(_chat, site)
    took = time.monotonic() - began
    if site.proxy.kind == "nginx" and QUIET_SECONDS > PROXY_SECONDS:
        assert answer.status_code == 504
        assert PROXY_SECONDS - 2 <= took <= PROXY_SECONDS + 10
        await trio.sleep(QUIET_SECONDS - took + 2)
    else:
        assert judged(answer).json()["response"] == "at last"
    messages = await trio.to_thread.run_sync(_messages, site, session_id)
    assert [(row["role"], row["content"]) for row in messages] == [("user", CHAT), ("assistant", "at last")]
    say(f"{site.proxy.kind}: a chat of {QUIET_SECONDS - 2:.0f} s was answered {answer.status_code} after {took:.0f} s")


def _chat(site: Site) -> tuple[str, httpx.Response]:
    session_id = _new_session(site)
    body = {"message": CHAT, "session_id": session_id}
    with site.client() as client:
        return session_id, client.post("/api/chat", json=body, timeout=QUIET_SECONDS + 30)


def _messages(site: Site, session_id: str) -> list[dict[str, Any]]:
    with site.client() as client:
        found: list[dict[str, Any]] = judged(client.get(f"/api/sessions/{session_id}/messages")).json()["messages"]
        return found
