"""Lockdown: the reviewed files and the environment are all there is (config.md 6)."""

from pathlib import Path

import pytest
from config_house import House

from nerve.config import ConfigError, Kind, LayerName, Loaded


def with_remote(house: House) -> None:
    house.write(house.workspace / ".git" / "config", '[core]\n[remote "origin"]\n\turl = x\n')


def locked(house: House, **environ: str) -> Loaded:
    return house.load(NERVE_LOCKDOWN="1", NERVE_WORKSPACE=str(house.workspace), **environ)


@pytest.mark.parametrize("by_variable", [True, False])
def test_only_the_tracked_settings_count(house: House, by_variable: bool) -> None:
    with_remote(house)
    house.settings(("" if by_variable else "lockdown: true\n") + "agent: {model: reviewed}\ngithub_token: ${TOKEN}\n")
    house.base("agent: {model: local, effort: low}\n")
    house.overlay("openai_api_key: local-secret\n")
    loaded = locked(house, TOKEN="t") if by_variable else house.load(TOKEN="t")
    config = loaded.config
    assert config.lockdown is True
    assert (config.agent.model, config.agent.effort) == ("reviewed", "xhigh")
    assert (config.openai_api_key.reveal(), config.github_token.reveal()) == ("", "t")
    assert [layer.name for layer in loaded.layers] == [LayerName.SETTINGS]
    assert loaded.warnings == ()


def test_the_machine_layers_are_not_even_read(house: House) -> None:
    with_remote(house)
    house.base("{{{ not yaml")
    assert locked(house).config.lockdown
    house.settings("lockdown: true\n")
    assert house.load(NERVE_WORKSPACE=str(house.workspace)).config.lockdown
    with pytest.raises(ConfigError, match="malformed"):
        house.load()


def test_the_machine_layers_may_name_the_workspace_when_the_settings_lock(house: House) -> None:
    with_remote(house)
    house.settings("lockdown: yes\n")
    house.base(f"workspace: {house.workspace}\ndeployment: docker\n")
    config = house.config()
    assert (config.lockdown, config.workspace, config.deployment) == (True, house.workspace, "server")


@pytest.mark.parametrize("value", ["true", "1", "yes", "on", "y", "t", "YES", " On "])
def test_true_words_lock(house: House, value: str) -> None:
    assert house.load(NERVE_LOCKDOWN=value, NERVE_WORKSPACE=str(house.workspace)).config.lockdown
    house.settings(f"lockdown: '{value}'\n")
    assert house.config().lockdown


@pytest.mark.parametrize("value", ["false", "0", "no", "off", "n", "f", "FALSE"])
def test_false_words_do_not_lock_and_never_unlock(house: House, value: str) -> None:
    house.settings(f"lockdown: '{value}'\n")
    assert not house.config(NERVE_LOCKDOWN=value).lockdown
    assert house.load(NERVE_LOCKDOWN="1", NERVE_WORKSPACE=str(house.workspace)).config.lockdown
    house.settings("lockdown: true\n")
    assert house.config(NERVE_LOCKDOWN=value).lockdown


@pytest.mark.parametrize("value", ["", " ", "maybe", "2", "tru"])
def test_an_unreadable_variable_refuses(house: House, value: str) -> None:
    with pytest.raises(ConfigError, match=r"^NERVE_LOCKDOWN: expected true or false"):
        house.load(NERVE_LOCKDOWN=value, NERVE_WORKSPACE=str(house.workspace))


@pytest.mark.parametrize("value", ["''", "~", "maybe", "2", "[]", "{}", "${LOCK}", "${GONE:-}", "1.0"])
def test_an_unreadable_or_empty_setting_refuses(house: House, value: str) -> None:
    house.settings(f"lockdown: {value}\n")
    with pytest.raises(ConfigError, match=r"^lockdown: expected true or false"):
        house.load(LOCK="")


@pytest.mark.parametrize("value", ["on", "off"])
def test_the_setting_may_come_from_a_variable(house: House, value: str) -> None:
    house.settings("lockdown: ${LOCK}\n")
    assert house.config(LOCK=value).lockdown is (value == "on")


def test_the_variable_needs_the_workspace(house: House) -> None:
    house.base(f"workspace: {house.workspace}\n")
    with pytest.raises(ConfigError, match=r"^NERVE_LOCKDOWN needs NERVE_WORKSPACE"):
        house.load(NERVE_LOCKDOWN="true")


