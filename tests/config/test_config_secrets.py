"""No repr, error or warning ever shows a secret; external mode; what the environment brings."""

import copy
import json
import pickle
from pathlib import Path

import attrs
import pytest
from config_house import House, unhurried
from hypothesis import given
from hypothesis import strategies as st

from nerve.config import ConfigError, Secret
from nerve.config.environment import InitAnswers

HUSH = "hush-hush-0123456789-0123456789-0123456789"


@unhurried
@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_a_secret_shows_itself_only_when_asked(value: str) -> None:
    secret = Secret(value)
    assert secret.reveal() == value
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r}", "%s" % secret):  # noqa: UP031
        assert shown == "Secret(set)"
    assert repr([secret]) == "[Secret(set)]"


def test_a_secret_is_no_text_for_encoders_and_copies() -> None:
    secret = Secret(HUSH)
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        "".join([secret])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        format(secret, ">40")
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_secrets_compare_and_are_false_when_blank() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert not Secret()
    assert not Secret(" \n")
    assert Secret(" \n") == Secret()


EVERY_SECRET = f"""
anthropic_api_key: {HUSH}
claude_oauth_token: {HUSH}
openai_api_key: {HUSH}
github_token: {HUSH}
brave_search_api_key: {HUSH}
provider: {{aws_access_key_id: {HUSH}, aws_secret_access_key: {HUSH}}}
proxy: {{api_key: {HUSH}}}
codex: {{api_key: {HUSH}, extra_config: {{token: {HUSH}}}}}
telegram: {{bot_token: {HUSH}}}
slack: {{bot_token: {HUSH}, app_token: {HUSH}}}
auth: {{jwt_secret: {HUSH}, password_hash: {HUSH}, external: {{secret: {HUSH}}}}}
sync:
  telegram: {{api_id: 987654321, api_hash: {HUSH}}}
  gmail: {{keyring_password: {HUSH}}}
  imap: {{passwords: {{work: {HUSH}}}, vision: {{api_key: {HUSH}}}}}
xmemory: {{api_key: {HUSH}}}
langfuse: {{secret_key: {HUSH}}}
mcp_servers:
  one: {{command: x, args: [{HUSH}], env: {{KEY: {HUSH}}}}}
  two: {{type: http, url: "https://u:{HUSH}@example.org", headers: {{Authorization: {HUSH}}}}}
"""


def test_nothing_loaded_shows_a_secret(house: House) -> None:
    house.overlay(EVERY_SECRET)
    secrets = (
        "ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY GH_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN "
        "NERVE_PASSWORD NERVE_TELEGRAM_BOT_TOKEN NERVE_TELEGRAM_API_ID NERVE_TELEGRAM_API_HASH NERVE_MCP_TOKEN "
        "NERVE_CHANNEL_GATEWAY_TOKEN NERVE_CHANNEL_GATEWAY_URL NERVE_EXTERNAL_ACTOR_SECRET"
    )
    loaded = house.load(None, **dict.fromkeys(secrets.split(), HUSH))
    assert loaded.warnings == ()
    assert loaded.config.auth.jwt_secret.reveal() == HUSH
    assert loaded.config.mcp_servers["one"].args == (HUSH,)
    shown = repr(loaded) + str(loaded) + repr(attrs.asdict(loaded.config.auth)) + repr(loaded.layers)
    assert HUSH not in shown
    assert "987654321" not in shown


@pytest.mark.parametrize(
    "text",
    [
        f"anthropic_api_key: [{HUSH}]",
        f"anthropic_api_key: {{{HUSH}: 1}}",
        f"gateway: {HUSH}",
        f"gateway: {{port: {HUSH}, allowed_hosts: ['{HUSH} '], allowed_origins: [{HUSH}], trusted_proxies: [{HUSH}]}}",
        f"agent: {{effort: {HUSH}, thinking: {HUSH}, max_turns: '{HUSH}'}}",
        f"workspace_sync: {{enabled: {HUSH}}}",
        f"workflows: {{runs_dir: '~{HUSH}/x', warn_fraction: {HUSH}}}",
        f"telegram: {{allowed_users: [{HUSH}]}}",
        f"quiet_start: {HUSH}",
        f"timezone: {HUSH}",
        f"unheard: {HUSH}",
        f"mcp_servers: {{x: {HUSH}}}",
        f"codex: {{sandbox: {HUSH}}}",
        f"cron: {{jobs_file: '~{HUSH}'}}",
        f"auth: {{mode: {HUSH}}}",
        f"lockdown: {HUSH}",
        f"a: *{HUSH}",
        f"a: [{HUSH}",
    ],
)
def test_no_complaint_shows_the_value(house: House, text: str) -> None:
    house.settings(text + "\n")
    try:
        loaded = house.load()
    except ConfigError as error:
        complaints: tuple[str, ...] = (str(error), repr(error))
    else:
        complaints = loaded.warnings
    assert complaints
    assert not [line for line in complaints if HUSH in line or "\n" in line]


def test_keys_in_warnings_are_cut_and_without_control_characters(house: House) -> None:
    house.settings(f'"a\\nb\\e[31m": 1\n{"k" * 200}: 1\n')
    first, second = house.load().warnings
    assert first == "a?b?[31m: unknown key, ignored"
    assert second == "k" * 61 + "...: unknown key, ignored"


