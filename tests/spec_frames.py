"""The referee of one WebSocket: each frame of the server against spec/, and the order they come in."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tests.contract.spec_reader import SERVER, payload_schema
from tests.spec_replies import validator

# Parts up to this one are complete; nothing of the next ones is sent yet.
PART = 4
AHEAD: frozenset[str] = frozenset()

LOGGED = frozenset(name for name, frame in SERVER.items() if frame["x-nerve"].get("logged"))
FUTURE = frozenset(
    name
    for name, frame in SERVER.items()
    if name not in AHEAD and (frame["x-nerve"]["part"] == "later" or frame["x-nerve"]["part"] > PART)
)


class SpecViolation(AssertionError):
    """The server did what spec/ does not promise."""


@cache
def _frame_validator(kind: str) -> Draft202012Validator:
    return validator(payload_schema(SERVER[kind]))


def frame_complaints(frame: Any) -> list[str]:
    """What is wrong with one frame of the server, whatever came before it."""
    kind = frame.get("type") if isinstance(frame, dict) else None
    if kind not in SERVER:
        return [f"no frame of the server has the type {kind!r}"]
    if kind in FUTURE:
        return [f"{kind} belongs to a later part and must not be sent yet"]
    found = [f"{error.json_path}: {error.message}" for error in _frame_validator(kind).iter_errors(frame)]
    if "seq" in frame and kind not in LOGGED:
        found.append(f"{kind} is not logged and yet has a seq")
    return found


def event_complaints(text: str) -> list[str]:
    """What is wrong with a stream of server-sent events (decisions D6): ``id`` is the number, ``data`` the frame."""
    found: list[str] = []
    cursor = 0
    *blocks, unfinished = text.split("\n\n")
    for block in blocks:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if not fields:
            continue  # a comment keeps the line open
        frame = json.loads(fields["data"])
        found += frame_complaints(frame)
        numbered = frame["type"] in LOGGED
        if fields.keys() != ({"id", "data"} if numbered else {"data"}):
            found.append(f"an event of {frame['type']} has the fields {sorted(fields)}")
        elif numbered and (fields["id"] != str(frame.get("seq")) or frame["seq"] <= cursor):
            found.append(f"the id {fields['id']} is not the number of its frame, or not above {cursor}")
        elif not numbered and frame["type"] != "gap":
            found.append(f"{frame['type']} has no place in a stream")
        cursor = frame.get("seq", cursor)
    return found if unfinished == "" else [*found, f"the stream ends within an event: {unfinished!r}"]


class SocketReferee:
    """Observes one socket; raises SpecViolation.

    A bind is told by ``session_switched``, then ``session_status``.  Logged frames belong to the bound session and
    their numbers rise strictly from one bind to the next; only a ``gap`` with ``reset`` starts them again.  What waits
    for a person is told again, with its old number, right after ``session_status`` or a ``gap`` (decisions D28).
    """

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self._bound: str | None = None
        self._awaits_status = False
        self._cursor = 0
        self._asked: set[str] = set()  # interactions that were told since the bind
        self._may_repeat = False

    def server_frame(self, text: str) -> None:
        frame = json.loads(text)
        self._require(not (found := frame_complaints(frame)), "; ".join(found), frame)
        self.seen.append(frame)
        match frame["type"]:
            case "session_switched":
                self._bound, self._awaits_status, self._cursor = frame["session_id"], True, 0
                self._asked.clear()
            case "session_status":
                self._status(frame)
            case "gap":
                self._gap(frame)
            case _ if "seq" in frame:
                self._numbered(frame)

    def _status(self, frame: dict[str, Any]) -> None:
        self._require(self._awaits_status, "session_status without session_switched before it", frame)
        self._require(frame["session_id"] == self._bound, "session_status of another session", frame)
        self._awaits_status, self._may_repeat = False, True
        if (events := frame.get("buffered_events")) is None:
            return
        self._require(frame["is_running"], "buffered_events of a turn that does not run", frame)
        for event in events:
            self._require(not (found := frame_complaints(event)), "; ".join(found), event)
            self._require("seq" in event, "buffered_events holds a frame without a number", event)
            self._numbered(event)
        self._require(self._cursor <= frame["last_seq"], "buffered_events goes beyond last_seq", frame)
        self._cursor, self._may_repeat = frame["last_seq"], True

    def _gap(self, frame: dict[str, Any]) -> None:
        self._require(frame["session_id"] == self._bound, "a gap of another session", frame)
        self._may_repeat = True
        if frame.get("reset"):
            self._cursor = frame["from_seq"] - 1
            return
        self._require(self._cursor < frame["from_seq"] <= frame["to_seq"], "a gap over what was sent", frame)
        self._cursor = frame["to_seq"]

    def _numbered(self, frame: dict[str, Any]) -> None:
        self._require(not self._awaits_status, "a numbered frame came before session_status", frame)
        self._require(frame["session_id"] == self._bound, f"numbered, but bound to {self._bound}", frame)
        if frame["type"] == "interaction":
            self._require(frame["interaction_id"] not in self._asked, "an interaction was told twice", frame)
            self._asked.add(frame["interaction_id"])
            if self._may_repeat and frame["seq"] <= self._cursor:
                return
        self._require(frame["seq"] > self._cursor, f"not above {self._cursor}", frame)
        self._cursor, self._may_repeat = frame["seq"], False

    def _require(self, condition: bool, complaint: str, frame: Any) -> None:
        if not condition:
            raise SpecViolation(f"{complaint}: {json.dumps(frame)[:2000]}")

    def client_frame(self, text: str) -> None:
        """Tests may send what they like."""

    def replied(self, request: Any, reply: Any) -> None:
        raise AssertionError("a socket has no replies")
