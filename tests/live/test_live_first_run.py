"""What ./try does once it is set up: start, claim, stream, stay up, and go on with what is there."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from nerve.client import open_client
from tests.live.instance import Instance
from tools import first_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def anywhere(instance: Instance) -> Instance:
    """On any free port, so that neighbours on this machine are left alone."""
    instance.home.mkdir()
    (instance.home / "config.yaml").write_text("gateway: {port: 0}\n")
    return instance


def run(instance: Instance, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tools.first_run"],
        env={**instance.env, **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


async def signed_in(address: str, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The token that a run on a claimed instance goes on with."""
    with monkeypatch.context() as given:
        for name, value in env.items():
            given.setenv(name, value)
        async with open_client(address) as client:
            assert await first_run.sign_in(client, None)
            return client.token


@pytest.mark.slow
def test_it_claims_streams_a_turn_and_stays_up_then_goes_on_with_what_is_there(
    anywhere: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(anywhere)
    assert first.returncode == 0, first.stderr
    assert "This is one turn of an agent" in first.stdout
    assert "(the turn is done)" in first.stdout
    found = re.search(r"Username: (\S+)   Password: (\S+)", first.stdout)
    assert found is not None
    username, password = found.groups()
    assert anywhere.login(username, password).status_code == 200
    assert password not in anywhere.log

    again = run(anywhere)
    assert again.returncode == 0, again.stderr
    assert "claimed this instance already" in again.stdout
    assert anywhere.address in again.stdout

    token = anywhere.login(username, password).json()["token"]
    for given in ({"NERVE_PASSWORD": password}, {"NERVE_PASSWORD": password, "NERVE_USERNAME": username}):
        assert trio.run(signed_in, anywhere.address, given, monkeypatch)
    assert trio.run(signed_in, anywhere.address, {"NERVE_TOKEN": token}, monkeypatch) == token

    wrong = run(anywhere, NERVE_PASSWORD="wrong")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("The server refused: 401")


@pytest.mark.slow
def test_a_broken_configuration_is_one_line(anywhere: Instance) -> None:
    (anywhere.home / "config.yaml").write_text("gateway: [\n")
    done = run(anywhere)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "config.yaml" in done.stderr


def test_a_port_that_is_taken_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not first_run._is_free("127.0.0.1", port)
        # A port that somebody chose is theirs to sort out; only the default one is passed over.
        assert first_run._port_option(f"http://127.0.0.1:{port}") == []


@pytest.mark.parametrize("program", ["try", "test"])
def test_without_a_python_that_is_new_enough_it_says_so_in_one_line(program: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "dirname").symlink_to("/usr/bin/dirname")
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(ROOT / program)],
        env={"PATH": str(tools), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Python 3.11 or newer" in done.stderr
