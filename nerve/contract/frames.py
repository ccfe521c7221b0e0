"""Frames to and from JSON text.  A frame is serialised once and then handed to every reader as it is."""

from typing import Any

from attrs import evolve

from nerve.contract import codec
from nerve.contract.generated.frames_client import CLIENT_FRAMES, ClientFrame
from nerve.contract.generated.frames_server import LoggedFrame, ServerFrame
from nerve.contract.rules import Problem


def decode_client_frame(text: str) -> ClientFrame | None:
    """The frame, or None if its type is unknown (a newer client's: ignored).  Raises codec.Invalid."""
    value = codec.parse_json(text)
    kind: Any = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        raise codec.Invalid([Problem("missing", ("type",), "A frame is an object with a type.")])
    cls = CLIENT_FRAMES.get(kind)
    return None if cls is None else codec.structure(cls, value, ())


def encode_frame(frame: ServerFrame) -> bytes:
    return codec.encode(frame)


def encode_logged(frame: LoggedFrame, seq: int) -> bytes:
    """The frame with its number, as it is stored and as everybody sees it."""
    return codec.encode(evolve(frame, seq=seq))
