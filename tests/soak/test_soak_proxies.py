"""Minutes of silence through nginx and Caddy with their default timeouts: what is open stays open, and works.

nginx gives up on whatever is silent for 60 seconds; the long chat shows that this is so, and what becomes of its turn.
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from nerve.contract.generated.frames_server import DoneFrame
from tests.proxies.behind import KINDS, Site, nerve_with, running, settings
from tests.soak.scale import amount
from tests.spec_client import judged

QUIET_SECONDS = amount(sample=22.0, whole=150.0)  # a comment and a ping come within the shorter one
PROXY_SECONDS = 60.0
CHAT = f"#!nerve-scenario\n- wait: {QUIET_SECONDS - 2}\n- say: at last\n"
WAKE = "#!nerve-scenario\n- say: awake\n"


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
    async with site.socket() as live, trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.to_thread.run_sync, _listen, site, session_id, seen, abandon_on_cancel=True))
        await trio.sleep(QUIET_SECONDS)
        frames = [frame async for frame in await live.turn(session_id, WAKE)]
        assert isinstance(frames[-1], DoneFrame)
    comments, types = seen.count(":"), [each for each in seen if each != ":"]
    assert comments >= QUIET_SECONDS // 15
    assert types == ["user_message", "token", "done"]
    say(f"{site.proxy.kind}: a socket and a stream silent for {QUIET_SECONDS:.0f} s, {comments} comments, then a turn")


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
