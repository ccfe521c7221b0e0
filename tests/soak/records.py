"""What a home's database says, read by its own connection beside the server's; and what must always be true of it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
from attrs import frozen


@frozen
class Turn:
    id: str
    session_id: str
    state: str
    client_msg_id: str | None
    first_seq: int
    started_at: str
    user_rows: int
    assistant_rows: int
    answer: str | None


@frozen
class Records:
    """One moment of the database.  ``waiting`` is by session, ``starts`` are the instants of all starts so far."""

    turns: tuple[Turn, ...]
    waiting: dict[str, list[str]]
    quarantined: frozenset[str]
    starts: tuple[str, ...]

    def settled(self) -> list[Turn]:
        return [turn for turn in self.turns if turn.state != "running"]

    def cut_off_by_start(self) -> list[set[str]]:
        """For each start but the newest: the sessions whose turns its end cut off."""
        until = [*self.starts[1:], "9"]
        return [
            {turn.session_id for turn in self.turns if turn.state == "interrupted" and begun <= turn.started_at < end}
            for begun, end in zip(self.starts[:-1], until, strict=False)
        ]

    def check(self) -> None:
        """Every turn is one user row, and an assistant's once it ended; only the newest start has turns running."""
        ids = [turn.client_msg_id for turn in self.turns] + [i for waiting in self.waiting.values() for i in waiting]
        twice = {i for i in ids if ids.count(i) > 1}
        assert not twice, f"accepted more than once: {twice}"
        for turn in self.turns:
            assert turn.user_rows == 1, turn
            assert turn.assistant_rows == (0 if turn.state == "running" else 1), turn
            assert turn.state != "running" or turn.started_at >= self.starts[-1], f"left open: {turn}"


_TURNS = """
SELECT t.id, t.session_id, t.state, t.client_msg_id, t.first_seq, t.started_at,
    (SELECT count(*) FROM messages m WHERE m.turn_id = t.id AND m.role = 'user'),
    (SELECT count(*) FROM messages m WHERE m.turn_id = t.id AND m.role = 'assistant'),
    (SELECT content FROM messages m WHERE m.id = t.assistant_message_id)
FROM turns t ORDER BY t.user_message_id
"""


def read(database: Path) -> Records:
    with _snapshot(database) as db:
        waiting: dict[str, list[str]] = {}
        for session_id, message_id in db.execute("SELECT session_id, client_msg_id FROM queue_entries ORDER BY n"):
            waiting.setdefault(session_id, []).append(message_id)
        return Records(
            turns=tuple(Turn(*row) for row in db.execute(_TURNS)),
            waiting=waiting,
            quarantined=frozenset(row[0] for row in db.execute("SELECT id FROM sessions WHERE quarantined = 1")),
            starts=tuple(row[0] for row in db.execute("SELECT started_at FROM daemon_starts ORDER BY id")),
        )


def check_sound(database: Path) -> None:
    with _snapshot(database) as db:
        assert list(db.execute("PRAGMA integrity_check")) == [("ok",)]
        assert list(db.execute("PRAGMA foreign_key_check")) == []


@contextmanager
def _snapshot(database: Path) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(database), apsw.SQLITE_OPEN_READONLY)) as db:
        db.set_busy_timeout(10_000)
        db.execute("BEGIN")
        yield db
