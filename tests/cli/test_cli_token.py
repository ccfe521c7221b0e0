"""`nerve token`: what it prints, what the server makes of it, and what it refuses."""

import base64
import json
import subprocess
import time
from typing import Any

import pytest

from tests.cli.terminals import PASSWORD, House
from tests.live.instance import PROGRAM, Instance
from tests.soak.scale import only_whole

pytestmark = pytest.mark.slow


def token(house: House, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, "token", *words],
        env={**house.instance.env, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def claims(signed: str) -> dict[str, Any]:
    payload = signed.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


def me(house: House, signed: str) -> dict[str, Any]:
    answer = house.instance.http("GET", "/api/auth/me", signed)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_password_becomes_a_session_token_and_nothing_else_is_printed(house: House) -> None:
    done = token(house, NERVE_PASSWORD=PASSWORD)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert me(house, done.stdout.strip())["account"]["username"] == "owner"


def test_an_old_token_of_the_environment_is_not_what_is_asked_for(house: House) -> None:
    assert token(house, NERVE_TOKEN="expired", NERVE_PASSWORD=PASSWORD).returncode == 0


@pytest.mark.req("AUTH-06")
def test_the_operator_gets_an_mcp_token_without_a_password(house: House) -> None:
    session_id = house.new_session()
    done = token(house, "--mcp", "--session", session_id, "--hours", "2")
    assert (done.returncode, done.stderr) == (0, "")
    found = claims(done.stdout)
    assert (found["aud"], found["nerve_session_id"]) == ("nerve-mcp", session_id)
    assert found["exp"] - found["iat"] == 2 * 3600
    assert abs(found["iat"] - time.time()) < 60
    assert "typ" not in found
    answer = me(house, done.stdout.strip())
    assert (answer["actor"]["kind"], answer["account"]) == ("system", None)


def test_an_mcp_token_is_good_for_eight_hours_and_bound_to_nothing_by_itself(house: House) -> None:
    found = claims(token(house, "--mcp").stdout)
    assert found["exp"] - found["iat"] == 8 * 3600
    assert "nerve_session_id" not in found
    assert me(house, token(house, "--mcp").stdout.strip())["actor"]["kind"] == "system"


def test_a_session_that_is_not_there_is_refused(house: House) -> None:
    done = token(house, "--mcp", "--session", "nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "nerve: there is no session nowhere\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--hours", "2"],
        ["--session", "main"],
        ["--mcp", "--hours", "0"],
        ["--mcp", "--hours", "25"],
        ["--mcp", "--url", "http://127.0.0.1:1"],
        ["something"],
    ],
)
def test_what_makes_no_sense_is_a_usage_error(house: House, words: list[str]) -> None:
    done = token(house, *words)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.soak
@only_whole
def test_an_mcp_token_needs_no_running_daemon_but_a_home_that_has_a_secret(instance: Instance) -> None:
    fresh = instance.nerve("token", "--mcp")
    assert (fresh.returncode, fresh.stdout) == (1, "")
    assert "no secret" in fresh.stderr
    assert not (instance.home / "jwt_secret").exists()
    instance.foreground()
    instance.must("stop")
    assert instance.nerve("token", "--mcp", "--session", "main").returncode == 0
    down = instance.nerve("token")
    assert (down.returncode, down.stdout) == (1, "")
    assert "not running" in down.stderr


def test_a_daemon_in_a_container_is_reached_at_its_published_port(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("deployment: docker\ngateway: {host: 0.0.0.0, port: 1}\n")
    done = instance.nerve("token")
    assert done.stderr == "nerve: http://127.0.0.1:1 can't be reached: Connection refused\n"
