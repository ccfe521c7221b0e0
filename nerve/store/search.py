"""Finding sessions by title and by the words of their messages; taking the words of deleted messages out again."""

from collections.abc import Sequence

import apsw

from nerve.domain.searching import Wanted
from nerve.store.rows import run, scalar
from nerve.store.session_feeds import StoredRow
from nerve.store.sessions import COLUMNS

FOUND = 100
AT_ONCE = 20  # messages whose words leave in one transaction
AT_ONCE_CHARACTERS = 65_536

_BY_TITLE = "instr(casefold(title), ?1)"
_BY_WORDS = (
    "id IN (SELECT session_id FROM messages WHERE id IN (SELECT rowid FROM message_words WHERE message_words MATCH ?2))"
)


def sessions(db: apsw.Connection, wanted: Wanted) -> list[StoredRow]:
    """The newest ``FOUND`` sessions that are not archived and have the text in their title or the words in a message.

    Reads all titles, and as much of the index as there are matches.
    """
    found, bindings = _BY_TITLE, [wanted.text]
    if wanted.words:
        found, bindings = f"{_BY_TITLE} OR {_BY_WORDS}", [wanted.text, _phrases(wanted.words)]
    rows = db.execute(
        f"SELECT {COLUMNS} FROM sessions WHERE status <> 'archived' AND ({found})"
        f" ORDER BY updated_at DESC, n DESC LIMIT {FOUND}",
        bindings,
    )
    return list(rows)


def _phrases(words: Sequence[str]) -> str:
    """Every word quoted, so that nothing in it is syntax, and with a star: the beginning of a word will do."""
    return " ".join('"' + word.replace('"', '""') + '"*' for word in words)


def anything_forgotten(db: apsw.Connection) -> bool:
    return scalar(db, "SELECT 1 FROM forgotten_messages LIMIT 1") is not None


def forget(db: apsw.Connection) -> bool:
    """Take the words of up to ``AT_ONCE`` deleted messages out of the index; True if there are more."""
    left = AT_ONCE_CHARACTERS
    rows = list(
        db.execute("SELECT id, content, length(content) FROM forgotten_messages ORDER BY id LIMIT ?", (AT_ONCE,))
    )
    for message_id, content, length in rows:
        run(
            db,
            "INSERT INTO message_words (message_words, rowid, content) VALUES ('delete', ?, ?)",
            (message_id, content),
        )
        run(db, "DELETE FROM forgotten_messages WHERE id = ?", (message_id,))
        left -= length
        if left <= 0:
            break
    return anything_forgotten(db)
