"""What ``nerve status`` tells.  Reads files and the database itself, so it works while the daemon is down."""

import os
from pathlib import Path

import apsw
import trio
from attrs import frozen

from nerve import __version__
from nerve.cli.daemon import record_of, running_pid
from nerve.config import Config, ConfigError, Loaded, Paths, load_from_process
from nerve.config.load import locate_from_process
from nerve.contract.generated.entities import LoginState
from nerve.effects import Effects
from nerve.identity.directory import load as load_directory
from nerve.runtimes import backends_of
from nerve.store.failures import StoreUnusable
from nerve.store.inspection import NoDatabase, inspect
from nerve.store.instance import SETUP_TOKEN, fact


@frozen(kw_only=True)
class Login:
    """How people sign in.  ``setup_token`` is None once the instance is claimed, and before its first start."""

    state: LoginState | None
    setup_token: str | None = None
    note: str | None = None

    @property
    def unclaimed(self) -> bool:
        return self.state is LoginState.SETUP


@frozen(kw_only=True)
class Status:
    """``workspace`` and ``backend`` are None while the configuration can't be read; ``problem`` then says why."""

    pid: int | None
    address: str | None
    login: Login
    paths: Paths
    workspace: Path | None
    backend: str | None = None
    backend_reason: str | None = None
    problem: str | None = None

    def as_json(self) -> dict[str, object]:
        """The keys of ``nerve status --json``; ``setup_token`` only while unclaimed, notes only where there are any."""
        shown: dict[str, object] = {
            "running": self.pid is not None,
            "pid": self.pid,
            "address": self.address,
            "version": __version__,
            "login": None if self.login.state is None else self.login.state.value,
            "home": str(self.paths.home),
            "workspace": None if self.workspace is None else str(self.workspace),
            "config_dir": str(self.paths.config_dir),
            "config_source": self.paths.config_dir_source,
            "log": str(self.paths.log_file),
            "backend": self.backend,
            "backend_reason": self.backend_reason,
        }
        if self.login.unclaimed:
            shown["setup_token"] = self.login.setup_token
        if self.login.note is not None:
            shown["note"] = self.login.note
        if self.problem is not None:
            shown["problem"] = self.problem
        return shown

    def as_lines(self) -> list[str]:
        memory = "" if self.pid is None else resident(self.pid)
        lines = ["nerve is not running" if self.pid is None else f"nerve is running (pid {self.pid}{memory})"]
        rows: list[tuple[str, object]] = [
            ("address", self.address),
            ("version", __version__),
            ("login", None if self.login.state is None else self.login.state.value),
            ("setup token", self.login.setup_token),
            ("note", self.login.note),
            ("home", self.paths.home),
            ("workspace", self.workspace),
            ("config dir", f"{self.paths.config_dir} ({self.paths.config_dir_source})"),
            ("log", self.paths.log_file),
            ("agent", self.backend if self.backend_reason is None else f"{self.backend} ({self.backend_reason})"),
            ("problem", self.problem),
        ]
        return lines + [f"  {name + ':':<13}{value}" for name, value in rows if value is not None]


def status(flag_dir: Path | None) -> Status:
    """Raises ConfigError only if not even the home can be found."""
    try:
        return _with_configuration(load_from_process(flag_dir))
    except ConfigError as error:
        paths = locate_from_process(flag_dir)
        return _status(paths, configured_hash=None, problem=str(error))


def _with_configuration(loaded: Loaded) -> Status:
    config = loaded.config
    choice = trio.run(backends_of(config, Effects()).choose)
    return _status(
        config.paths,
        configured_hash=_configured_hash(config),
        external=config.auth.mode == "external",
        configured_address=url(config, config.gateway.host, config.gateway.port),
        workspace=config.workspace,
        backend=choice.backend,
        backend_reason=choice.reason,
    )


def _status(
    paths: Paths,
    *,
    configured_hash: str | None,
    external: bool = False,
    configured_address: str | None = None,
    workspace: Path | None = None,
    backend: str | None = None,
    backend_reason: str | None = None,
    problem: str | None = None,
) -> Status:
    pid = running_pid(paths)
    record = None if pid is None else record_of(paths, pid)
    return Status(
        pid=pid,
        address=configured_address if record is None else record.address,
        login=_login(paths, configured_hash, external=external),
        paths=paths,
        workspace=workspace,
        backend=backend,
        backend_reason=backend_reason,
        problem=problem,
    )


def _login(paths: Paths, configured_hash: str | None, *, external: bool) -> Login:
    if external:
        return Login(state=LoginState.USERNAME_PASSWORD, note="a gateway signs people in (auth.mode is external)")
    try:
        return inspect(paths.database, _read_login, configured_hash)
    except NoDatabase:
        return Login(state=LoginState.SETUP, note="the setup token is made at the first start: nerve start")
    except StoreUnusable as error:
        return Login(state=None, note=str(error))


def _read_login(db: apsw.Connection, configured_hash: str | None) -> Login:
    state = load_directory(db, configured_hash).login
    token = fact(db, SETUP_TOKEN) if state is LoginState.SETUP else None
    return Login(state=state, setup_token=token)


def _configured_hash(config: Config) -> str | None:
    return config.auth.password_hash.reveal() or None


def url(config: Config, host: str, port: int) -> str:
    tls = config.gateway.ssl.cert is not None and config.gateway.ssl.key is not None
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}"


def resident(pid: int) -> str:
    """`, 48 MB`: the resident memory of a process; empty where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return ""
    return f", {pages * os.sysconf('SC_PAGE_SIZE') / 1_000_000:.0f} MB"
