"""Text for a terminal: pieces with a tone, cleaned of what would drive the terminal, and how wide it is."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import Enum

from attrs import frozen


class Tone(Enum):
    """How a piece is meant; the value is its SGR code, empty for plain text."""

    TEXT = ""
    THINKING = "2;3"
    TOOL = "1;36"
    OUTPUT = "2"
    GOOD = "32"
    BAD = "31"
    NOTE = "2;36"
    PERSON = "1"


@frozen
class Piece:
    text: str
    tone: Tone = Tone.TEXT


@frozen
class Symbols:
    """Marks at the beginning of lines."""

    prompt: str = "› "
    thinking: str = "∴ "
    tool: str = "● "
    output: str = "│ "
    good: str = "✓ "
    bad: str = "✗ "
    note: str = "· "
    file: str = "✎ "
    stopped: str = "■ "
    more: str = "… "
    asks: str = "? "
    behind: str = "&"
    newline: str = "⏎"
    ellipsis: str = "…"


ASCII = Symbols(
    prompt="> ",
    thinking="~ ",
    tool="* ",
    output="| ",
    good="ok ",
    bad="error: ",
    note="- ",
    file="file ",
    stopped="- ",
    more="... ",
    newline="\\",
    ellipsis="...",
)

# Everything of C0 and C1 but line feed and tab, and what turns the direction of writing around.
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_ALWAYS_NARROW = frozenset("…│✓✗●∴■›·✎⏎“”‘’–—")


def clean(text: str) -> str:
    """What a server or an agent says, without anything that a terminal would obey."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNWANTED.sub("", _ESCAPES.sub("", text))


def one_line(text: str, limit: int, symbols: Symbols) -> str:
    """Cleaned, in one line, cut to so many characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else flat[: limit - len(symbols.ellipsis)] + symbols.ellipsis


def width(text: str) -> int:
    """Columns that cleaned text takes."""
    return len(text) if text.isascii() else sum(map(character_width, text))


def character_width(character: str) -> int:
    if character.isascii() or character in _ALWAYS_NARROW:
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def paint(pieces: Iterable[Piece], *, colour: bool) -> str:
    """The pieces as a string; without ``colour`` just their text."""
    return "".join(painted(piece) if colour else piece.text for piece in pieces)


def painted(piece: Piece) -> str:
    return f"\x1b[{piece.tone.value}m{piece.text}\x1b[0m" if piece.tone.value and piece.text else piece.text


def merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Neighbours of one tone as one piece."""
    held: Piece | None = None
    for piece in pieces:
        if held is None or held.tone is not piece.tone:
            if held is not None:
                yield held
            held = piece
        else:
            held = Piece(held.text + piece.text, held.tone)
    if held is not None:
        yield held


def counted(count: int, thing: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
