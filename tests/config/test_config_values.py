"""What each type of key accepts, and what happens to the rest (config.md 1, 1.2)."""

from pathlib import Path

import pytest
from config_house import House, kinds

from nerve.config import ConfigError, Kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [(w, True) for w in ("true", "1", "yes", "on", "y", "t", "YES", "On", "' true '", "'1'")]
    + [(w, False) for w in ("false", "0", "no", "off", "n", "f", "OFF", "''", "'0'", "'  '")],
)
def test_booleans(house: House, text: str, expected: bool) -> None:
    key = "backup.include_workspace" if not expected else "backup.enabled"
    section, name = key.split(".")
    house.settings(f"{section}: {{{name}: {text}}}\n")
    loaded = house.load()
    assert getattr(loaded.config.backup, name) is expected
    assert loaded.warnings == ()


@pytest.mark.parametrize("text", ["'yes'", "'${FLAG}'"])
def test_a_boolean_from_a_variable(house: House, text: str) -> None:
    house.settings(f"backup: {{enabled: {text}}}\n")
    assert house.config(FLAG="On").backup.enabled is True


@pytest.mark.parametrize("text", ["perhaps", "2", "-1", "1.0", "[true]", "{a: 1}", "2024-01-01"])
def test_an_unreadable_boolean_keeps_the_default_and_is_reported(house: House, text: str) -> None:
    house.settings(f"backup: {{include_workspace: {text}}}\n")
    loaded = house.load()
    assert loaded.config.backup.include_workspace is True
    assert loaded.warnings == ("backup.include_workspace: expected true or false; the default is used",)


@pytest.mark.parametrize(("text", "expected"), [("9000", 9000), ("'9000'", 9000), ("' 9000 '", 9000), ("+9000", 9000)])
def test_integers(house: House, text: str, expected: int) -> None:
    house.settings(f"gateway: {{port: {text}}}\n")
    assert house.load().warnings == ()
    assert house.config().gateway.port == expected


@pytest.mark.parametrize(
    "text", ["nine", "''", "true", "9000.0", "'9_000'", "'0x10'", "[1]", "'٣'", "70000", "-1", "1e3"]
)
def test_an_unusable_port_keeps_the_default(house: House, text: str) -> None:
    house.settings(f"gateway: {{port: {text}}}\n")
    loaded = house.load()
    assert loaded.config.gateway.port == 8900
    assert kinds(loaded) == [(Kind.UNUSABLE, "gateway.port")]


@pytest.mark.parametrize(
    ("text", "expected"), [("0.5", 0.5), ("'0.5'", 0.5), ("1", 1.0), ("'.25'", 0.25), ("5e-1", 0.5)]
)
def test_numbers(house: House, text: str, expected: float) -> None:
    house.settings(f"workflows: {{warn_fraction: {text}}}\n")
    loaded = house.load()
    assert (loaded.config.workflows.warn_fraction, loaded.warnings) == (expected, ())


@pytest.mark.parametrize("text", [".nan", ".inf", "'nan'", "'1e999'", "half", "true", "9" * 400])
def test_an_unusable_number_keeps_the_default(house: House, text: str) -> None:
    house.settings(f"workflows: {{warn_fraction: {text}}}\n")
    loaded = house.load()
    assert loaded.config.workflows.warn_fraction == 0.8
    assert kinds(loaded) == [(Kind.UNUSABLE, "workflows.warn_fraction")]


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("auth.jwt_expiry_hours", 0, 1),
        ("retention.retention_days", -5, 1),
        ("external_agents.sync_interval_minutes", 0, 1),
        ("workflows.poll_interval_seconds", 1, 5),
        ("workflows.review_loop.max_iterations", 9, 8),
        ("workflows.review_loop.reconcile_interval_seconds", 59, 60),
        ("codex.ultracode.max_concurrency", 17, 16),
        ("codex.ultracode.max_agents", 0, 1),
        ("memory.semantic_dedup_threshold", 1.5, 1.0),
        ("sessions.archive_after_days", 10**15, 36500),
        ("sessions.queue_max", 0, 1),
    ],
)
def test_stated_bounds_are_kept_by_the_nearest_one(house: House, key: str, given: float, expected: float) -> None:
    house.settings("\n".join(f"{'  ' * i}{part}:" for i, part in enumerate(key.split("."))) + f" {given}\n")
    loaded = house.load()
    value: object = loaded.config
    for part in key.split("."):
        value = getattr(value, part)
    assert value == expected
    assert kinds(loaded) == [(Kind.ADJUSTED, key)]


