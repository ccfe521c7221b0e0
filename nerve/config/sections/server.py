"""Sections about the server itself: listening, signing in, sessions, housekeeping (config.md 1.5, 2.2, 2.8, 2.9)."""

from pathlib import Path
from typing import Annotated, Literal

from attrs import field, frozen

from nerve.config.kinds import (
    STRICT,
    BindPort,
    Count,
    Days,
    DaysFloored,
    HostName,
    Hours,
    HoursFloored,
    Minutes,
    MinutesFloored,
    Name,
    Network,
    Origin,
    Positive,
)
from nerve.config.secret import Secret


@frozen(kw_only=True)
class Ssl:
    """TLS is on only when both are set."""

    cert: Annotated[Path | None, STRICT] = None
    key: Annotated[Path | None, STRICT] = None


@frozen(kw_only=True)
class Gateway:
    host: Name = "127.0.0.1"
    port: BindPort = 8900
    ssl: Ssl = field(factory=Ssl)
    allowed_hosts: tuple[HostName, ...] = ()
    allowed_origins: tuple[Origin, ...] = ()
    trusted_proxies: tuple[Network, ...] = ()
    max_body_bytes: Positive = 10 * 1024 * 1024
    allow_passwordless_remote: bool = False
    max_connections: Positive = 4096
    max_connections_per_peer: Positive = 256


@frozen(kw_only=True)
class ExternalAuth:
    secret: Secret = field(factory=Secret)


@frozen(kw_only=True)
class Auth:
    mode: Annotated[Literal["local", "external"], STRICT] = "local"
    jwt_secret: Secret = field(factory=Secret)
    password_hash: Secret = field(factory=Secret)
    jwt_expiry_hours: HoursFloored = 720
    external: ExternalAuth = field(factory=ExternalAuth)


@frozen(kw_only=True)
class Sessions:
    archive_after_days: Days = 30
    interactive_archive_after_hours: Hours = 0
    max_sessions: Positive = 500
    cron_session_mode: Literal["per_run", "reuse"] = "per_run"
    memorize_interval_minutes: MinutesFloored = 30
    sticky_period_minutes: Minutes = 120
    client_idle_timeout_minutes: Minutes = 60
    star_project_hook: bool = False
    sidebar_page_size: Count = 50
    event_log_frames: Positive = 10_000
    event_log_hours: HoursFloored = 24
    queue_max: Positive = 50


@frozen(kw_only=True)
class Retention:
    enabled: bool = False
    retention_days: DaysFloored = 90
    retention_full_days: DaysFloored = 30
    interval_hours: HoursFloored = 24


@frozen(kw_only=True)
class Backup:
    enabled: bool = False
    target_dir: Path | None = None
    interval_hours: HoursFloored = 24
    retention_count: Positive = 7
    include_workspace: bool = True
    workspace_excludes: tuple[str, ...] = ()
    notify_on_failure: bool = True
    notify_on_success: bool = False


@frozen(kw_only=True)
class WorkspaceSync:
    enabled: bool = False
    branch: str = ""
    interval_minutes: MinutesFloored = 1
    validate: bool = True
    strict_env: bool = True


@frozen(kw_only=True)
class Scripted:
    allow_run: bool = False


@frozen(kw_only=True)
class Setup:
    local_secrets: bool = True


@frozen(kw_only=True)
class Docker:
    extra_mounts: tuple[str, ...] = ()


@frozen(kw_only=True)
class Langfuse:
    """Tracing is on only with both keys."""

    public_key: str = ""
    secret_key: Secret = field(factory=Secret)
    host: str = ""
    redact_patterns: tuple[str, ...] = ()


@frozen(kw_only=True)
class HouseOfAgents:
    enabled: bool = False
