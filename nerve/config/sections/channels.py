"""Sections about reaching people (config.md 2.6 and 2.7)."""

from typing import Literal

from attrs import field, frozen

from nerve.config.kinds import Count, HoursFloored
from nerve.config.secret import Secret


@frozen(kw_only=True)
class Telegram:
    """``allowed_users`` holds numeric ids; empty means nobody."""

    enabled: bool = True
    bot_token: Secret = field(factory=Secret)
    allowed_users: tuple[int, ...] = ()
    dm_policy: Literal["pairing", "open"] = "pairing"
    stream_mode: Literal["partial", "full"] = "partial"


@frozen(kw_only=True)
class Slack:
    mode: Literal["socket", "hosted"] = "socket"
    enabled: bool = False
    bot_token: Secret = field(factory=Secret)
    app_token: Secret = field(factory=Secret)
    allow_users: tuple[str, ...] = ()
    allow_direct_messages: bool = True
    allow_channels: tuple[str, ...] = ()


@frozen(kw_only=True)
class PriorityPrefixes:
    high: str = "\N{WARNING SIGN}\N{VARIATION SELECTOR-16} "
    urgent: str = "\N{POLICE CARS REVOLVING LIGHT} "


@frozen(kw_only=True)
class Notifications:
    """Without ``telegram_chat_id`` the first allowed user is written to."""

    channels: tuple[str, ...] = ("web", "telegram")
    telegram_chat_id: int | None = None
    default_expiry_hours: HoursFloored = 48
    max_redeliveries: Count = 3
    priority_prefixes: PriorityPrefixes = field(factory=PriorityPrefixes)
    date_locale: Literal["en", "ru", "de"] = "en"
