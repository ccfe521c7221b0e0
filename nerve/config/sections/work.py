"""Sections about what agents remember and do by themselves, and whom they work with (config.md 2.11 to 2.15)."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from attrs import field, frozen

from nerve.config.kinds import (
    FREE,
    IN_WORKSPACE,
    STRICT,
    Between,
    Count,
    Fraction,
    Label,
    Marker,
    MinutesFloored,
    Money,
    Name,
    Positive,
    Seconds,
    SecondsFloored,
    SecretLabel,
)
from nerve.config.secret import Secret


@frozen(kw_only=True)
class Category:
    name: Name
    description: str = ""


@frozen(kw_only=True)
class Memory:
    recall_model: Name = "claude-sonnet-4-6"
    memorize_model: Name = "claude-sonnet-4-6"
    fast_model: Name = "claude-haiku-4-5-20251001"
    embed_model: str = ""
    semantic_dedup_threshold: Fraction = 0.85
    knowledge_filter: bool = False
    categories: Annotated[tuple[Category, ...], FREE] = ()


@frozen(kw_only=True)
class Xmemory:
    """``timeout`` is in seconds."""

    api_key: Secret = field(factory=Secret)
    instance_id: str = ""
    api_url: str = ""
    extraction_logic: Literal["deep", "fast"] = "deep"
    read_mode: Literal["single-answer", "raw-tables", "xresponse"] = "single-answer"
    timeout: SecondsFloored = 60
    index_conversations: bool = False


@frozen(kw_only=True)
class Cron:
    """A path that can't be used refuses the start: another place's jobs must not run instead."""

    jobs_file: Annotated[Path, IN_WORKSPACE, STRICT]
    system_file: Annotated[Path, IN_WORKSPACE, STRICT]
    gate_plugins_dir: Annotated[Path, IN_WORKSPACE, STRICT]


@frozen(kw_only=True)
class Leg:
    """One side of a review loop; an empty model or effort leaves the choice to the engine."""

    engine: Name
    model: str = ""
    effort: Literal["", "low", "medium", "high", "xhigh", "max"] = ""


@frozen(kw_only=True)
class ReviewLoop:
    enabled: bool = True
    implementer: Leg = field(factory=lambda: Leg(engine="claude-workflow"))
    verifier: Leg = field(factory=lambda: Leg(engine="codex-ultracode"))
    max_iterations: Annotated[int, Between(1, 8)] = 3
    default_budget_usd: Money = 10.0
    min_leg_budget_usd: Money = 0.5
    verifier_reserve_fraction: Fraction = 0.15
    criteria_adoption: Annotated[Literal["no", "ask", "auto"], Marker.NO_TOO] = "no"
    max_new_criteria_per_iteration: Count = 3
    max_discovered_criteria: Count = 12
    discovery_grace_rounds: Count = 2
    auto_reissue_implementer: bool = False
    escalation_reproposals: Count = 2
    verifier_sandbox: Annotated[Literal["read-only", "workspace-write", "danger-full-access"], STRICT] = (
        "workspace-write"
    )
    reconcile_interval_seconds: Annotated[int, Between(60, 31_536_000)] = 600


@frozen(kw_only=True)
class Workflows:
    enabled: bool = True
    runs_dir: Path
    poll_interval_seconds: Annotated[int, Between(5, 31_536_000)] = 60
    warn_fraction: Fraction = 0.8
    kill_grace_seconds: Seconds = 30
    max_concurrent_runs: Positive = 2
    allow_unbudgeted: bool = False
    review_loop: ReviewLoop = field(factory=ReviewLoop)


@frozen(kw_only=True)
class McpServer:
    """One outgoing server.  Whatever may carry a credential is kept out of its repr."""

    type: Literal["stdio", "sse", "http"] = "stdio"
    enabled: bool = True
    command: str = ""
    args: tuple[Label, ...] = field(default=(), repr=False)
    env: Mapping[str, SecretLabel] = MappingProxyType({})
    url: str = field(default="", repr=False)
    headers: Mapping[str, SecretLabel] = MappingProxyType({})

    def problem(self) -> str | None:
        """What makes the entry invalid, or None."""
        if self.type == "stdio":
            return None if self.command.strip() else "a command"
        return None if self.url.strip() else "a url"


@frozen(kw_only=True)
class McpEndpoint:
    enabled: bool = False
    path: Name = "/mcp/v1"
    include_hoa: bool = False


@frozen(kw_only=True)
class AgentTarget:
    name: Literal["codex", "claude-code"]
    enabled: bool = True


@frozen(kw_only=True)
class ExternalAgents:
    enabled: bool = True
    sync_interval_minutes: MinutesFloored = 15
    conflict_policy: Literal["backup", "skip", "merge"] = "backup"
    targets: Annotated[tuple[AgentTarget, ...], FREE] = ()