@pytest.mark.parametrize("text", ["5", "1.5", "true", "[x]", "{a: b}"])
def test_text_is_not_guessed_from_other_types(house: House, text: str) -> None:
    house.settings(f"github_token: {text}\n")
    loaded = house.load()
    assert not loaded.config.github_token
    assert kinds(loaded) == [(Kind.UNUSABLE, "github_token")]


def test_a_null_value_is_the_default(house: House) -> None:
    house.settings("gateway:\nagent: {model: ~, models: ~}\nmcp_servers:\n")
    loaded = house.load()
    assert loaded.warnings == ()
    assert (loaded.config.agent.model, loaded.config.agent.models) == ("claude-opus-5-5", ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("['${A}', b]", ("x,y", "b")),
        ("'${A}'", ("x,y",)),
        ("b", ("b",)),
        ("['', b, ~]", ("b",)),
        ("[]", ()),
    ],
)
def test_one_reference_is_one_element_of_a_list_of_texts(house: House, text: str, expected: tuple[str, ...]) -> None:
    house.settings(f"agent: {{models: {text}}}\n")
    loaded = house.load(A="x,y")
    assert (loaded.config.agent.models, loaded.warnings) == (expected, ())


@pytest.mark.parametrize(
    ("text", "expected", "bad"),
    [
        ("[1, 2]", (1, 2), []),
        ("'${IDS}'", (5, 6), []),
        ("['${IDS}', 7]", (5, 6, 7), []),
        ("7", (7,), []),
        ("''", (), []),
        ("[1, x, true, '2,y']", (1, 2), ["[1]", "[2]", "[3]"]),
    ],
)
def test_a_list_of_integers_is_split_on_commas(
    house: House, text: str, expected: tuple[int, ...], bad: list[str]
) -> None:
    house.settings(f"telegram: {{allowed_users: {text}}}\n")
    loaded = house.load(IDS="5, 6,")
    assert loaded.config.telegram.allowed_users == expected
    assert kinds(loaded) == [(Kind.UNUSABLE, f"telegram.allowed_users{at}") for at in bad]


@pytest.mark.parametrize(
    "key", ["agent: {models: {a: b}}", "agent: {model_aliases: [a]}", "agent: 5", "sync: [github]"]
)
def test_a_wrong_shape_keeps_the_defaults(house: House, key: str) -> None:
    house.settings(key + "\n")
    loaded = house.load()
    assert [kind for kind, _ in kinds(loaded)] == [Kind.UNUSABLE]
    assert loaded.config.agent == house.config(NERVE_WORKSPACE="/nowhere").agent


def test_choices(house: House) -> None:
    house.settings("workflows: {review_loop: {criteria_adoption: false}}\nagent: {effort: ' low ', cache_ttl: 2h}\n")
    loaded = house.load()
    assert loaded.config.workflows.review_loop.criteria_adoption == "no"
    assert (loaded.config.agent.effort, loaded.config.agent.cache_ttl) == ("low", "5m")
    assert loaded.warnings == ("agent.cache_ttl: expected one of 5m, 1h, auto; the default is used",)


@pytest.mark.parametrize(
    ("text", "expected"), [("4096", "4096"), ("'4096'", "4096"), ("adaptive", "adaptive"), ("lots", "max")]
)
def test_thinking_is_a_word_or_a_number_of_tokens(house: House, text: str, expected: str) -> None:
    house.settings(f"agent: {{thinking: {text}}}\n")
    assert house.config().agent.thinking == expected


