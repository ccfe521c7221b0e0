"""The conformance suite by address: a real server passes it, one that is wrong in three places is caught at them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.app import open_house
from nerve.asgi.server import bind, serve
from nerve.config import load
from nerve.effects import Effects
from nerve.store.instance import SETUP_TOKEN, fact
from tests.live.instance import Instance
from tests.soak.scale import amount, only_whole

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS = amount(400, 900)


# Most of a short run is its start; the second one only has to get in, and so plays one file.
FIRST = ("--every", str(amount(80, 1)))
AGAIN = amount(("-k", "reachable and (auth.me or sessions.list)"), ("--every", "50"))


def suite(url: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "tests/conformance", "-rfE", "--tb=short", "--url", url, *options]


def environment() -> dict[str, str]:
    """Nothing of the run that this is a part of."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NERVE"))}


def figures(output: str) -> dict[str, int]:
    """What the last line counts: passed, failed, skipped and so on."""
    return {what: int(number) for number, what in re.findall(r"(\d+) (\w+)", output.strip().splitlines()[-1])}


def played(url: str, *options: str) -> dict[str, int]:
    """The figures of a run that has to pass."""
    done = subprocess.run(
        suite(url, *options),
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "not as it should be" not in done.stdout
    return figures(done.stdout)


@pytest.mark.soak
def test_a_real_server_passes_by_its_address(instance: Instance) -> None:
    instance.foreground()
    setup_token = instance.status()["setup_token"]
    first = played(instance.address, "--setup-token", setup_token, *FIRST)
    assert first["passed"] > amount(8, 700)
    someone = ("--username", "alice", "--password", "correct horse")
    again = played(instance.address, *someone, *AGAIN, "-m", "not wrong_passwords")
    assert again["passed"] >= amount(5, 10)
    token = instance.login("alice", "correct horse").json()["token"]
    left = instance.http("GET", "/api/sessions", token).json()["sessions"]
    assert [row["id"] for row in left] == ["main"]
    accounts = instance.http("GET", "/api/accounts", token).json()["accounts"]
    assert [account["username"] for account in accounts if account["enabled"]] == ["alice"]
    # A file that a play wrote stays, as it would for people; uploads went with their sessions.
    assert {path.name for path in instance.workspace.iterdir()} <= {"conformance.txt", ".uploads"}
    assert not [path for path in (instance.workspace / ".uploads").rglob("*") if path.is_file()]


# --- a server that is wrong ---------------------------------------------------------------------------------------

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


def wrong(app: Any) -> Any:
    """The same but for a key of one reply, the status of one refusal, and a field of one frame."""

    async def altered(scope: Any, receive: Any, send: Send) -> None:
        await app(scope, receive, partial(_altered, scope, send))

    return altered


async def _altered(scope: Any, send: Send, message: Message) -> None:
    match message["type"], scope.get("path"):
        case "http.response.start", "/api/auth/check" if message["status"] == 200:
            kept = [(name, value) for name, value in message["headers"] if name != b"content-length"]
            message = {**message, "headers": kept}
        case "http.response.body", "/api/auth/check":
            message = {**message, "body": message["body"].replace(b'"authenticated"', b'"authorised"')}
        case "http.response.start", "/api/sessions/no-such-thing/queue" if message["status"] == 404:
            message = {**message, "status": 410}
        case "websocket.send", _ if json.loads(message["text"])["type"] == "pong":
            message = {**message, "text": '{"type": "pong", "late": true}'}
    await send(message)


@pytest.mark.soak
@only_whole
async def test_a_server_that_is_wrong_in_three_places_is_caught_at_them(tmp_path: Path) -> None:
    env = {"NERVE_HOME": str(tmp_path / "home"), "NERVE_WORKSPACE": str(tmp_path / "workspace")}
    async with open_house(load(None, env, tmp_path), Effects(), "127.0.0.1") as house, trio.open_nursery() as nursery:
        listening = bind("127.0.0.1", 0)
        over = trio.Event()
        await nursery.start(partial(serve, wrong(house.app), listening, until=over.wait))
        setup_token = await house.services.database.read(fact, SETUP_TOKEN)
        chosen = "(reachable or promised_frame) and (auth.check or auth.me or queue.list or pong or token)"
        command = suite(listening.address, "--setup-token", str(setup_token), "-k", chosen, "--tb=no")
        with trio.fail_after(RUN_SECONDS):
            done = await trio.run_process(command, cwd=ROOT, env=environment(), capture_stdout=True, check=False)
        over.set()
    output = done.stdout.decode()
    caught = set(re.findall(r"^FAILED \S+::test_(\S+?\[[^\]]+\])", output, flags=re.MULTILINE))
    assert done.returncode == 1, output
    assert caught == {
        "documented_reply_is_reachable[auth.check-200]",
        "documented_reply_is_reachable[queue.list-404-session_not_found]",
        "promised_frame_is_sent[pong-pong]",
    }
    assert "GET /api/auth/check answered 200 b'{\"authorised\":true}': $: Additional properties are" in output
    assert figures(output)["passed"] >= 10
