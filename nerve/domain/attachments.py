"""What a message carries: how a file is called and what it is, and how a message with files is stored."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from attrs import frozen

PER_MESSAGE = 20
LONGEST_NAME = 120  # bytes of a stored name, its id not counted
HEAD_BYTES = 16  # of a file, that ``kind_of`` looks at
UNKNOWN_TYPE = "application/octet-stream"

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,60}")
_URL = "/api/files/uploads/"
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class AttachmentKind(StrEnum):
    IMAGE = "image"
    FILE = "file"


@frozen
class Attachment:
    """``directory`` and ``path`` say where it is kept; ``path`` is relative to the directory."""

    id: str
    filename: str
    media_type: str
    kind: AttachmentKind
    directory: str
    path: str


def kind_of(head: bytes, claimed: str | None) -> tuple[AttachmentKind, str]:
    """What a file is, and its media type.

    A picture is what begins like one: a wrong one would spoil a whole conversation with a model.  Anything else has the
    type that its sender claims, unless that is a picture's.
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return AttachmentKind.IMAGE, "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return AttachmentKind.IMAGE, "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return AttachmentKind.IMAGE, "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return AttachmentKind.IMAGE, "image/webp"
    media_type = (claimed or "").partition(";")[0].strip().lower()
    fits = _MEDIA_TYPE.fullmatch(media_type) is not None and media_type not in _PICTURES
    return AttachmentKind.FILE, media_type if fits else UNKNOWN_TYPE


def file_name(sent: str) -> str:
    """The last component of the name that was sent, as one harmless line of at most 120 bytes that keeps its ending."""
    name = re.split(r"[/\\]", sent)[-1]
    name = "".join(c for c in name if c.isprintable()).strip().lstrip(".") or "file"
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending.encode()) > 20:
        stem, dot, ending = name, "", ""
    room = LONGEST_NAME - len((dot + ending).encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + dot + ending


def url_of(file_id: str) -> str:
    return f"{_URL}{file_id}"


def id_of(url: str) -> str | None:
    """The other way round; None for any other address."""
    file_id = url.removeprefix(_URL)
    return file_id if url.startswith(_URL) and file_id and "/" not in file_id else None


def stored_content(text: str, attachments: Sequence[Attachment]) -> str:
    """The text of a user's row; it says of pictures even when its blocks are gone."""
    pictures = sum(attachment.kind is AttachmentKind.IMAGE for attachment in attachments)
    return f"{text}\n\n[{pictures} image(s) attached]" if pictures else text


def stored_blocks(text: str, attachments: Sequence[Attachment]) -> list[dict[str, Any]] | None:
    """None for a plain message."""
    if not attachments:
        return None
    return [
        {"type": "text", "content": text},
        *(
            {
                "type": attachment.kind.value,
                "url": url_of(attachment.id),
                "filename": attachment.filename,
                "media_type": attachment.media_type,
            }
            for attachment in attachments
        ),
    ]
