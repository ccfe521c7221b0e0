"""Defaults that depend on where and how this instance runs, by dotted key.  All others stand in the section classes."""

from pathlib import Path

from attrs import frozen

from nerve.config.disk import Mode

DEFAULT_TIMEZONE = "America/New_York"
QUIET_HOURS = ("02:00", "08:00")


@frozen(kw_only=True)
class Circumstances:
    """``mode`` is None before the workspace has one; ``cron_dir`` is the workspace's or the home's legacy one."""

    home: Path
    workspace: Path
    cron_dir: Path
    locked: bool = False
    docker: bool = False
    mode: Mode | None = None
    timezone: str = DEFAULT_TIMEZONE


def circumstantial_defaults(now: Circumstances) -> dict[str, object]:
    quiet_start, quiet_end = ("", "") if now.mode == "worker" else QUIET_HOURS
    return {
        "timezone": now.timezone,
        "quiet_start": quiet_start,
        "quiet_end": quiet_end,
        "gateway.host": "0.0.0.0" if now.docker else "127.0.0.1",
        "telegram.enabled": not now.locked,
        "proxy.binary_path": now.home / "bin" / "cli-proxy-api",
        "proxy.auth_dir": now.home / "cli-proxy-auth",
        "proxy.log_file": now.home / "proxy.log",
        "codex.home_dir": now.home / "codex",
        "workflows.runs_dir": now.home / "workflow-runs",
        "cron.jobs_file": now.cron_dir / "jobs.yaml",
        "cron.system_file": now.cron_dir / "system.yaml",
        "cron.gate_plugins_dir": now.cron_dir / "gates",
    }
