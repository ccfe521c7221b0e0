"""The programs and commands that the README shows for the client and `nerve token` do what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.instance import Instance
from tests.live.test_live_readme import BLOCKS

pytestmark = pytest.mark.slow


def test_the_plain_client_as_written(instance: Instance, token: str, tmp_path: Path) -> None:
    program = tmp_path / "plain.py"
    program.write_text(BLOCKS["plain client"])
    done = subprocess.run(
        [sys.executable, program],
        env={**instance.env, "NERVE": instance.address, "PASSWORD": "correct horse"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "TokenFrame" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("DoneFrame")


def test_the_tokens_as_written(instance: Instance, token: str) -> None:
    path = f"{Path(sys.executable).parent}:{instance.env['PATH']}"
    done = subprocess.run(
        ["sh", "-euc", BLOCKS["token"] + '\necho "$TOKEN" "$MCP_TOKEN"'],
        env={**instance.env, "PATH": path, "NERVE_PASSWORD": "correct horse"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tokens = done.stdout.split()
    assert [instance.http("GET", "/api/auth/me", one).json()["actor"]["kind"] for one in tokens] == ["human", "system"]


def test_every_option_that_the_readme_shows_is_there(instance: Instance) -> None:
    shown = {word for name in ("chat in a terminal", "token") for word in re.findall(r"--\w+", BLOCKS[name])}
    known = instance.must("chat", "--help") + instance.must("token", "--help")
    assert shown
    assert not {word for word in shown if word not in known}
