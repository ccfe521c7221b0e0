"""What the options before the command say, and how a command fails: one line on stderr, exit code 1."""

from pathlib import Path
from typing import IO, Any

import click
from attrs import define, field

from nerve.config import ConfigError, Loaded, load_from_process


class Failed(click.ClickException):
    """An ordinary failure: exit code 1 and one line.  (Usage errors are click's own: exit code 2.)"""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"nerve: {self.format_message()}", file=file, err=file is None)


@define
class Invocation:
    """``flag_dir`` is ``-c/--config-dir``."""

    flag_dir: Path | None = None
    verbose: bool = False
    _loaded: Loaded | None = field(default=None, init=False, repr=False)

    def loaded(self) -> Loaded:
        """The configuration, read once.  Raises Failed with the reason when it can't be used."""
        if self._loaded is None:
            try:
                self._loaded = load_from_process(self.flag_dir)
            except ConfigError as error:
                raise Failed(str(error)) from None
        return self._loaded
