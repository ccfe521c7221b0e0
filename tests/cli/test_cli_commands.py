"""What the commands say and how they exit, without a daemon."""

import json
from pathlib import Path

import click
import pytest
from attrs import define
from click.testing import CliRunner, Result

from nerve.cli.commands import cli


@define
class Shell:
    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    def __call__(self, *words: str, stdin: str | None = None, **env: str) -> Result:
        given = {
            "HOME": str(self.root),
            "NERVE_HOME": str(self.home),
            "NERVE_WORKSPACE": str(self.root / "ws"),
            "NERVE_CONFIG_DIR": None,
            "INVOCATION_ID": None,
            **env,
        }
        return CliRunner().invoke(cli, list(words), input=stdin, env=given, prog_name="nerve")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def broken(shell: Shell) -> Shell:
    shell.home.mkdir()
    (shell.home / "config.yaml").write_text("gateway: [\n")
    return shell


def test_status_of_an_empty_home_changes_nothing(shell: Shell) -> None:
    done = shell("status", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found == {
        "running": False,
        "pid": None,
        "address": "http://127.0.0.1:8900",
        "version": "0.1.0",
        "login": "setup",
        "setup_token": None,
        "home": str(shell.home),
        "workspace": str(shell.root / "ws"),
        "config_dir": str(shell.home),
        "config_source": "default",
        "log": str(shell.home / "nerve.log"),
        "backend": "scripted",
        "backend_reason": "The agent runtime claude is not available on this server.",
        "note": "the setup token is made at the first start: nerve start",
    }
    assert not shell.home.exists()


def test_status_for_people_says_the_same(shell: Shell) -> None:
    lines = shell("status").stdout.splitlines()
    assert lines[0] == "nerve is not running"
    assert any(line.split() == ["home:", str(shell.home)] for line in lines)
    assert any("made at the first start" in line for line in lines)


def test_a_configured_runtime_has_no_reason(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "config.yaml").write_text("agent: {backend: scripted}\n")
    found = json.loads(shell("status", "--json").stdout)
    assert (found["backend"], found["backend_reason"], found["config_source"]) == ("scripted", None, "home")


def test_status_goes_on_without_a_configuration_and_says_why(broken: Shell) -> None:
    done = broken("status", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert "config.yaml" in found["problem"]
    assert found["home"] == str(broken.home)
    assert found["running"] is False
    assert "problem:" in broken("status").stdout


@pytest.mark.parametrize("words", [["start"], ["stop"], ["restart"], ["logs"], ["account", "list"]])
def test_a_broken_configuration_stops_other_commands_with_one_line(broken: Shell, words: list[str]) -> None:
    done = broken(*words)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.startswith("nerve: ")
    assert done.stderr.count("\n") == 1
    assert "config.yaml" in done.stderr


@pytest.mark.parametrize(
    "words", [["dance"], ["start", "--port", "70000"], ["start", "--port", "x"], ["--nope"], ["account", "create"]]
)
def test_usage_errors_exit_with_2(shell: Shell, words: list[str]) -> None:
    assert shell(*words).exit_code == 2


def test_help_needs_no_configuration(broken: Shell) -> None:
    for command in cli.commands.values():
        done = broken(command.name or "", "--help")
        assert done.exit_code == 0
        assert done.stdout.startswith(f"Usage: nerve {command.name} ")


def test_the_config_directory_can_be_named(shell: Shell) -> None:
    named = shell.root / "etc"
    named.mkdir()
    (named / "config.yaml").write_text("gateway: {port: 4321}\n")
    found = json.loads(shell("-c", str(named), "status", "--json").stdout)
    assert (found["config_source"], found["config_dir"]) == ("flag", str(named))
    assert found["address"].endswith(":4321")
    found = json.loads(shell("status", "--json", NERVE_CONFIG_DIR=str(named)).stdout)
    assert (found["config_source"], found["config_dir"]) == ("env", str(named))


def test_the_address_is_a_url_for_ipv6_and_tls_too(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "config.yaml").write_text('gateway: {host: "::1", ssl: {cert: /c.pem, key: /k.pem}}\n')
    assert json.loads(shell("status", "--json").stdout)["address"] == "https://[::1]:8900"


def test_external_mode_has_nothing_to_claim_and_no_accounts(shell: Shell) -> None:
    gateway = {"NERVE_AUTH_MODE": "external", "NERVE_EXTERNAL_ACTOR_SECRET": "s" * 32}
    found = json.loads(shell("status", "--json", **gateway).stdout)
    assert found["login"] == "username_password"
    assert "setup_token" not in found
    done = shell("account", "list", **gateway)
    assert done.exit_code == 1
    assert "gateway" in done.stderr


def test_accounts_of_a_home_that_was_never_started(shell: Shell) -> None:
    done = shell("account", "list")
    assert done.exit_code == 1
    assert "nerve start" in done.stderr
    assert not shell.home.exists()


def test_a_database_that_is_none_is_told_about(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "nerve.db").write_bytes(b"no database at all" * 100)
    done = shell("status", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["login"] is None
    assert "damaged" in found["note"]
    assert shell("account", "list").exit_code == 1


def test_logs_of_a_daemon_that_never_ran(shell: Shell) -> None:
    done = shell("logs")
    assert done.exit_code == 0
    assert done.stdout == f"{shell.home / 'nerve.log'}\n"
    assert "no log yet" in done.stderr


def test_logs_show_the_last_fifty_lines(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "nerve.log").write_text("".join(f"line {n}\n" for n in range(20_000)))
    lines = shell("logs").stdout.splitlines()
    assert lines[1:] == [f"line {n}" for n in range(19_950, 20_000)]


def test_every_command_has_a_sentence() -> None:
    def walk(command: click.Command) -> None:
        assert command.help
        if isinstance(command, click.Group):
            for child in command.commands.values():
                walk(child)

    walk(cli)