@pytest.mark.parametrize(
    "text",
    [
        "codex: {sandbox: readonly}",
        "codex: {approval_policy: ask}",
        "workflows: {review_loop: {verifier_sandbox: none}}",
        "auth: {mode: extrenal}",
        "gateway: {ssl: {cert: [x]}}",
        "gateway: {ssl: {key: .}}",
        "cron: {jobs_file: $NOT_SET/jobs.yaml}",
    ],
)
def test_a_switch_whose_default_is_less_careful_refuses(house: House, text: str) -> None:
    house.settings(text + "\n")
    with pytest.raises(ConfigError, match=r"^[a-z_.]+: expected [^\n]+$"):
        house.load()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("/abs/dir", "/abs/dir"),
        ("~/dir", "{user}/dir"),
        ("~", "{user}"),
        ("$ROOT/dir", "/root dir/dir"),
        ("${ROOT}/dir", "/root dir/dir"),
        ("below", "{home}/below"),
        ("a$ROOT", "{home}/a/root dir"),
    ],
)
def test_paths_are_expanded_and_never_start_at_the_current_directory(house: House, written: str, expected: str) -> None:
    house.settings(f"workflows: {{runs_dir: '{written}'}}\n")
    loaded = house.load(ROOT="/root dir")
    assert loaded.warnings == ()
    assert loaded.config.workflows.runs_dir == Path(expected.format(user=house.user_home, home=house.home))


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (".", Kind.DOT_PATH),
        ("./", Kind.DOT_PATH),
        ("'${DOT}'", Kind.DOT_PATH),
        ("~nobody/x", Kind.UNUSABLE),
        ("$GONE/x", Kind.UNUSABLE),
        ('"a\\0b"', Kind.UNUSABLE),
        ("5", Kind.UNUSABLE),
    ],
)
def test_an_unusable_path_keeps_the_default(house: House, written: str, kind: Kind) -> None:
    house.settings(f"workflows: {{runs_dir: {written}}}\n")
    loaded = house.load(DOT=".")
    assert loaded.config.workflows.runs_dir == house.home / "workflow-runs"
    assert kinds(loaded) == [(kind, "workflows.runs_dir")]


def test_a_blank_path_is_unset(house: House) -> None:
    house.settings("gateway: {ssl: {cert: '', key: '  '}}\ncodex: {home_dir: ''}\n")
    loaded = house.load()
    assert loaded.config.gateway.ssl.cert is None
    assert loaded.config.codex.home_dir == house.home / "codex"
    assert loaded.warnings == ()


def test_paths_of_cron_start_at_the_workspace_and_commands_stay_commands(house: House) -> None:
    house.settings("cron: {jobs_file: config/cron/mine.yaml}\ncodex: {bin_path: ~/bin/codex}\n")
    config = house.config()
    assert config.cron.jobs_file == house.workspace / "config/cron/mine.yaml"
    assert config.codex.bin_path == f"{house.user_home}/bin/codex"


def test_time_zones(house: House) -> None:
    assert house.config(NERVE_TIMEZONE="Asia/Tokyo").timezone == "Asia/Tokyo"
    assert house.load(NERVE_TIMEZONE="Mars/Crater").config.timezone == "America/New_York"
    house.settings("timezone: Europe/Berlin\n")
    assert house.config(NERVE_TIMEZONE="Asia/Tokyo").timezone == "Europe/Berlin"
    for wrong in ("Mars/Crater", "../../etc/passwd", "America", "''"):
        house.settings(f"timezone: {wrong}\n")
        loaded = house.load(NERVE_TIMEZONE="Asia/Tokyo")
        assert loaded.config.timezone == "Asia/Tokyo"
        assert kinds(loaded) == [(Kind.UNUSABLE, "timezone")]


@pytest.mark.parametrize(
    ("files", "hours"),
    [
        ([], ("02:00", "08:00")),
        (["SOUL.md", "USER.md"], ("02:00", "08:00")),
        (["SOUL.md", "IDENTITY.md"], ("02:00", "08:00")),
        (["SOUL.md"], ("", "")),
        (["SOUL.md", "USER.md", "TASK.md"], ("", "")),
    ],
)
def test_quiet_hours_default_to_the_mode_that_the_files_show(
    house: House, files: list[str], hours: tuple[str, str]
) -> None:
    for name in files:
        house.write(house.workspace / name, "x")
    config = house.config()
    assert (config.quiet_start, config.quiet_end) == hours


@pytest.mark.parametrize(
    ("written", "hours", "noted"),
    [
        ("{quiet_start: '', quiet_end: ''}", ("", ""), False),
        ("{quiet_start: 22:00}", ("22:00", "08:00"), False),
        ("{quiet_start: ''}", ("", ""), True),
        ("{quiet_start: 25:00}", ("02:00", "08:00"), True),
        ("{quiet_start: '2:00'}", ("02:00", "08:00"), True),
    ],
)
def test_quiet_hours(house: House, written: str, hours: tuple[str, str], noted: bool) -> None:
    house.settings(written + "\n")
    loaded = house.load()
    assert (loaded.config.quiet_start, loaded.config.quiet_end) == hours
    assert bool(loaded.findings) is noted


def test_half_a_certificate_is_no_tls_and_is_reported(house: House) -> None:
    house.settings("gateway: {ssl: {cert: certs/c.pem}}\n")
    loaded = house.load()
    assert loaded.config.gateway.ssl.cert == house.home / "certs/c.pem"
    assert [path for _, path in kinds(loaded)] == ["gateway.ssl"]