def test_machine_layers_can_not_lock(house: House) -> None:
    house.base("lockdown: true\n")
    house.overlay("lockdown: maybe\n")
    loaded = house.load()
    assert not loaded.config.lockdown
    assert [f.path for f in loaded.findings] == ["config.yaml: lockdown", "config.local.yaml: lockdown"]


def test_telegram_is_off_unless_stated(house: House) -> None:
    assert locked(house).config.telegram.enabled is False
    house.settings("telegram: {enabled: true}\n")
    assert locked(house).config.telegram.enabled is True


@pytest.mark.req("CLAIM-30")
def test_an_empty_locked_workspace_loads_so_that_it_can_be_claimed(house: House) -> None:
    loaded = locked(house)
    assert loaded.config.lockdown
    assert [f.kind for f in loaded.findings] == [Kind.DOUBTFUL]


@pytest.mark.parametrize("key", ["jobs_file", "system_file", "gate_plugins_dir"])
@pytest.mark.parametrize("where", ["/etc/jobs", "~/jobs", "config/../jobs", "skills/jobs", "$NERVE_HOME/cron/jobs"])
def test_cron_paths_outside_the_reviewed_directory_refuse(house: House, key: str, where: str) -> None:
    house.settings(f"cron: {{{key}: {where}}}\n")
    with pytest.raises(ConfigError, match=r"^lockdown: .* leads out of the workspace's config directory$"):
        locked(house, NERVE_HOME=str(house.home))
    assert not house.load(NERVE_HOME=str(house.home)).config.lockdown


def test_cron_paths_inside_are_fine_and_the_legacy_directory_never_counts(house: House) -> None:
    house.write(house.home / "cron" / "jobs.yaml", "x")
    house.settings("cron: {system_file: config/other/system.yaml}\n")
    cron = locked(house).config.cron
    assert cron.jobs_file == house.workspace / "config/cron/jobs.yaml"
    assert cron.system_file == house.workspace / "config/other/system.yaml"


def link(at: Path, to: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(to)


@pytest.mark.parametrize("at", ["config", "config/settings.yaml", "config/cron", "config/cron/jobs.yaml", "config/x/y"])
def test_links_that_leave_refuse(house: House, at: str) -> None:
    outside = house.user_home / "outside"
    outside.mkdir()
    house.workspace.mkdir()
    link(house.workspace / at, outside / "target")
    with pytest.raises(ConfigError, match=r"^lockdown: "):
        locked(house)


def test_settings_outside_are_refused_before_they_are_parsed(house: House) -> None:
    outside = house.write(house.user_home / "outside.yaml", "{{{")
    link(house.workspace / "config" / "settings.yaml", outside)
    with pytest.raises(ConfigError, match="leads out"):
        locked(house)


def test_settings_that_lock_themselves_are_refused_when_they_are_a_link_out(house: House) -> None:
    outside = house.write(house.user_home / "outside.yaml", "lockdown: true\n")
    link(house.workspace / "config" / "settings.yaml", outside)
    with pytest.raises(ConfigError, match="leads out"):
        house.load()


def test_a_loop_of_links_is_refused(house: House) -> None:
    house.workspace.mkdir()
    link(house.workspace / "config" / "loop", Path("loop"))
    with pytest.raises(ConfigError, match="can't be resolved"):
        locked(house)


def test_links_inside_the_workspace_are_fine_also_when_the_workspace_is_reached_through_one(house: House) -> None:
    house.settings("agent: {model: reviewed}\n")
    house.write(house.workspace / "prompts" / "p.md", "x")
    link(house.workspace / "config" / "prompts", house.workspace / "prompts")
    link(house.user_home / "ws", house.workspace)
    config = house.load(NERVE_LOCKDOWN="1", NERVE_WORKSPACE=str(house.user_home / "ws")).config
    assert config.agent.model == "reviewed"


def test_without_a_git_remote_it_is_reported(house: House) -> None:
    house.settings("lockdown: true\n")
    assert [f.path for f in house.load().findings] == ["lockdown"]
    house.write(house.workspace / ".git" / "config", "[core]\n")
    assert [f.path for f in house.load().findings] == ["lockdown"]
    with_remote(house)
    assert house.load().findings == ()


def test_a_worktree_is_a_repository_too(house: House) -> None:
    main = house.user_home / "main" / ".git"
    house.write(main / "config", '[remote "origin"]\n')
    house.write(main / "worktrees" / "w" / "commondir", "../..\n")
    house.write(house.workspace / ".git", f"gitdir: {main}/worktrees/w\n")
    assert locked(house).findings == ()
