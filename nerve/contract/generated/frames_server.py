"""Frames that the server sends.  Generated from spec/ by `make contract`: do not edit."""

from typing import Any, Literal, TypeAlias

from attrs import field, frozen
from nerve.contract.unset import UNSET, Unset


@frozen(kw_only=True)
class PongFrame:
    """The answer to a ping."""

    type: Literal['pong'] = field(default='pong')


@frozen(kw_only=True)
class TokenFrame:
    """A piece of the answer's text."""

    type: Literal['token'] = field(default='token')
    session_id: str
    content: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


ServerFrame: TypeAlias = (
    PongFrame
    | TokenFrame
)

SERVER_FRAMES: dict[str, type[Any]] = {
    'pong': PongFrame,
    'token': TokenFrame,
}

SERVER_FRAME_PARTS: dict[str, int | Literal['later']] = {
    'pong': 1,
    'token': 1,
}

LoggedFrame: TypeAlias = (
    TokenFrame
)
