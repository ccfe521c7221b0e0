"""``load``: files and environment in, one frozen configuration out.  Reads; writes nothing, keeps nothing."""

import os
from collections.abc import Mapping
from pathlib import Path

import attrs
from attrs import field, frozen

from nerve.config import disk
from nerve.config.binding import Binder
from nerve.config.checks import check, check_lockdown
from nerve.config.coerce import PathRules
from nerve.config.config import Config, Keys, Paths
from nerve.config.defaults import DEFAULT_TIMEZONE, Circumstances, circumstantial_defaults
from nerve.config.environment import Environment, Variables, read_environment
from nerve.config.findings import ConfigError, Finding, Findings, Kind
from nerve.config.interpolate import Interpolation
from nerve.config.layers import Layer, Stack, read_stack
from nerve.config.locate import Place, locate
from nerve.config.merge import Tree, merge


@frozen
class Loaded:
    """``layers`` are those that counted, lowest first, as written: references stand in them uninterpolated."""

    config: Config
    findings: tuple[Finding, ...]
    layers: tuple[Layer, ...] = field(repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line each; none holds a value."""
        return tuple(str(finding) for finding in self.findings)


def load(flag_dir: Path | None, environ: Mapping[str, str], user_home: Path) -> Loaded:
    """Read the configuration (config.md sections 1 to 3 and 6).  Blocks on small local files.

    ``flag_dir`` is ``-c/--config-dir``.  Raises ConfigError when the configuration can't be used.
    """
    findings = Findings()
    variables = Variables(environ, user_home, findings)
    place = locate(flag_dir, variables)
    stack = read_stack(place, variables)
    tree = _with_environment(_interpolated(stack, environ), variables)
    environment = read_environment(variables, _codex_api_key_env(tree))
    paths = Paths(
        home=place.home, config_dir=place.config_dir, config_dir_source=place.source, workspace=stack.workspace
    )
    circumstances = _circumstances(place, stack, environment, findings)
    config = _bind(tree, circumstances, paths, environment, Binding(findings, PathRules(user_home, environ)))
    config = check(config, findings, circumstances)
    if config.lockdown:
        check_lockdown(config, findings)
    return Loaded(config, findings.all(), stack.layers)


def load_from_process(flag_dir: Path | None) -> Loaded:
    """``load`` for the running process: its environment, its user.  Raises ConfigError."""
    return load(flag_dir, os.environ, _user_home())


def _user_home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise ConfigError("the home directory of this user is not known; set HOME") from None


def locate_from_process(flag_dir: Path | None) -> Paths:
    """Where things are, for whoever has to know although the configuration is broken; the workspace is a guess then.

    Raises ConfigError when not even that can be told.
    """
    variables = Variables(os.environ, _user_home(), Findings())
    place = locate(flag_dir, variables)
    workspace = variables.path("NERVE_WORKSPACE") or variables.user_home / "nerve-workspace"
    return Paths(home=place.home, config_dir=place.config_dir, config_dir_source=place.source, workspace=workspace)


def default_config(home: Path, workspace: Path) -> Config:
    """What an instance without files and variables runs with; looks at nothing."""
    circumstances = Circumstances(home=home, workspace=workspace, cron_dir=workspace / "config" / "cron")
    paths = Paths(home=home, config_dir=home, config_dir_source="default", workspace=workspace)
    return _bind({}, circumstances, paths, Environment(), Binding(Findings(), PathRules(home, {})))


@frozen
class Binding:
    findings: Findings
    rules: PathRules


def _bind(tree: Tree, circumstances: Circumstances, paths: Paths, environment: Environment, binding: Binding) -> Config:
    defaults = circumstantial_defaults(circumstances)
    binder = Binder(binding.findings, binding.rules, paths.home, paths.workspace, defaults)
    keys = binder.section(Keys, _without_reserved(tree, binding.findings), "")
    return Config(
        **{a.name: getattr(keys, a.name) for a in attrs.fields(Keys)},
        workspace=paths.workspace,
        lockdown=circumstances.locked,
        paths=paths,
        environment=environment,
    )


def _interpolated(stack: Stack, environ: Mapping[str, str]) -> dict[str, object]:
    """The merged tree with every reference replaced, without the two keys that are decided already."""
    interpolation = Interpolation(environ)
    merged = stack.merged()
    tree = {key: interpolation.apply(value, key) for key, value in merged.items()}
    interpolation.require()
    tree.pop("workspace", None)
    tree.pop("lockdown", None)
    return tree


def _with_environment(tree: Tree, variables: Variables) -> Tree:
    """Variables that stand for a key win over every file; their values are not scanned for references."""
    auth: dict[str, object] = {}
    if mode := variables.text("NERVE_AUTH_MODE").strip():
        if mode not in ("local", "external"):
            raise ConfigError("NERVE_AUTH_MODE: expected local or external")
        auth["mode"] = mode
    if secret := variables.text("NERVE_EXTERNAL_ACTOR_SECRET"):
        auth["external"] = {"secret": secret}
    return merge(tree, {"auth": auth}) if auth else tree


def _without_reserved(tree: Tree, findings: Findings) -> Tree:
    servers = tree.get("mcp_servers")
    if isinstance(servers, Mapping) and "nerve" in servers:
        findings.add(Kind.UNUSABLE, "mcp_servers.nerve", "the name is reserved; the entry is skipped")
        return {**tree, "mcp_servers": {name: entry for name, entry in servers.items() if name != "nerve"}}
    return tree


def _codex_api_key_env(tree: Tree) -> str:
    codex = tree.get("codex")
    name = codex.get("api_key_env") if isinstance(codex, Mapping) else None
    return name.strip() if isinstance(name, str) and name.strip() else "OPENAI_API_KEY"


def _circumstances(place: Place, stack: Stack, environment: Environment, findings: Findings) -> Circumstances:
    timezone = environment.timezone or DEFAULT_TIMEZONE
    if not disk.knows_zone(timezone):
        findings.add(Kind.UNUSABLE, "NERVE_TIMEZONE", "expected an IANA time zone; ignored")
        timezone = DEFAULT_TIMEZONE
    return Circumstances(
        home=place.home,
        workspace=stack.workspace,
        cron_dir=_cron_dir(place, stack),
        locked=stack.locked,
        docker=environment.docker,
        mode=disk.workspace_mode(stack.workspace),
        timezone=timezone,
    )


def _cron_dir(place: Place, stack: Stack) -> Path:
    """The legacy directory counts only while the workspace has no job file, and never under lockdown."""
    current, legacy = stack.workspace / "config" / "cron", place.home / "cron"
    if stack.locked or _holds_jobs(current) or not _holds_jobs(legacy):
        return current
    return legacy


def _holds_jobs(directory: Path) -> bool:
    return any(disk.is_there(directory / name) for name in ("jobs.yaml", "system.yaml"))
