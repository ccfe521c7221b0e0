"""What the README says is done as written, and what it claims is so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nerve.config import load
from tests.live.instance import Instance

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS: dict[str, str] = dict(re.findall(r"```\w+\n# ([a-z ]+)\n(.*?)```", README, flags=re.DOTALL))


def shell(instance: Instance, *names: str, **env: str) -> str:
    """The blocks of these names, one after another in one shell, with the program on PATH."""
    path = f"{Path(sys.executable).parent}:{instance.env['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", "\n".join(BLOCKS[name] for name in names)],
        env={**instance.env, **env, "PATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_sign_in_chat_and_play_as_written(instance: Instance) -> None:
    instance.foreground()
    instance.claim(password="correct horse")
    given = {"NERVE": instance.address, "PASSWORD": "correct horse"}
    assert '"response":"I received your message: “Hello, who are you?”.' in shell(instance, "sign in", "chat", **given)
    assert '"response":"It is written."' in shell(instance, "sign in", "play", **given)
    assert (instance.workspace / "hello.txt").read_text() == "hi"


@pytest.mark.slow
def test_the_socket_program_as_written(instance: Instance) -> None:
    instance.foreground()
    instance.claim(password="correct horse")
    program = instance.root / "turn.py"
    program.write_text(BLOCKS["socket"])
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


@pytest.mark.slow
def test_claim_and_accounts_as_written(instance: Instance) -> None:
    instance.foreground()
    token = instance.status()["setup_token"]
    assert '{"token":"' in shell(instance, "claim", NERVE=instance.address, SETUP_TOKEN=token)
    shown = shell(instance, "accounts", NEW_PASSWORD="something new")
    assert "ada is disabled" in shown
    assert instance.login("ada", "something new").status_code in (200, 401)
    assert instance.login("owner", "choose a better one").status_code == 200


def test_the_configuration_shown_is_valid_and_mostly_what_stands_anyway(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(BLOCKS["config"])
    loaded = load(None, {"NERVE_HOME": str(tmp_path), "NERVE_WORKSPACE": str(tmp_path / "ws")}, tmp_path)
    assert loaded.warnings == ()
    plain = load(None, {"NERVE_HOME": str(tmp_path / "x"), "NERVE_WORKSPACE": str(tmp_path / "ws")}, tmp_path)
    assert loaded.config.gateway == plain.config.gateway
    assert loaded.config.sessions == plain.config.sessions


def test_every_file_that_the_readme_names_is_there() -> None:
    named = set(re.findall(r"`((?:\./|nerve/|spec/|tests/|requirements/|[A-Z]+\.md)[\w./]*)`", README))
    assert {"./try", "spec/", "nerve/app.py"} <= named
    missing = sorted(name for name in named if not (ROOT / name).exists())
    assert not missing


def test_every_make_target_that_the_readme_names_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make (\w+)`", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
