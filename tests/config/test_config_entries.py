"""Unknown and retired keys, free-form subtrees, and lists and mappings of entries (config.md 1 and 2)."""

import pytest
from config_house import House, kinds

from nerve.config import Kind, Secret
from nerve.config.sections.agents import Price
from nerve.config.sections.sources import CodexOrigin, ImapAccount
from nerve.config.sections.work import AgentTarget, Category, McpServer


def test_unknown_keys_are_named_with_their_dotted_path(house: House) -> None:
    house.settings("gatway: {port: 1}\ngateway: {prot: 1, ssl: {cart: x}}\npaths: {home: /x}\nagent: {5: x}\n")
    house.overlay("sync: {imap: {accounts: [{host: h, username: u, colour: red}]}}\n")
    assert kinds(house.load()) == [
        (Kind.UNKNOWN_KEY, path)
        for path in (
            "gatway",
            "paths",
            "gateway.prot",
            "gateway.ssl.cart",
            "agent.5",
            "sync.imap.accounts[0].colour",
        )
    ]


def test_free_form_subtrees_are_never_warned_about(house: House) -> None:
    house.settings(
        """
mcp_servers: {files: {command: x, whatever: 1, env: {PORT: 8080, KEY: abc}}}
memory: {categories: [{name: people, description: d, colour: red}]}
external_agents: {targets: [{name: codex, since: 2024}]}
docker: {extra_mounts: ["/a:/b"]}
langfuse: {redact_patterns: ["x+"]}
agent: {model_aliases: {opus: m, unheard: n}}
codex: {pricing: {m: {input: 1, output: 2, note: x}}, extra_config: {any: {thing: [1]}}, effort_map: {odd: high}}
"""
    )
    loaded = house.load()
    assert loaded.warnings == ()
    config = loaded.config
    assert config.mcp_servers == {"files": McpServer(command="x", env={"PORT": Secret("8080"), "KEY": Secret("abc")})}
    assert config.memory.categories == (Category(name="people", description="d"),)
    assert config.external_agents.targets == (AgentTarget(name="codex"),)
    assert config.docker.extra_mounts == ("/a:/b",)
    assert config.codex.pricing["m"] == Price(input=1.0, output=2.0)
    assert config.codex.pricing["gpt-5.6-luna"] == Price(input=1.0, cached_input=0.1, output=6.0)
    assert config.codex.effort_map == {"max": "ultra", "odd": "high"}


def test_free_form_values_can_not_be_changed(house: House) -> None:
    house.settings("codex: {extra_config: {a: {b: 1}}}\n")
    extra = house.config().codex.extra_config
    with pytest.raises(TypeError):
        extra["a"]["b"] = 2


def test_invalid_entries_are_skipped_one_by_one(house: House) -> None:
    house.settings(
        """
mcp_servers:
  nerve: {command: x}
  no_command: {type: stdio}
  no_url: {type: http}
  odd: 5
  bad_type: {type: carrier-pigeon, command: x}
  remote: {type: sse, url: "https://u:p@example.org", headers: {Authorization: token}}
memory: {categories: [{description: nameless}, plain, {name: good}]}
sync: {imap: {accounts: [{username: me@example.org}, {host: h, username: me@example.org, port: 70000}]}}
"""
    )
    loaded = house.load()
    assert list(loaded.config.mcp_servers) == ["bad_type", "remote"]
    assert loaded.config.mcp_servers["bad_type"].type == "stdio"
    assert loaded.config.memory.categories == (Category(name="good"),)
    assert loaded.config.sync.imap.accounts == (ImapAccount(host="h", username="me@example.org", label="me"),)
    assert [path for _, path in kinds(loaded)] == [
        "mcp_servers.nerve",
        "sync.imap.accounts[0]",
        "sync.imap.accounts[1].port",
        "memory.categories[0]",
        "memory.categories[1]",
        "mcp_servers.no_command",
        "mcp_servers.no_url",
        "mcp_servers.odd",
        "mcp_servers.bad_type.type",
    ]


def test_structured_sources(house: House) -> None:
    house.overlay(
        """
sync:
  telegram: {api_id: "${API_ID}", exclude_chats: [-100123, name]}
  codex: {origins: [{id: here, path: ~/.codex, poll: 0.5}]}
"""
    )
    sync = house.config(API_ID="4711").sync
    assert (sync.telegram.api_id, sync.telegram.exclude_chats) == (4711, ("-100123", "name"))
    assert sync.codex.origins == (CodexOrigin(id="here", path=house.user_home / ".codex", poll=0.5),)


@pytest.mark.parametrize(
    ("key", "written", "kept"),
    [
        ("allowed_hosts", "[Box.Local, '[::1]', 'a b', 'h:80', '*', 10.0.0.1]", ("box.local", "::1", "10.0.0.1")),
        (
            "allowed_origins",
            "['https://A.example:443/', 'http://[::1]:8080', '*', 'ftp://x', 'https://x/path', 'http://x:0']",
            ("https://a.example", "http://[::1]:8080"),
        ),
        ("trusted_proxies", "[10.1.2.3/8, '::1', everybody]", ("10.0.0.0/8", "::1/128")),
    ],
)
def test_network_lists_drop_what_names_nobody(house: House, key: str, written: str, kept: tuple[str, ...]) -> None:
    house.settings(f"gateway: {{{key}: {written}}}\n")
    loaded = house.load()
    assert getattr(loaded.config.gateway, key) == kept
    assert len(loaded.findings) == written.count(", ") + 1 - len(kept)


def test_retired_keys_say_so(house: House) -> None:
    house.settings("memory: {sqlite_dsn: 'sqlite:///x'}\n")
    assert kinds(house.load()) == [(Kind.RETIRED, "memory.sqlite_dsn")]
