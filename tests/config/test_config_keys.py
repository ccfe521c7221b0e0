"""Every key of config.md section 2 exists, with the default that stands there, and takes what a file says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from config_house import House
from config_table import HOME, TABLE, WORKSPACE

from nerve.config import Config, Environment, Paths, Secret, default_config


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
