"""Every key of config.md section 2 exists, with the default that stands there, and takes what a file says."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from config_house import House

from nerve.config import Config, Environment, Paths, Secret, default_config
from nerve.config.sections.agents import Price

HOME, WORKSPACE = Path("/somewhere/state"), Path("/somewhere/work")
UNSET_SECRET = Secret()


def source(enabled: bool, schedule: str, batch_size: int) -> dict[str, object]:
    runner = {"processor": "agent", "prompt_hint": "", "model": "", "condense": False, "condense_prompt": ""}
    return {"enabled": enabled, "schedule": schedule, "batch_size": batch_size, **runner}


def below(prefix: str, keys: Mapping[str, object]) -> dict[str, object]:
    return {f"{prefix}.{key}": value for key, value in keys.items()}


QUARTER = "*/15 * * * *"
FILTERS = {f"sync.github.{key}": () for key in ("allow_repos", "deny_repos", "allow_actors", "deny_actors")}
FILTERS |= {f"sync.github.{key}": () for key in ("allow_reasons", "deny_reasons", "deny_ci_branches")}

TABLE: dict[str, object] = {
    # 2.1
    "workspace": WORKSPACE,
    "timezone": "America/New_York",
    "lockdown": False,
    "deployment": "server",
    "quiet_start": "02:00",
    "quiet_end": "08:00",
    "anthropic_api_key": UNSET_SECRET,
    "claude_oauth_token": UNSET_SECRET,
    "openai_api_key": UNSET_SECRET,
    "github_token": UNSET_SECRET,
    "brave_search_api_key": UNSET_SECRET,
    "setup.local_secrets": True,
    # 1.5
    "gateway.allowed_hosts": (),
    "gateway.allowed_origins": (),
    "gateway.trusted_proxies": (),
    "gateway.max_body_bytes": 10 * 1024 * 1024,
    "gateway.allow_passwordless_remote": False,
    "scripted.allow_run": False,
    "gateway.max_connections": 4096,
    "gateway.max_connections_per_peer": 256,
    "sessions.event_log_frames": 10000,
    "sessions.event_log_hours": 24,
    "sessions.queue_max": 50,
    # 2.2
    "gateway.host": "127.0.0.1",
    "gateway.port": 8900,
    "gateway.ssl.cert": None,
    "gateway.ssl.key": None,
    # 2.3
    "provider.type": "anthropic",
    "provider.aws_region": "",
    "provider.aws_profile": "",
    "provider.aws_access_key_id": UNSET_SECRET,
    "provider.aws_secret_access_key": UNSET_SECRET,
    "proxy.enabled": False,
    "proxy.host": "127.0.0.1",
    "proxy.port": 8317,
    "proxy.binary_path": HOME / "bin" / "cli-proxy-api",
    "proxy.auth_dir": HOME / "cli-proxy-auth",
    "proxy.api_key": Secret("nerve-local-proxy"),
    "proxy.log_file": HOME / "proxy.log",
    "ollama.enabled": False,
    "ollama.host": "127.0.0.1",
    "ollama.port": 11434,
    # 2.4
    "agent.backend": "claude",
    "agent.cron_backend": "",
    "agent.model": "claude-opus-5-5",
    "agent.cron_model": "claude-opus-5-5",
    "agent.title_model": "claude-haiku-5-5",
    "agent.model_aliases": {},
    "agent.models": (),
    "agent.model_discovery": True,
    "agent.max_turns": 100,
    "agent.max_concurrent": 32,
    "agent.thinking": "max",
    "agent.effort": "xhigh",
    "agent.cron_effort": "medium",
    "agent.context_1m": True,
    "agent.context_1m_excluded_models": (),
    "agent.cache_ttl": "5m",
    "agent.cache_ttl_excluded_models": (),
    "agent.cli_idle_timeout_seconds": 900,
    "agent.background_agent_permissions": True,
    "agent.agent_teams": True,
    "agent.prompt_rewrite.enabled": True,
    "agent.prompt_rewrite.model": "",
    "agent.prompt_rewrite.max_tokens": 1024,
    "agent.prompt_rewrite.timeout_seconds": 45,
    "agent.subagents.transcript_item_max_bytes": 16384,
    "agent.subagents.quiet_after_minutes": 10,
    "agent.subagents.ended_retention_days": 30,
    # 2.5
    "codex.bin_path": "codex",
    "codex.min_version": "0.163.0",
    "codex.max_version": "",
    "codex.home_dir": HOME / "codex",
    "codex.model": "gpt-5.6-sol",
    "codex.cron_model": "",
    "codex.auth": "chatgpt",
    "codex.api_key": UNSET_SECRET,
    "codex.api_key_env": "OPENAI_API_KEY",
    "codex.sandbox": "danger-full-access",
    "codex.approval_policy": "never",
    "codex.web_search": True,
    "codex.tool_timeout_sec": 3600,
    "codex.turn_idle_timeout_seconds": 0,
    "codex.effort_map": {"max": "ultra"},
    "codex.pricing": {
        "gpt-5.6-sol": Price(input=5, cached_input=0.5, output=30),
        "gpt-5.6-terra": Price(input=2.5, cached_input=0.25, output=15),
        "gpt-5.6-luna": Price(input=1, cached_input=0.1, output=6),
    },
    "codex.extra_config": {},
    "codex.ultracode.enabled": False,
    "codex.ultracode.auto_install": False,
    "codex.ultracode.repository": "",
    "codex.ultracode.revision": "",
    "codex.ultracode.version": "",
    "codex.ultracode.dashboard": False,
    "codex.ultracode.ui": False,
    "codex.ultracode.default_transport": "exec",
    "codex.ultracode.max_concurrency": 2,
    "codex.ultracode.default_token_budget": 250000,
    "codex.ultracode.max_agents": 8,
    # 2.6
    "telegram.enabled": True,
    "telegram.bot_token": UNSET_SECRET,
    "telegram.allowed_users": (),
    "telegram.dm_policy": "pairing",
    "telegram.stream_mode": "partial",
    "slack.mode": "socket",
    "slack.enabled": False,
    "slack.bot_token": UNSET_SECRET,
    "slack.app_token": UNSET_SECRET,
    "slack.allow_users": (),
    "slack.allow_direct_messages": True,
    "slack.allow_channels": (),
    # 2.7
    "notifications.channels": ("web", "telegram"),
    "notifications.telegram_chat_id": None,
    "notifications.default_expiry_hours": 48,
    "notifications.max_redeliveries": 3,
    "notifications.priority_prefixes.high": "⚠️ ",
    "notifications.priority_prefixes.urgent": "🚨 ",
    "notifications.date_locale": "en",
    # 2.8
    "auth.mode": "local",
    "auth.jwt_secret": UNSET_SECRET,
    "auth.password_hash": UNSET_SECRET,
    "auth.jwt_expiry_hours": 720,
    "auth.external.secret": UNSET_SECRET,
    # 2.9
    "sessions.archive_after_days": 30,
    "sessions.interactive_archive_after_hours": 0,
    "sessions.max_sessions": 500,
    "sessions.cron_session_mode": "per_run",
    "sessions.memorize_interval_minutes": 30,
    "sessions.sticky_period_minutes": 120,
    "sessions.client_idle_timeout_minutes": 60,
    "sessions.star_project_hook": False,
    "sessions.sidebar_page_size": 50,
    "retention.enabled": False,
    "retention.retention_days": 90,
    "retention.retention_full_days": 30,
    "retention.interval_hours": 24,
    "backup.enabled": False,
    "backup.target_dir": None,
    "backup.interval_hours": 24,
    "backup.retention_count": 7,
    "backup.include_workspace": True,
    "backup.workspace_excludes": (),
    "backup.notify_on_failure": True,
    "backup.notify_on_success": False,
    "workspace_sync.enabled": False,
    "workspace_sync.branch": "",
    "workspace_sync.interval_minutes": 1,
    "workspace_sync.validate": True,
    "workspace_sync.strict_env": True,
    # 2.10
    "sync.message_ttl_days": 7,
    "sync.consumer_cursor_ttl_days": 2,
    **below("sync.github", source(True, QUARTER, 30)),
    "sync.github.mode": "",
    **FILTERS,
    **below("sync.github_events", source(False, QUARTER, 50)),
    "sync.github_events.repos": (),
    "sync.github_events.username": "",
    **below("sync.github_repos", source(False, QUARTER, 50)),
    "sync.github_repos.repos": (),
    **below("sync.gmail", source(True, QUARTER, 20)),
    "sync.gmail.accounts": (),
    "sync.gmail.keyring_password": UNSET_SECRET,
    **below("sync.telegram", source(True, "*/5 * * * *", 50)),
    "sync.telegram.api_id": 0,
    "sync.telegram.api_hash": UNSET_SECRET,
    "sync.telegram.monitored_folders": (),
    "sync.telegram.exclude_chats": (),
    **below("sync.imap", source(False, "*/30 * * * *", 20)),
    "sync.imap.accounts": (),
    "sync.imap.passwords": {},
    "sync.imap.initial_lookback_days": 1,
    "sync.imap.match.sender_contains": (),
    "sync.imap.match.attachment_contains": (),
    "sync.imap.match.only_matched": False,
    "sync.imap.vision": {},
    **below("sync.codex", source(False, QUARTER, 50)),
    "sync.codex.workspace_filter.mode": "nerve_workspace",
    "sync.codex.origins": (),
    "sync.codex.store_encrypted_reasoning": True,
    # 2.11
    "memory.recall_model": "claude-sonnet-4-6",
    "memory.memorize_model": "claude-sonnet-4-6",
    "memory.fast_model": "claude-haiku-4-5-20251001",
    "memory.embed_model": "",
    "memory.semantic_dedup_threshold": 0.85,
    "memory.knowledge_filter": False,
    "memory.categories": (),
    "xmemory.api_key": UNSET_SECRET,
    "xmemory.instance_id": "",
    "xmemory.api_url": "",
    "xmemory.extraction_logic": "deep",
    "xmemory.read_mode": "single-answer",
    "xmemory.timeout": 60,
    "xmemory.index_conversations": False,
    # 2.12
    "cron.jobs_file": WORKSPACE / "config" / "cron" / "jobs.yaml",
    "cron.system_file": WORKSPACE / "config" / "cron" / "system.yaml",
    "cron.gate_plugins_dir": WORKSPACE / "config" / "cron" / "gates",
    # 2.13
    "workflows.enabled": True,
    "workflows.runs_dir": HOME / "workflow-runs",
    "workflows.poll_interval_seconds": 60,
    "workflows.warn_fraction": 0.8,
    "workflows.kill_grace_seconds": 30,
    "workflows.max_concurrent_runs": 2,
    "workflows.allow_unbudgeted": False,
    "workflows.review_loop.enabled": True,
    "workflows.review_loop.implementer.engine": "claude-workflow",
    "workflows.review_loop.implementer.model": "",
    "workflows.review_loop.implementer.effort": "",
    "workflows.review_loop.verifier.engine": "codex-ultracode",
    "workflows.review_loop.verifier.model": "",
    "workflows.review_loop.verifier.effort": "",
    "workflows.review_loop.max_iterations": 3,
    "workflows.review_loop.default_budget_usd": 10,
    "workflows.review_loop.min_leg_budget_usd": 0.5,
    "workflows.review_loop.verifier_reserve_fraction": 0.15,
    "workflows.review_loop.criteria_adoption": "no",
    "workflows.review_loop.max_new_criteria_per_iteration": 3,
    "workflows.review_loop.max_discovered_criteria": 12,
    "workflows.review_loop.discovery_grace_rounds": 2,
    "workflows.review_loop.auto_reissue_implementer": False,
    "workflows.review_loop.escalation_reproposals": 2,
    "workflows.review_loop.verifier_sandbox": "workspace-write",
    "workflows.review_loop.reconcile_interval_seconds": 600,
    # 2.14 to 2.16
    "mcp_servers": {},
    "mcp_endpoint.enabled": False,
    "mcp_endpoint.path": "/mcp/v1",
    "mcp_endpoint.include_hoa": False,
    "external_agents.enabled": True,
    "external_agents.sync_interval_minutes": 15,
    "external_agents.conflict_policy": "backup",
    "external_agents.targets": (),
    "docker.extra_mounts": (),
    "langfuse.public_key": "",
    "langfuse.secret_key": UNSET_SECRET,
    "langfuse.host": "",
    "langfuse.redact_patterns": (),
    "houseofagents.enabled": False,
}


def leaves(section: Any, path: str = "") -> Iterator[tuple[str, object]]:
    for attribute in attrs.fields(type(section)):
        value = getattr(section, attribute.name)
        key = f"{path}.{attribute.name}" if path else attribute.name
        if attrs.has(type(value)):
            yield from leaves(value, key)
        else:
            yield key, value


def keys_of(config: Config) -> dict[str, object]:
    return {key: value for key, value in leaves(config) if key.split(".")[0] not in ("paths", "environment")}


def test_every_key_has_its_default_and_there_is_no_other_key() -> None:
    assert keys_of(default_config(HOME, WORKSPACE)) == TABLE


def test_nothing_on_disk_gives_the_same_defaults_as_no_disk(house: House) -> None:
    loaded = house.load()
    assert loaded.warnings == ()
    assert keys_of(loaded.config) == keys_of(default_config(house.home, house.workspace))


def test_the_state_directory(house: House) -> None:
    paths = house.config().paths
    assert paths == Paths(
        home=house.home, config_dir=house.home, config_dir_source="default", workspace=house.workspace
    )
    names = [paths.database, paths.pid_file, paths.log_file, paths.lock_file, paths.jwt_secret_file]
    assert [p.name for p in names] == ["nerve.db", "nerve.pid", "nerve.log", "nerve.lock", "jwt_secret"]
    assert (paths.pointer_file, paths.plans_dir) == (house.home / "config_dir", house.home / "plans")


def unlike(key: str, default: object) -> tuple[str, object]:
    """YAML text that differs from the default, and what it comes to."""
    special: dict[str, tuple[str, object]] = {
        "timezone": ("Europe/Berlin", "Europe/Berlin"),
        "deployment": ("docker", "docker"),
        "quiet_start": ("01:30", "01:30"),
        "quiet_end": ("23:59", "23:59"),
        "provider.type": ("bedrock", "bedrock"),
        "agent.backend": ("scripted", "scripted"),
        "agent.cron_backend": ("codex", "codex"),
        "agent.thinking": ("16000", "16000"),
        "agent.effort": ("low", "low"),
        "agent.cron_effort": ("high", "high"),
        "agent.cache_ttl": ("auto", "auto"),
        "agent.model_aliases": ("{opus: x}", {"opus": "x"}),
        "codex.auth": ("api_key", "api_key"),
        "codex.sandbox": ("read-only", "read-only"),
        "codex.approval_policy": ("untrusted", "untrusted"),
        "codex.effort_map": ("{max: ~, high: top}", {"high": "top"}),
        "codex.extra_config": ("{a: [1, {b: c}]}", {"a": (1, {"b": "c"})}),
        "codex.ultracode.default_transport": ("app-server", "app-server"),
        "telegram.allowed_users": ("[7, '8,9']", (7, 8, 9)),
        "telegram.dm_policy": ("open", "open"),
        "telegram.stream_mode": ("full", "full"),
        "slack.mode": ("hosted", "hosted"),
        "notifications.telegram_chat_id": ("-100123", -100123),
        "notifications.date_locale": ("de", "de"),
        "sessions.cron_session_mode": ("reuse", "reuse"),
        "sync.github.mode": ("hosted", "hosted"),
        "sync.imap.vision": ("{on: 1}", {"on": 1}),
        "sync.imap.passwords": ("{work: hush}", {"work": Secret("hush")}),
        "sync.codex.workspace_filter.mode": ("any", "any"),
        "xmemory.extraction_logic": ("fast", "fast"),
        "xmemory.read_mode": ("raw-tables", "raw-tables"),
        "workflows.review_loop.implementer.effort": ("max", "max"),
        "workflows.review_loop.verifier.effort": ("max", "max"),
        "workflows.review_loop.criteria_adoption": ("ask", "ask"),
        "workflows.review_loop.verifier_sandbox": ("read-only", "read-only"),
        "external_agents.conflict_policy": ("merge", "merge"),
        "gateway.allowed_origins": ("https://a.example/", ("https://a.example",)),
        "gateway.trusted_proxies": ("10.0.0.1", ("10.0.0.1/32",)),
        "memory.semantic_dedup_threshold": ("0", 0.0),
        "workflows.warn_fraction": ("0.5", 0.5),
        "workflows.review_loop.verifier_reserve_fraction": ("0.25", 0.25),
        "workflows.review_loop.default_budget_usd": ("2.5", 2.5),
    }
    if key in special:
        return special[key]
    if key.endswith(("ssl.cert", "ssl.key", "target_dir")) or isinstance(default, Path):
        return "/elsewhere/x", Path("/elsewhere/x")
    match default:
        case bool():
            return str(not default).lower(), not default
        case int() | float():
            return str(default + 1), default + 1
        case Secret():
            return "'some secret of thirty-two bytes or more'", Secret("some secret of thirty-two bytes or more")
        case tuple():
            return "[one, two]", ("one", "two")
    return "changed", "changed"


# Structured entries, and what decides before the keys are bound: tested in the files beside this one.
ELSEWHERE = {
    "workspace",
    "lockdown",
    "auth.mode",
    "codex.pricing",
    "sync.imap.accounts",
    "sync.codex.origins",
    "memory.categories",
    "mcp_servers",
    "external_agents.targets",
}


@pytest.mark.parametrize("key", [key for key in TABLE if key not in ELSEWHERE])
def test_every_key_takes_what_a_file_says(house: House, key: str) -> None:
    text, expected = unlike(key, TABLE[key])
    lines = [f"{'  ' * depth}{part}:" for depth, part in enumerate(key.split("."))]
    house.settings("\n".join(lines) + f" {text}\n")
    loaded = house.load()
    before, after = keys_of(house.load(NERVE_WORKSPACE="/nowhere").config), keys_of(loaded.config)
    assert after[key] == expected
    assert after[key] != before[key]
    assert [w for w in loaded.warnings if not w.startswith("gateway.ssl:")] == []
    moved = {k for k in after if after[k] != before[k] and not k.startswith("cron.")} - {"workspace"}
    assert moved | {key} == {key}


def test_the_environment_section_is_empty_without_variables(house: House) -> None:
    assert house.config().environment == Environment()
