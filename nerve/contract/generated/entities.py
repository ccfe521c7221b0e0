"""Entities, shared by operations and frames.  Generated from spec/ by `make contract`: do not edit."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from attrs import field, frozen


@frozen(kw_only=True)
class Account:
    """Somebody who may sign in. Holds nothing about the password but whether there is one."""

    id: str
    actor_id: str
    username: str | None
    display_name: str
    enabled: bool
    has_password: bool
    created_at: datetime


class ActorKind(StrEnum):
    """One of the values that spec/ lists."""
    HUMAN = 'human'
    SYSTEM = 'system'


@frozen(kw_only=True)
class Actor:
    """Who something is attributed to. An identity, not an account."""

    id: str
    kind: ActorKind
    display_name: str
    username: str | None


class AuthModeName(StrEnum):
    """One of the values that spec/ lists."""
    LOCAL = 'local'
    EXTERNAL = 'external'


class LoginState(StrEnum):
    """One of the values that spec/ lists."""
    SETUP = 'setup'
    NONE = 'none'
    PASSWORD = 'password'
    USERNAME_PASSWORD = 'username_password'


@frozen(kw_only=True)
class AuthStatus:
    """How people sign in. Tells neither usernames nor how many accounts there are."""

    mode: AuthModeName
    auth_required: bool
    login: LoginState


@frozen(kw_only=True)
class Health:
    """The whole answer of /health."""

    status: Literal['ok'] = field(default='ok')
    version: str
    generation: str


@frozen(kw_only=True)
class QueueEntry:
    """A message that waits for its turn."""

    queue_id: str
    client_msg_id: str | None
    preview: str
    source: str
    internal: bool
    actor_id: str | None
    created_at: datetime


@frozen(kw_only=True)
class Token:
    """A session token; opaque to clients."""

    token: str = field(metadata={'min_length': 1})
