"""``deployment: docker``: outside the container, commands about the daemon are Docker Compose's (cli.md section 1)."""

import subprocess

import click

from nerve.cli.invocation import Failed
from nerve.config import Config

FILE = "docker-compose.yml"


def in_compose(config: Config) -> bool:
    """Whether the daemon of this configuration lives in a container, and we do not."""
    return config.deployment == "docker" and not config.environment.docker


def forward(config: Config, *words: str) -> None:
    """Run ``docker compose`` on the generated file and exit as it does.  Raises Failed where there is none."""
    file = config.paths.config_dir / FILE
    if not file.is_file():
        raise Failed(f"deployment is docker, but {file} is not there")
    try:
        done = subprocess.run(["docker", "compose", "-f", str(file), *words], check=False)
    except FileNotFoundError:
        raise Failed("deployment is docker, but the program docker is not on PATH") from None
    except OSError as error:
        raise Failed(f"docker can't be run: {error.strerror}") from None
    click.get_current_context().exit(done.returncode)
