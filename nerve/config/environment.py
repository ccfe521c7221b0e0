"""What the process environment says, read once into values (config.md section 3).  Nobody else reads variables."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from attrs import field, frozen

from nerve.config import coerce
from nerve.config.findings import ConfigError, Findings, Kind, Unusable
from nerve.config.interpolate import readable
from nerve.config.secret import Secret

# What a child process may see of our own environment (decisions D13).
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")
_AWS = re.compile(r"AWS_[A-Z0-9_]+")

SupervisorChoice = Literal["", "exit", "refuse"]


@frozen(kw_only=True)
class InitAnswers:
    """Answers for ``nerve init --non-interactive``, as given: init checks them."""

    mode: str = ""
    task: str = ""
    password: Secret = field(factory=Secret)
    provider: str = ""
    aws_region: str = ""
    aws_profile: str = ""
    use_proxy: bool = False
    telegram_bot_token: Secret = field(factory=Secret)
    telegram_allowed_users: str = ""
    telegram_api_id: Secret = field(factory=Secret)
    telegram_api_hash: Secret = field(factory=Secret)
    gmail_accounts: str = ""
    external_agents: str = ""
    external_agents_conflict: str = ""


@frozen(kw_only=True)
class Environment:
    """``supervisor`` empty: not told.  ``aws`` and ``inherited`` hold the variables that are set, by name."""

    docker: bool = False
    systemd: bool = False
    supervisor: SupervisorChoice = ""
    restart_command: str = ""
    setup_host_login: bool = False
    display_name: str = ""
    timezone: str = ""
    claude_config_dir: Path | None = None
    channel_gateway_url: str = field(default="", repr=False)
    channel_gateway_token: Secret = field(factory=Secret)
    mcp_token: Secret = field(factory=Secret)
    anthropic_api_key: Secret = field(factory=Secret)
    claude_code_oauth_token: Secret = field(factory=Secret)
    openai_api_key: Secret = field(factory=Secret)
    codex_api_key: Secret = field(factory=Secret)
    gh_token: Secret = field(factory=Secret)
    aws: Mapping[str, Secret] = MappingProxyType({})
    inherited: Mapping[str, str] = MappingProxyType({})
    init: InitAnswers = field(factory=InitAnswers)


@frozen
class Variables:
    """Typed look-ups in an environment mapping.  A blank variable counts as not set, except for a switch."""

    environ: Mapping[str, str]
    user_home: Path
    findings: Findings

    def text(self, name: str) -> str:
        value = self.environ.get(name, "")
        return readable(name, value) if value.strip() else ""

    def secret(self, name: str) -> Secret:
        return Secret(self.text(name))

    def path(self, name: str) -> Path | None:
        """A leading ``~`` is expanded; relative means the caller's current directory, as for any shell word."""
        if not (value := self.environ.get(name, "").strip()):
            return None
        try:
            return Path(coerce.PathRules(self.user_home, self.environ).expand(value)).absolute()
        except Unusable as error:
            raise ConfigError(f"{name}: expected {error.expected}") from None

    def switch(self, name: str, *, otherwise: bool) -> bool:
        """``otherwise`` is what text that is neither yes nor no means; not set and blank are off."""
        try:
            return coerce.boolean(self.environ.get(name, ""))
        except Unusable:
            self.findings.add(Kind.UNUSABLE, name, f"expected true or false; taken as {str(otherwise).lower()}")
            return otherwise


def read_environment(variables: Variables, codex_api_key_env: str) -> Environment:
    """Everything later parts need from the environment.  Paths, lockdown and authentication are read by ``load``."""
    text, secret, environ = variables.text, variables.secret, variables.environ
    return Environment(
        docker=variables.switch("NERVE_DOCKER", otherwise=True),
        systemd="INVOCATION_ID" in environ,
        supervisor=_supervisor(variables),
        restart_command=text("NERVE_RESTART_COMMAND"),
        setup_host_login=variables.switch("NERVE_SETUP_HOST_LOGIN", otherwise=False),
        display_name=text("NERVE_DISPLAY_NAME"),
        timezone=text("NERVE_TIMEZONE").strip(),
        claude_config_dir=variables.path("CLAUDE_CONFIG_DIR"),
        channel_gateway_url=text("NERVE_CHANNEL_GATEWAY_URL"),
        channel_gateway_token=secret("NERVE_CHANNEL_GATEWAY_TOKEN"),
        mcp_token=secret("NERVE_MCP_TOKEN"),
        anthropic_api_key=secret("ANTHROPIC_API_KEY"),
        claude_code_oauth_token=secret("CLAUDE_CODE_OAUTH_TOKEN"),
        openai_api_key=secret("OPENAI_API_KEY"),
        codex_api_key=secret(codex_api_key_env),
        gh_token=secret("GH_TOKEN"),
        aws=MappingProxyType({name: secret(name) for name in sorted(environ) if _AWS.fullmatch(name)}),
        inherited=MappingProxyType({name: environ[name] for name in INHERITED if environ.get(name)}),
        init=_init_answers(variables),
    )


def _supervisor(variables: Variables) -> SupervisorChoice:
    match variables.text("NERVE_SUPERVISOR").strip().lower():
        case "" | "exit" | "refuse" as choice:
            return choice
    variables.findings.add(Kind.UNUSABLE, "NERVE_SUPERVISOR", "expected exit or refuse; ignored")
    return ""


def _init_answers(variables: Variables) -> InitAnswers:
    text, secret = variables.text, variables.secret
    return InitAnswers(
        mode=text("NERVE_MODE"),
        task=text("NERVE_TASK"),
        password=secret("NERVE_PASSWORD"),
        provider=text("NERVE_PROVIDER"),
        aws_region=text("NERVE_AWS_REGION"),
        aws_profile=text("NERVE_AWS_PROFILE"),
        use_proxy=variables.switch("NERVE_USE_PROXY", otherwise=False),
        telegram_bot_token=secret("NERVE_TELEGRAM_BOT_TOKEN"),
        telegram_allowed_users=text("NERVE_TELEGRAM_ALLOWED_USERS"),
        telegram_api_id=secret("NERVE_TELEGRAM_API_ID"),
        telegram_api_hash=secret("NERVE_TELEGRAM_API_HASH"),
        gmail_accounts=text("NERVE_GMAIL_ACCOUNTS"),
        external_agents=text("NERVE_EXTERNAL_AGENTS"),
        external_agents_conflict=text("NERVE_EXTERNAL_AGENTS_CONFLICT"),
    )
