"""``deployment: docker`` outside the container, with a program ``docker`` that writes down what it is asked."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nerve.cli.commands import cli


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    (made / "config.yaml").write_text("deployment: docker\n")
    return made


@pytest.fixture
def docker(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexit 7\n')
    program.chmod(0o755)
    return program


def run(home: Path, *words: str, **env: str) -> Result:
    given = {
        "HOME": str(home.parent),
        "NERVE_HOME": str(home),
        "PATH": f"{home.parent}/bin",
        "NERVE_DOCKER": None,
        **env,
    }
    return CliRunner().invoke(cli, list(words), env=given)


@pytest.mark.parametrize(
    ("words", "forwarded"),
    [
        (["start"], "up -d"),
        (["start", "--foreground"], "up"),
        (["stop"], "stop"),
        (["restart"], "restart"),
        (["status"], "ps"),
        (["status", "--json"], "ps --format json"),
        (["logs"], "logs"),
        (["logs", "-f"], "logs -f"),
    ],
)
def test_commands_about_the_daemon_are_forwarded_and_exit_as_docker_does(
    home: Path, docker: Path, words: list[str], forwarded: str
) -> None:
    file = home / "docker-compose.yml"
    file.touch()
    assert run(home, *words).exit_code == 7
    assert (home.parent / "asked").read_text() == f"compose -f {file} {forwarded}\n"


def test_a_missing_file_or_program_is_one_line(home: Path) -> None:
    done = run(home, "stop")
    assert (done.exit_code, "docker-compose.yml is not there" in done.stderr) == (1, True)
    (home / "docker-compose.yml").touch()
    done = run(home, "stop")
    assert (done.exit_code, "not on PATH" in done.stderr) == (1, True)


def test_options_that_docker_would_not_heed_are_refused(home: Path, docker: Path) -> None:
    (home / "docker-compose.yml").touch()
    assert run(home, "start", "--port", "1").exit_code == 2
    assert not (home.parent / "asked").exists()


def test_inside_the_container_the_commands_are_our_own(home: Path, docker: Path) -> None:
    (home / "docker-compose.yml").touch()
    done = run(home, "stop", NERVE_DOCKER="1")
    assert (done.exit_code, done.stdout) == (0, "nerve is not running\n")
