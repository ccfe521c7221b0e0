"""The first run: starts Nerve unless it runs, claims it unless somebody has, shows one streamed turn, and leaves it up.

Run by ./try.  Signs in to an instance that is claimed already with NERVE_TOKEN or NERVE_PASSWORD (and NERVE_USERNAME).
"""

import json
import os
import secrets
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import trio
from attrs import frozen

from nerve.client import ApiError, NerveClient, SocketEnded, TurnRefused, Unreachable, open_client, open_socket
from nerve.contract.generated.entities import LoginState
from nerve.contract.generated.frames_server import (
    DoneFrame,
    ErrorFrame,
    ServerFrame,
    ThinkingFrame,
    TokenFrame,
    ToolOutputFrame,
    ToolResultFrame,
    ToolUseFrame,
)

NERVE = Path(sys.executable).with_name("nerve")
USERNAME = "owner"
FIRST_PORT, LAST_PORT = 8900, 8909
TURN_SECONDS = 60.0

PLAY = """#!nerve-scenario
- think: Somebody is here for the first time. I show what a turn looks like, and look around while I do.
  pace: 0.02
- say: "Hello! This is one turn of an agent, streamed to your terminal over a WebSocket. "
  pace: 0.04
- tool: Bash
  input: {command: python3 --version && ls}
  output: ["Python 3.11\\n", "README.md  nerve  spec  tests\\n"]
  result: two lines
  seconds: 1
- say: >-
    That was a tool call with its output. No model is configured yet, so all of this is a small play:
    the server treats it exactly as it treats a real agent. It is stored, numbered and can be replayed.
  pace: 0.04
- usage: {input_tokens: 120, output_tokens: 60, cost_usd: 0.0}
"""


@frozen
class Running:
    """What ``nerve status --json`` says of a daemon that runs."""

    address: str
    setup_token: str | None


class FirstRunFailed(Exception):
    """The text is the one line that says why."""


def status() -> dict[str, object]:
    done = subprocess.run([NERVE, "status", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FirstRunFailed(done.stderr.strip())
    found: dict[str, object] = json.loads(done.stdout)
    return found


def start() -> Running:
    """The daemon of this home, started in the background if it does not run."""
    found = status()
    if "problem" in found:
        raise FirstRunFailed(str(found["problem"]))
    if not found["running"]:
        done = subprocess.run([NERVE, "start", *_port_option(str(found["address"]))], check=False)
        if done.returncode != 0:
            raise FirstRunFailed("nerve did not start")
        found = status()
    token = found.get("setup_token")
    return Running(str(found["address"]), token if isinstance(token, str) else None)


def _port_option(configured: str) -> list[str]:
    """Nothing if the configured port is free; else, for the default port only, the next free one."""
    url = httpx.URL(configured)
    if url.port != FIRST_PORT or _is_free(url.host, FIRST_PORT):
        return []
    for port in range(FIRST_PORT + 1, LAST_PORT + 1):
        if _is_free(url.host, port):
            return ["--port", str(port)]
    return ["--port", "0"]


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


async def sign_in(client: NerveClient, setup_token: str | None) -> bool:
    """Claim an unclaimed instance, or sign in where we can without asking; False where we can't."""
    if setup_token is not None:
        password = os.environ.get("NERVE_PASSWORD") or secrets.token_urlsafe(12)
        await client.claim(setup_token, USERNAME, password)
        print(f"\nThis instance is yours now.  Username: {USERNAME}   Password: {password}")
        print("The password is shown this once and kept nowhere but as a hash; note it down.\n")
        return True
    if token := os.environ.get("NERVE_TOKEN"):
        client.token = token
        return True
    state = (await client.auth_status()).login
    if state is LoginState.NONE:
        await client.login("")
    elif password_given := os.environ.get("NERVE_PASSWORD"):
        await client.login(password_given, os.environ.get("NERVE_USERNAME"))
    return client.token is not None


async def show_turn(address: str, token: str) -> None:
    """Send the play to ``main`` and write what streams back to the terminal."""
    with trio.fail_after(TURN_SECONDS):
        async with open_socket(address, token, session_id="main") as live:
            thinking = False
            async for frame in await live.turn("main", PLAY):
                if thinking and isinstance(frame, TokenFrame):
                    sys.stdout.write("\n\n")
                thinking = isinstance(frame, ThinkingFrame)
                sys.stdout.write(_shown(frame))
                sys.stdout.flush()


def _shown(frame: ServerFrame) -> str:
    match frame:
        case TokenFrame(content=text) | ToolOutputFrame(content=text):
            return text
        case ThinkingFrame(content=text):
            return _dim(text)
        case ToolUseFrame(tool=tool, input=given):
            return f"\n\n[{tool}] {given.get('command', given)}\n"
        case ToolResultFrame(result=result):
            return f"[result] {result}\n\n"
        case DoneFrame():
            return "\n\n(the turn is done)\n"
        case ErrorFrame(error=error):
            return f"\n\n(the turn ended with an error: {error})\n"
        case _:
            return ""


def _dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if sys.stdout.isatty() else text


async def first_run() -> None:
    running = start()
    async with open_client(running.address) as client:
        if await sign_in(client, running.setup_token) and client.token is not None:
            await show_turn(running.address, client.token)
        else:
            print("Somebody has claimed this instance already.  To see a turn, run this again with NERVE_PASSWORD set")
            print("(and NERVE_USERNAME, if there are several accounts) or NERVE_TOKEN.")
    named = ("NERVE_HOME", "NERVE_WORKSPACE")
    home = "".join(f"{name}={shlex.quote(os.environ[name])} " for name in named if name in os.environ)
    print(f"\nNerve runs on {running.address} and stays up.  {running.address}/docs describes its API.")
    print(f"Sign in:  curl {running.address}/api/auth/login \\")
    print("""            -H 'content-type: application/json' -d '{"password": "..."}'""")
    print(f"Look:     {home}.venv/bin/nerve status")
    print(f"Stop:     {home}.venv/bin/nerve stop")


def main() -> int:
    try:
        trio.run(first_run)
    except FirstRunFailed as failed:
        print(f"The first run failed: {failed}", file=sys.stderr)
    except (ApiError, SocketEnded, TurnRefused) as refused:
        print(f"The server refused: {refused}", file=sys.stderr)
    except Unreachable as lost:
        print(lost, file=sys.stderr)
    except trio.TooSlowError:
        print(f"The turn did not end within {TURN_SECONDS:.0f} s.", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
