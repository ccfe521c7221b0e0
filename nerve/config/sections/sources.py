"""The ``sync`` section: where work comes in from (config.md 2.10)."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from attrs import Factory, field, frozen

from nerve.config.kinds import FREE, Between, Count, Days, DaysFloored, Label, Name, Port, Positive
from nerve.config.secret import Secret


@frozen(kw_only=True)
class Source:
    """Keys that the runner of every source takes.  ``schedule`` is a cron expression."""

    enabled: bool = False
    schedule: Name = "*/15 * * * *"
    batch_size: Positive = 50
    processor: Name = "agent"
    prompt_hint: str = ""
    model: str = ""
    condense: bool = False
    condense_prompt: str = ""


@frozen(kw_only=True)
class GithubSource(Source):
    """An empty ``mode`` polls here; ``hosted`` leaves polling to the channel gateway."""

    enabled: bool = True
    batch_size: Positive = 30
    mode: Literal["", "hosted"] = ""
    allow_repos: tuple[str, ...] = ()
    deny_repos: tuple[str, ...] = ()
    allow_actors: tuple[str, ...] = ()
    deny_actors: tuple[str, ...] = ()
    allow_reasons: tuple[str, ...] = ()
    deny_reasons: tuple[str, ...] = ()
    deny_ci_branches: tuple[str, ...] = ()


@frozen(kw_only=True)
class GithubEventsSource(Source):
    repos: tuple[str, ...] = ()
    username: str = ""


@frozen(kw_only=True)
class GithubReposSource(Source):
    repos: tuple[str, ...] = ()


@frozen(kw_only=True)
class GmailSource(Source):
    enabled: bool = True
    batch_size: Positive = 20
    accounts: tuple[str, ...] = ()
    keyring_password: Secret = field(factory=Secret)


@frozen(kw_only=True)
class TelegramSource(Source):
    enabled: bool = True
    schedule: Name = "*/5 * * * *"
    api_id: Count = field(default=0, repr=False)
    api_hash: Secret = field(factory=Secret)
    monitored_folders: tuple[str, ...] = ()
    exclude_chats: tuple[Label, ...] = ()


@frozen(kw_only=True)
class ImapAccount:
    """``label`` defaults to the part of ``username`` before the @."""

    host: Name
    username: Name
    label: str = field(default=Factory(lambda self: self.username.partition("@")[0], takes_self=True))
    port: Port = 993
    mailbox: Name = "INBOX"


@frozen(kw_only=True)
class ImapMatch:
    sender_contains: tuple[str, ...] = ()
    attachment_contains: tuple[str, ...] = ()
    only_matched: bool = False


@frozen(kw_only=True)
class ImapSource(Source):
    schedule: Name = "*/30 * * * *"
    batch_size: Positive = 20
    accounts: tuple[ImapAccount, ...] = ()
    passwords: Annotated[Mapping[str, Secret], FREE] = MappingProxyType({})
    initial_lookback_days: Days = 1
    match: ImapMatch = field(factory=ImapMatch)
    vision: Annotated[Mapping[str, Any], FREE] = field(default=MappingProxyType({}), repr=False)


@frozen(kw_only=True)
class CodexOrigin:
    """``poll`` is in seconds."""

    id: Name
    type: Literal["local_rollout", "app_server", "cloud"] = "local_rollout"
    path: Path | None = None
    archive_path: Path | None = None
    poll: Annotated[float, Between(0.1, 86_400)] = 2.0


@frozen(kw_only=True)
class CodexFilter:
    mode: Literal["nerve_workspace", "explicit", "any"] = "nerve_workspace"


@frozen(kw_only=True)
class CodexSource(Source):
    workspace_filter: CodexFilter = field(factory=CodexFilter)
    origins: tuple[CodexOrigin, ...] = ()
    store_encrypted_reasoning: bool = True


@frozen(kw_only=True)
class Sync:
    message_ttl_days: DaysFloored = 7
    consumer_cursor_ttl_days: DaysFloored = 2
    github: GithubSource = field(factory=GithubSource)
    github_events: GithubEventsSource = field(factory=GithubEventsSource)
    github_repos: GithubReposSource = field(factory=GithubReposSource)
    gmail: GmailSource = field(factory=GmailSource)
    telegram: TelegramSource = field(factory=TelegramSource)
    imap: ImapSource = field(factory=ImapSource)
    codex: CodexSource = field(factory=CodexSource)