def test_external_mode_needs_its_secret(house: House) -> None:
    with pytest.raises(ConfigError, match=r"^auth\.external\.secret: .*NERVE_EXTERNAL_ACTOR_SECRET$"):
        house.load(NERVE_AUTH_MODE="external")
    house.settings("auth: {mode: external}\n")
    with pytest.raises(ConfigError, match=r"^auth\.external\.secret: "):
        house.load(NERVE_EXTERNAL_ACTOR_SECRET="  ")
    auth = house.config(NERVE_EXTERNAL_ACTOR_SECRET="${HOME} $$" + HUSH).auth
    assert (auth.mode, auth.external.secret.reveal()) == ("external", "${HOME} $$" + HUSH)


def test_the_authentication_variables_win_over_files(house: House) -> None:
    house.overlay(f"auth: {{mode: external, jwt_expiry_hours: 5, external: {{secret: {HUSH}}}}}\n")
    assert house.config().auth.external.secret.reveal() == HUSH
    auth = house.config(NERVE_AUTH_MODE="local", NERVE_EXTERNAL_ACTOR_SECRET="s" * 32).auth
    assert (auth.mode, auth.external.secret.reveal(), auth.jwt_expiry_hours) == ("local", "s" * 32, 5)
    with pytest.raises(ConfigError, match=r"^NERVE_AUTH_MODE: expected local or external$"):
        house.load(NERVE_AUTH_MODE="both")


def test_short_signing_secrets_are_reported(house: House) -> None:
    house.overlay("auth: {jwt_secret: a bit too short!, external: {secret: a bit too short!}}\n")
    assert [f.path for f in house.load().findings] == ["auth.jwt_secret", "auth.external.secret"]


@pytest.mark.parametrize("key", ["jwt_secret: x", "external: {secret: fifteen letters}"])
def test_signing_secrets_that_can_be_guessed_are_refused(house: House, key: str) -> None:
    house.overlay(f"auth: {{{key}}}\n")
    with pytest.raises(ConfigError, match=r"^auth\..*: shorter than 16 bytes") as refused:
        house.load()
    assert "fifteen" not in str(refused.value)


def test_what_the_environment_brings(house: House) -> None:
    house.settings("codex: {api_key_env: MY_CODEX_KEY}\n")
    env = house.config(
        NERVE_DOCKER="1",
        INVOCATION_ID="x",
        NERVE_SUPERVISOR="exit",
        NERVE_RESTART_COMMAND="systemctl restart nerve",
        NERVE_SETUP_HOST_LOGIN="1",
        NERVE_DISPLAY_NAME="Robin",
        CLAUDE_CONFIG_DIR="~/.claude",
        NERVE_CHANNEL_GATEWAY_URL="https://gateway",
        ANTHROPIC_API_KEY="one",
        CLAUDE_CODE_OAUTH_TOKEN="two",
        OPENAI_API_KEY="three",
        MY_CODEX_KEY="four",
        GH_TOKEN="five",
        AWS_REGION="eu-west-1",
        PATH="/bin",
        HOME="/home/x",
        NERVE_MODE="worker",
        NERVE_USE_PROXY="1",
        SHELL="/bin/sh",
    ).environment
    assert (env.docker, env.systemd, env.supervisor, env.setup_host_login) == (True, True, "exit", True)
    assert (env.restart_command, env.display_name) == ("systemctl restart nerve", "Robin")
    assert (env.claude_config_dir, env.channel_gateway_url) == (house.user_home / ".claude", "https://gateway")
    tokens = (env.anthropic_api_key, env.claude_code_oauth_token, env.openai_api_key, env.codex_api_key, env.gh_token)
    assert [token.reveal() for token in tokens] == ["one", "two", "three", "four", "five"]
    assert {name: value.reveal() for name, value in env.aws.items()} == {"AWS_REGION": "eu-west-1"}
    assert env.inherited == {"PATH": "/bin", "HOME": "/home/x"}
    assert env.init == InitAnswers(mode="worker", use_proxy=True)


@pytest.mark.parametrize(
    ("value", "docker", "host_login"),
    [("1", True, True), ("yes", True, True), ("0", False, False), ("", False, False), ("container", True, False)],
)
def test_switches_of_the_environment(house: House, value: str, docker: bool, host_login: bool) -> None:
    config = house.config(NERVE_DOCKER=value, NERVE_SETUP_HOST_LOGIN=value)
    assert (config.environment.docker, config.environment.setup_host_login) == (docker, host_login)
    assert config.gateway.host == ("0.0.0.0" if docker else "127.0.0.1")


def test_an_unknown_supervisor_is_reported(house: House) -> None:
    loaded = house.load(NERVE_SUPERVISOR="restart")
    assert (loaded.config.environment.supervisor, [f.path for f in loaded.findings]) == ("", ["NERVE_SUPERVISOR"])


def test_bad_paths_in_variables_refuse(house: House) -> None:
    for name in ("NERVE_HOME", "NERVE_WORKSPACE", "NERVE_CONFIG_DIR", "CLAUDE_CONFIG_DIR"):
        with pytest.raises(ConfigError, match=f"^{name}: expected a path that starts at / or ~/$"):
            house.load(None, **{name: f"~{HUSH}/x"})


def test_loading_changes_nothing_on_disk(house: House, tmp_path: Path) -> None:
    house.load(NERVE_CONFIG_DIR=str(tmp_path / "conf"))
    assert list(tmp_path.iterdir()) == []
