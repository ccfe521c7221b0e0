"""Sections about models and the runtimes that drive them (config.md 2.3 to 2.5)."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from attrs import field, frozen

from nerve.config.kinds import (
    FREE,
    STRICT,
    Between,
    Command,
    Count,
    Days,
    Minutes,
    Money,
    Name,
    Port,
    Positive,
    Seconds,
    SecondsFloored,
    Thinking,
)
from nerve.config.secret import Secret

Effort = Literal["low", "medium", "high", "xhigh", "max"]

# The sidecar wants some key; it listens on loopback and this one opens nothing else.
PROXY_PLACEHOLDER_KEY = "nerve-local-proxy"


@frozen(kw_only=True)
class Provider:
    type: Literal["anthropic", "bedrock"] = "anthropic"
    aws_region: str = ""
    aws_profile: str = ""
    aws_access_key_id: Secret = field(factory=Secret)
    aws_secret_access_key: Secret = field(factory=Secret)


@frozen(kw_only=True)
class Proxy:
    enabled: bool = False
    host: Name = "127.0.0.1"
    port: Port = 8317
    binary_path: Path
    auth_dir: Path
    api_key: Secret = field(factory=lambda: Secret(PROXY_PLACEHOLDER_KEY))
    log_file: Path


@frozen(kw_only=True)
class Ollama:
    enabled: bool = False
    host: Name = "127.0.0.1"
    port: Port = 11_434


@frozen(kw_only=True)
class PromptRewrite:
    enabled: bool = True
    model: str = ""
    max_tokens: Positive = 1024
    timeout_seconds: SecondsFloored = 45


@frozen(kw_only=True)
class Subagents:
    transcript_item_max_bytes: Positive = 16_384
    quiet_after_minutes: Minutes = 10
    ended_retention_days: Days = 30


@frozen(kw_only=True)
class Agent:
    backend: Literal["claude", "codex", "scripted"] = "claude"
    cron_backend: Literal["", "claude", "codex", "scripted"] = ""
    model: Name = "claude-opus-5-5"
    cron_model: Name = "claude-opus-5-5"
    title_model: Name = "claude-haiku-5-5"
    model_aliases: Annotated[Mapping[str, str], FREE] = MappingProxyType({})
    models: tuple[str, ...] = ()
    model_discovery: bool = True
    max_turns: Positive = 100
    max_concurrent: Positive = 32
    thinking: Thinking = "max"
    effort: Effort = "xhigh"
    cron_effort: Effort = "medium"
    context_1m: bool = True
    context_1m_excluded_models: tuple[str, ...] = ()
    cache_ttl: Literal["5m", "1h", "auto"] = "5m"
    cache_ttl_excluded_models: tuple[str, ...] = ()
    cli_idle_timeout_seconds: SecondsFloored = 900
    background_agent_permissions: bool = True
    agent_teams: bool = True
    prompt_rewrite: PromptRewrite = field(factory=PromptRewrite)
    subagents: Subagents = field(factory=Subagents)


@frozen(kw_only=True)
class Price:
    """US dollars per million tokens."""

    input: Money
    cached_input: Money = 0.0
    output: Money


CODEX_PRICING: Mapping[str, Price] = MappingProxyType(
    {
        "gpt-5.6-sol": Price(input=5.0, cached_input=0.5, output=30.0),
        "gpt-5.6-terra": Price(input=2.5, cached_input=0.25, output=15.0),
        "gpt-5.6-luna": Price(input=1.0, cached_input=0.1, output=6.0),
    }
)


@frozen(kw_only=True)
class Ultracode:
    enabled: bool = False
    auto_install: bool = False
    repository: str = ""
    revision: str = ""
    version: str = ""
    dashboard: bool = False
    ui: bool = False
    default_transport: Literal["exec", "app-server"] = "exec"
    max_concurrency: Annotated[int, Between(1, 16)] = 2
    default_token_budget: Count = 250_000
    max_agents: Annotated[int, Between(1, 1000)] = 8


@frozen(kw_only=True)
class Codex:
    bin_path: Command = "codex"
    min_version: str = "0.163.0"
    max_version: str = ""
    home_dir: Path
    model: Name = "gpt-5.6-sol"
    cron_model: str = ""
    auth: Literal["chatgpt", "api_key"] = "chatgpt"
    api_key: Secret = field(factory=Secret)
    api_key_env: Name = "OPENAI_API_KEY"
    sandbox: Annotated[Literal["read-only", "workspace-write", "danger-full-access"], STRICT] = "danger-full-access"
    approval_policy: Annotated[Literal["never", "on-request", "untrusted"], STRICT] = "never"
    web_search: bool = True
    tool_timeout_sec: SecondsFloored = 3600
    turn_idle_timeout_seconds: Seconds = 0
    effort_map: Annotated[Mapping[str, str], FREE] = MappingProxyType({"max": "ultra"})
    pricing: Annotated[Mapping[str, Price], FREE] = CODEX_PRICING
    extra_config: Annotated[Mapping[str, Any], FREE] = field(default=MappingProxyType({}), repr=False)
    ultracode: Ultracode = field(factory=Ultracode)
