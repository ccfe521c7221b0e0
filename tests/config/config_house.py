"""A user's disk in a temporary directory, and the configuration that is read from it."""

from pathlib import Path

from attrs import frozen
from hypothesis import settings

from nerve.config import Config, Kind, Loaded, load

# Property tests judge results, not the speed of a shared machine.
unhurried = settings(deadline=None)


@frozen
class House:
    """``user_home`` holds everything; the home is ``.nerve`` below it and nothing exists until it is written."""

    user_home: Path

    @property
    def home(self) -> Path:
        return self.user_home / ".nerve"

    @property
    def workspace(self) -> Path:
        return self.user_home / "nerve-workspace"

    def write(self, path: Path, text: str, mode: int = 0o600) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def settings(self, text: str) -> Path:
        return self.write(self.workspace / "config" / "settings.yaml", text)

    def base(self, text: str, directory: Path | None = None) -> Path:
        return self.write((directory or self.home) / "config.yaml", text)

    def overlay(self, text: str, directory: Path | None = None, mode: int = 0o600) -> Path:
        return self.write((directory or self.home) / "config.local.yaml", text, mode)

    def load(self, flag: Path | None = None, /, **environ: str) -> Loaded:
        return load(flag, environ, self.user_home)

    def config(self, **environ: str) -> Config:
        return self.load(**environ).config


def kinds(loaded: Loaded) -> list[tuple[Kind, str]]:
    return [(finding.kind, finding.path) for finding in loaded.findings]
