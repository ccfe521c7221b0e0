"""Which files are read, from where, and what each may say (config.md 1 and 1.1)."""

import contextlib
import os
from pathlib import Path

import pytest
from config_house import House, kinds, unhurried
from hypothesis import given
from hypothesis import strategies as st

from nerve.config import ConfigError, Kind, LayerName, load_from_process
from nerve.config.yaml_text import NODES_MAX, parse


def test_three_layers_the_overlay_highest(house: House) -> None:
    house.settings("agent: {model: one, cron_model: one, title_model: one}\nopenai_api_key: one\n")
    house.base("agent: {cron_model: two, title_model: two}\n")
    house.overlay("agent: {title_model: three}\nopenai_api_key: three\n")
    loaded = house.load()
    agent = loaded.config.agent
    assert (agent.model, agent.cron_model, agent.title_model) == ("one", "two", "three")
    assert loaded.config.openai_api_key.reveal() == "three"
    assert loaded.warnings == ()
    assert [layer.name for layer in loaded.layers] == [LayerName.SETTINGS, LayerName.BASE, LayerName.OVERLAY]


def test_layers_are_kept_as_written_for_whoever_asks_where_a_value_came_from(house: House) -> None:
    house.overlay("openai_api_key: ${KEY}\n")
    loaded = house.load(KEY="very-secret")
    assert loaded.layers[2].values == {"openai_api_key": "${KEY}"}
    assert loaded.layers[2].path == house.home / "config.local.yaml"


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~\n", "\ufeff", "{}\n"])
def test_empty_files_say_nothing(house: House, text: str) -> None:
    house.settings(text)
    house.base(text)
    house.overlay(text)
    assert house.load().warnings == ()


@pytest.mark.parametrize("text", ["[a]\n", "word\n", "5\n"])
def test_a_top_level_that_is_no_mapping(house: House, text: str) -> None:
    house.base(text)
    house.overlay(text)
    assert kinds(house.load()) == [(Kind.LAYER, "config.yaml"), (Kind.LAYER, "config.local.yaml")]
    settings = house.settings(text)
    with pytest.raises(ConfigError) as caught:
        house.load()
    assert str(caught.value) == f"{settings}: its top level is not a mapping"


MALFORMED = [
    "key: [hush",
    "hush: *hush",
    "key: hush\nkey: hush",
    "key: 'hush",
    "key: !hush x",
    "key: !!python/object:os.system hush",
    "key: !!int hush",
    "key: !!bool hush",
    "key: !!int ''",
    "key: 2024-13-45",
    "key: &a [*a]",
    "? [hush, x]\n: y",
    "{hush: 1}: 2",
    "a: 1\n---\nb: 2",
    "key: \x01hush",
    'key: "\\ud800hush"',
    "key: !!binary aHVzaA==",
    "[" * 600,
    "key: " + "9" * 5000,
    "\tkey: hush",
    "key: @hush",
]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
@pytest.mark.parametrize("layer", ["settings", "base", "overlay"])
def test_malformed_yaml_refuses_in_one_line_without_the_text(house: House, text: str, layer: str) -> None:
    path = getattr(house, layer)(text)
    with pytest.raises(ConfigError) as caught:
        house.load()
    assert str(caught.value).startswith(f"{path}: ")
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_position_of_the_mistake_is_given(house: House) -> None:
    path = house.base("a: 1\nb: [\n")
    with pytest.raises(ConfigError) as caught:
        house.load()
    assert str(caught.value) == f"{path}: malformed YAML at line 3, column 1"


def test_aliases_can_not_multiply_without_end() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    with pytest.raises(ConfigError, match="too large"):
        parse("\n".join(lines), "f")
    assert NODES_MAX < 2**39


def test_anchors_merge_keys_dates_and_odd_keys_are_plain_values() -> None:
    source = "base: &b {x: 1}\nb: &b {y: 2}\nuse: {<<: *b}\nday: 2024-01-02\n2: a\ntrue: b\n~: c\n"
    assert parse(source, "f") == {
        "base": {"x": 1},
        "b": {"y": 2},
        "use": {"y": 2},
        "day": "2024-01-02",
        "2": "a",
        "true": "b",
        "null": "c",
    }


