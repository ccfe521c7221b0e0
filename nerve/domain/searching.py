"""What a person types into a search box, as the words and the text that are looked for."""

import unicodedata
from collections.abc import Sequence

from attrs import frozen

from nerve.errors import ErrorCode, NerveError


@frozen
class Wanted:
    """``text`` is case-folded, for titles; ``words`` are for messages and may be none (only signs were typed)."""

    text: str
    words: Sequence[str]


def wanted(query: str) -> Wanted:
    """Raises EMPTY_QUERY for a blank text."""
    # What can't be seen separates, like a space: a NUL would also end the text for SQLite.
    visible = "".join(" " if unicodedata.category(c) == "Cc" else c for c in query).strip()
    if not visible:
        raise NerveError(ErrorCode.EMPTY_QUERY)
    return Wanted(visible.casefold(), [part for part in visible.split() if _has_word(part)])


def _has_word(part: str) -> bool:
    """Letters and digits make words, the rest stands between them."""
    return any(unicodedata.category(c)[0] in "LN" for c in part)
