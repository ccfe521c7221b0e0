"""Frames that a client sends.  Generated from spec/ by `make contract`: do not edit."""

from typing import Any, Literal, TypeAlias

from attrs import field, frozen


@frozen(kw_only=True)
class PingFrame:
    """Ask for a pong."""

    type: Literal['ping'] = field(default='ping')


ClientFrame: TypeAlias = (
    PingFrame
)

CLIENT_FRAMES: dict[str, type[Any]] = {
    'ping': PingFrame,
}

CLIENT_FRAME_PARTS: dict[str, int | Literal['later']] = {
    'ping': 1,
}