@unhurried
@given(st.text(max_size=60) | st.text(alphabet="ab:-[]{}&*!|>'\"#%@`?,~ \n\t0123456789.", max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse(text, "f")


def test_files_that_can_not_be_read_refuse(house: House) -> None:
    (house.home / "config.yaml").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"config\.yaml: is not a regular file$"):
        house.load()
    (house.home / "config.yaml").rmdir()
    os.mkfifo(house.home / "config.yaml")
    with pytest.raises(ConfigError, match=r"config\.yaml: is not a regular file$"):
        house.load()
    (house.home / "config.yaml").unlink()
    (house.home / "config.yaml").symlink_to("config.yaml")
    with pytest.raises(ConfigError, match=r"config\.yaml: can't be read"):
        house.load()
    (house.home / "config.yaml").unlink()
    (house.home / "config.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError, match=r"config\.yaml: is not UTF-8 text$"):
        house.load()
    (house.home / "config.yaml").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match=r"config\.yaml: is larger than 1048576 bytes$"):
        house.load()


def test_an_overlay_that_others_may_read_is_reported(house: House) -> None:
    house.overlay("github_token: x\n", mode=0o644)
    assert kinds(house.load()) == [(Kind.DOUBTFUL, "config.local.yaml")]


def test_the_search_order_of_the_config_directory(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    here, flag, env, pointed = (house.user_home / name for name in ("here", "flag", "env", "pointed"))
    for directory in (here, flag, env, pointed, house.home):
        house.base(f"agent: {{model: {directory.name}}}\n", directory)
    monkeypatch.chdir(here)
    house.write(house.home / "config_dir", f"{pointed}\n")

    def found(given: Path | None = None, **environ: str) -> tuple[str, Path, str]:
        config = house.load(given, **environ).config
        return config.paths.config_dir_source, config.paths.config_dir, config.agent.model

    assert found(flag, NERVE_CONFIG_DIR=str(env)) == ("flag", flag, "flag")
    assert found(NERVE_CONFIG_DIR=str(env)) == ("env", env, "env")
    assert found(NERVE_CONFIG_DIR=" ") == ("pointer", pointed, "pointed")
    (pointed / "config.yaml").unlink()
    assert found() == ("home", house.home, ".nerve")
    (house.home / "config.yaml").rename(house.home / "config.local.yaml")
    assert found() == ("home", house.home, ".nerve")
    (house.home / "config.local.yaml").unlink()
    assert found() == ("default", house.home, "claude-opus-5-5")


@pytest.mark.parametrize("content", ["relative/dir\n", "", "\0\n", "/no/such/dir\n", "\n\n"])
def test_a_pointer_that_leads_nowhere_is_not_followed(house: House, content: str) -> None:
    house.base("{}")
    house.write(house.home / "config_dir", content)
    loaded = house.load()
    assert loaded.config.paths.config_dir_source == "home"
    assert loaded.warnings == ()


def test_a_pointer_that_can_not_be_read_is_reported(house: House) -> None:
    (house.home / "config_dir").mkdir(parents=True)
    loaded = house.load()
    assert (loaded.config.paths.config_dir_source, kinds(loaded)) == ("default", [(Kind.DOUBTFUL, "config_dir")])


def test_two_homes_share_nothing(house: House) -> None:
    house.overlay("github_token: secret-of-the-first\n")
    other = house.load(NERVE_HOME=str(house.user_home / "other"))
    assert not other.config.github_token
    assert other.config.paths.config_dir == house.user_home / "other"


def test_named_directories_that_are_missing_are_reported_and_files_are_refused(house: House) -> None:
    with pytest.raises(ConfigError, match=r"^--config-dir: .* does not exist$"):
        house.load(house.user_home / "gone")
    file = house.write(house.user_home / "file", "x")
    with pytest.raises(ConfigError, match=r"^--config-dir: .* is not a directory$"):
        house.load(file)
    with pytest.raises(ConfigError, match=r"^NERVE_CONFIG_DIR: .* is not a directory$"):
        house.load(NERVE_CONFIG_DIR=str(file))
    with pytest.raises(ConfigError, match=r"^NERVE_HOME: .* is not a directory$"):
        house.load(NERVE_HOME=str(file))


def test_paths_from_the_caller_start_at_the_current_directory(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(house.user_home)
    house.base("{}", house.user_home / "conf")
    paths = house.load(Path("conf"), NERVE_HOME="state", NERVE_WORKSPACE="~/ws").config.paths
    assert (paths.home, paths.config_dir, paths.workspace) == tuple(
        house.user_home / name for name in ("state", "conf", "ws")
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [("/abs/ws", "/abs/ws"), ("~/ws", "{user}/ws"), ("${WHERE}/ws", "/env/ws"), ("ws", "{home}/ws"), ("''", None)],
)
def test_the_machine_layers_name_the_workspace(house: House, written: str, expected: str | None) -> None:
    house.base(f"workspace: {written}\n")
    config = house.config(WHERE="/env")
    wanted = house.workspace if expected is None else Path(expected.format(user=house.user_home, home=house.home))
    assert config.workspace == config.paths.workspace == wanted
    assert config.cron.jobs_file == wanted / "config/cron/jobs.yaml"


@pytest.mark.parametrize("written", [".", "5", "[x]", "$NOT_SET/x", "~other/x"])
def test_an_unusable_workspace_refuses(house: House, written: str) -> None:
    house.base(f"workspace: {written}\n")
    with pytest.raises(ConfigError, match=r"^workspace: expected a path"):
        house.load()


def test_the_overlay_wins_and_the_variable_wins_over_both(house: House) -> None:
    house.base("workspace: /one\n")
    house.overlay("workspace: /two\n")
    assert house.config().workspace == Path("/two")
    loaded = house.load(NERVE_WORKSPACE="/three")
    assert loaded.config.workspace == Path("/three")
    assert kinds(loaded) == [
        (Kind.MISPLACED, "config.yaml: workspace"),
        (Kind.MISPLACED, "config.local.yaml: workspace"),
    ]


def test_a_workspace_in_the_workspace_is_ignored(house: House) -> None:
    house.settings("workspace: /elsewhere\n")
    loaded = house.load()
    assert loaded.config.workspace == house.workspace
    assert kinds(loaded) == [(Kind.MISPLACED, "workspace/config/settings.yaml: workspace")]


def test_the_legacy_cron_directory_counts_while_the_workspace_has_no_job_file(house: House) -> None:
    house.write(house.home / "cron" / "jobs.yaml", "x")
    assert house.config().cron.system_file == house.home / "cron" / "system.yaml"
    assert house.config().cron.gate_plugins_dir == house.home / "cron" / "gates"
    house.settings("cron: {jobs_file: config/cron/a.yaml}\n")
    assert house.config().cron.jobs_file == house.workspace / "config/cron/a.yaml"
    house.write(house.workspace / "config" / "cron" / "system.yaml", "x")
    assert house.config().cron.system_file == house.workspace / "config/cron/system.yaml"


def test_a_home_inside_the_workspace_is_reported(house: House) -> None:
    inside = house.workspace / "state"
    inside.mkdir(parents=True)
    (house.user_home / "link").symlink_to(inside)
    for home in (inside, house.user_home / "link", house.workspace):
        assert kinds(house.load(NERVE_HOME=str(home))) == [(Kind.DOUBTFUL, "NERVE_HOME")]


def test_the_running_process_brings_its_own_environment_and_home(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NERVE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(house.user_home))
    monkeypatch.setenv("WANTED", "from-the-process")
    house.settings("agent: {model: '${WANTED}'}\n")
    config = load_from_process(None).config
    assert (config.paths.home, config.agent.model) == (house.home, "from-the-process")
