"""Rules that look at more than one key, applied to the bound configuration."""

import attrs

from nerve.config import disk
from nerve.config.config import Config
from nerve.config.defaults import Circumstances
from nerve.config.findings import ConfigError, Findings, Kind
from nerve.config.layers import refuse_outside

# HS256 (RFC 7518 3.2) wants a key at least as long as its hash.
SIGNING_SECRET_MIN_BYTES = 32
SIGNING_SECRET_LEAST_BYTES = 16


def check(config: Config, findings: Findings, circumstances: Circumstances) -> Config:
    """Return ``config`` with what can't stand replaced; raise ConfigError on what must not start."""
    if config.auth.mode == "external" and not config.auth.external.secret:
        raise ConfigError(
            "auth.external.secret: external mode needs it, here or in the variable NERVE_EXTERNAL_ACTOR_SECRET"
        )
    for key, secret in (
        ("auth.jwt_secret", config.auth.jwt_secret),
        ("auth.external.secret", config.auth.external.secret),
    ):
        length = len(secret.reveal().encode())
        if secret and length < SIGNING_SECRET_LEAST_BYTES:
            raise ConfigError(f"{key}: shorter than {SIGNING_SECRET_LEAST_BYTES} bytes; whoever guesses it is anybody")
        if secret and length < SIGNING_SECRET_MIN_BYTES:
            findings.add(Kind.DOUBTFUL, key, f"shorter than {SIGNING_SECRET_MIN_BYTES} bytes: easy to guess")
    if (config.gateway.ssl.cert is None) != (config.gateway.ssl.key is None):
        findings.add(Kind.DOUBTFUL, "gateway.ssl", "TLS stays off: it needs both cert and key")
    _check_home(config, findings)
    return _with_zone(_with_quiet_hours(config, findings), findings, circumstances)


def check_lockdown(config: Config, findings: Findings) -> None:
    """Config.md section 6: what is read under lockdown is what was reviewed."""
    workspace = config.workspace
    refuse_outside(workspace / "config" / "settings.yaml", workspace)
    for path in (config.cron.jobs_file, config.cron.system_file, config.cron.gate_plugins_dir):
        refuse_outside(path, workspace)
    if (link := disk.link_out_of(workspace / "config", disk.resolved(workspace))) is not None:
        raise ConfigError(f"lockdown: the link {link} leads out of the workspace")
    if not disk.has_git_remote(workspace):
        findings.add(Kind.DOUBTFUL, "lockdown", "the workspace is not a git repository with a remote")


def _check_home(config: Config, findings: Findings) -> None:
    if disk.resolves_inside(config.paths.home, disk.resolved(config.workspace)):
        findings.add(
            Kind.DOUBTFUL, "NERVE_HOME", "lies inside the workspace: agents that work there can read its secrets"
        )


def _with_quiet_hours(config: Config, findings: Findings) -> Config:
    if bool(config.quiet_start) == bool(config.quiet_end):
        return config
    findings.add(Kind.UNUSABLE, "quiet_start, quiet_end", "only one of them is set; quiet hours are off")
    return attrs.evolve(config, quiet_start="", quiet_end="")


def _with_zone(config: Config, findings: Findings, circumstances: Circumstances) -> Config:
    if config.timezone == circumstances.timezone or disk.knows_zone(config.timezone):
        return config
    findings.add(Kind.UNUSABLE, "timezone", "expected an IANA time zone; the default is used")
    return attrs.evolve(config, timezone=circumstances.timezone)
