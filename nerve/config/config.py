"""The configuration as one frozen value: what the keys of config.md section 2 came to, and where things are."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from attrs import field, frozen

from nerve.config.environment import Environment
from nerve.config.kinds import FREE, Clock, Name
from nerve.config.secret import Secret
from nerve.config.sections.agents import Agent, Codex, Ollama, Provider, Proxy
from nerve.config.sections.channels import Notifications, Slack, Telegram
from nerve.config.sections.server import (
    Auth,
    Backup,
    Docker,
    Gateway,
    HouseOfAgents,
    Langfuse,
    Retention,
    Scripted,
    Sessions,
    Setup,
    WorkspaceSync,
)
from nerve.config.sections.sources import Sync
from nerve.config.sections.work import (
    Cron,
    ExternalAgents,
    McpEndpoint,
    McpServer,
    Memory,
    Workflows,
    Xmemory,
)

BASE_FILE = "config.yaml"
OVERLAY_FILE = "config.local.yaml"

ConfigDirSource = Literal["flag", "env", "pointer", "home", "default"]


@frozen(kw_only=True)
class Keys:
    """Every key that a layer may carry, except ``workspace`` and ``lockdown``, which are decided before the rest."""

    timezone: Name
    deployment: Literal["server", "docker"] = "server"
    quiet_start: Clock
    quiet_end: Clock
    anthropic_api_key: Secret = field(factory=Secret)
    claude_oauth_token: Secret = field(factory=Secret)
    openai_api_key: Secret = field(factory=Secret)
    github_token: Secret = field(factory=Secret)
    brave_search_api_key: Secret = field(factory=Secret)
    setup: Setup = field(factory=Setup)
    gateway: Gateway = field(factory=Gateway)
    auth: Auth = field(factory=Auth)
    provider: Provider = field(factory=Provider)
    proxy: Proxy
    ollama: Ollama = field(factory=Ollama)
    agent: Agent = field(factory=Agent)
    codex: Codex
    scripted: Scripted = field(factory=Scripted)
    telegram: Telegram = field(factory=Telegram)
    slack: Slack = field(factory=Slack)
    notifications: Notifications = field(factory=Notifications)
    sessions: Sessions = field(factory=Sessions)
    retention: Retention = field(factory=Retention)
    backup: Backup = field(factory=Backup)
    workspace_sync: WorkspaceSync = field(factory=WorkspaceSync)
    sync: Sync = field(factory=Sync)
    memory: Memory = field(factory=Memory)
    xmemory: Xmemory = field(factory=Xmemory)
    cron: Cron
    workflows: Workflows
    mcp_servers: Annotated[Mapping[str, McpServer], FREE] = MappingProxyType({})
    mcp_endpoint: McpEndpoint = field(factory=McpEndpoint)
    external_agents: ExternalAgents = field(factory=ExternalAgents)
    docker: Docker = field(factory=Docker)
    langfuse: Langfuse = field(factory=Langfuse)
    houseofagents: HouseOfAgents = field(factory=HouseOfAgents)


@frozen(kw_only=True)
class Paths:
    """Where the state of this instance is (config.md section 4).  All absolute; none need exist."""

    home: Path
    config_dir: Path
    config_dir_source: ConfigDirSource
    workspace: Path

    @property
    def database(self) -> Path:
        return self.home / "nerve.db"

    @property
    def pid_file(self) -> Path:
        return self.home / "nerve.pid"

    @property
    def log_file(self) -> Path:
        return self.home / "nerve.log"

    @property
    def lock_file(self) -> Path:
        return self.home / "nerve.lock"

    @property
    def jwt_secret_file(self) -> Path:
        return self.home / "jwt_secret"

    @property
    def pointer_file(self) -> Path:
        return self.home / "config_dir"

    @property
    def layers(self) -> tuple[Path, Path]:
        """The two layers of this machine, the second of which holds its secrets."""
        return self.config_dir / BASE_FILE, self.config_dir / OVERLAY_FILE

    @property
    def plans_dir(self) -> Path:
        return self.home / "plans"


@frozen(kw_only=True)
class Config(Keys):
    """``lockdown`` on: only the tracked settings and the environment had a say (config.md section 6)."""

    workspace: Path
    lockdown: bool
    paths: Paths
    environment: Environment
