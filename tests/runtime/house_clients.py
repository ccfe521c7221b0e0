"""Clients of one home over several of its lives: what each was shown of each session, and whether that is all."""

from typing import Any

from attrs import define, field

from tests.asgi_client import Closed
from tests.runtime.tabs import Frame, Tab

DELTAS = {"token", "thinking", "tool_output"}


@define(eq=False)
class View:
    """What a client has of a session's log: all of it above ``start`` and up to ``cursor``."""

    start: int = 0
    cursor: int = 0
    seen: dict[int, Frame] = field(factory=dict)
    passed: set[int] = field(factory=set)  # numbers that went by without a frame and without a gap

    def begin(self, cursor: int) -> None:
        self.start = self.cursor = cursor
        self.passed.clear()

    def add(self, frame: Frame) -> None:
        seq = frame["seq"]
        assert seq > self.cursor, "a number came twice or out of order"
        self.passed |= set(range(self.cursor + 1, seq))
        self.repeat(frame)
        self.cursor = seq

    def repeat(self, frame: Frame) -> None:
        assert self.seen.setdefault(frame["seq"], frame) == frame
        self.passed.discard(frame["seq"])

    def lose(self, gap: Frame) -> None:
        assert "reset" not in gap
        assert gap["from_seq"] == self.cursor + 1
        self.cursor = gap["to_seq"]

    def check(self, stored: dict[int, Frame], own: set[str]) -> None:
        """``own`` are ids of the messages that this client sent: it alone is not told of those."""
        for seq, frame in self.seen.items():
            assert stored.get(seq, frame) == frame
            # A kill takes up to a quarter of a second of pieces along that were shown already.
            assert seq in stored or frame["type"] in DELTAS
        for seq in self.passed & stored.keys():
            assert stored[seq]["type"] == "user_message"
            assert stored[seq]["client_msg_id"] in own
        due = {seq for seq in stored if self.start < seq <= self.cursor}
        assert due <= self.seen.keys() | self.passed, "a frame was lost"


@define(eq=False)
class Client:
    """``running`` and ``awaiting`` are what it was last told of each session."""

    views: dict[str, View] = field(factory=dict)
    tab: Tab | None = None
    bound: str | None = None
    own: set[str] = field(factory=set)
    running: dict[str, bool] = field(factory=dict)
    awaiting: dict[str, bool] = field(factory=dict)
    queued: set[str] = field(factory=set)  # ids of messages that it saw waiting or starting
    removed: set[str] = field(factory=set)  # and of those that left without a turn
    asked: dict[str, Frame] = field(factory=dict)  # interactions that wait, as far as it knows
    errors: list[str] = field(factory=list)  # that answered a request
    _returning: int | None = None  # the number with which it asked to be bound

    def view(self, session_id: str) -> View:
        return self.views.setdefault(session_id, View())

    def asks_for(self, session_id: str, *, with_number: bool) -> int | None:
        """What it says when it binds."""
        self._returning = self.view(session_id).cursor if with_number else None
        return self._returning

    def read(self) -> None:
        if self.tab is not None:
            for frame in self.tab.socket.received():
                if not isinstance(frame, Closed):
                    self.take(frame)

    def drop(self) -> None:
        if self.tab is not None:
            self.read()
            self.tab.socket.disconnect()
        self.tab = self.bound = None

    def take(self, frame: Frame) -> None:
        match frame:
            case {"type": "session_switched"}:
                self.bound = frame["session_id"]
                if self._returning is not None:
                    self.view(frame["session_id"]).cursor = self._returning
            case {"type": "session_status"}:
                self._status(frame)
            case {"type": "gap"}:
                self.view(frame["session_id"]).lose(frame)
            case {"type": "queue_update"}:
                self._queue(frame)
            case {"type": "session_running"}:
                self.running[frame["session_id"]] = frame["is_running"]
            case {"type": "session_awaiting_input"}:
                self.awaiting[frame["session_id"]] = frame["awaiting"]
            case {"type": "error"} if "seq" not in frame:
                self.errors.append(frame["error"])
            case {"seq": int()}:
                self._numbered(frame)

    def _status(self, frame: Frame) -> None:
        self.running[frame["session_id"]] = frame["is_running"]
        view = self.view(frame["session_id"])
        events = frame.get("buffered_events")
        assert events is None or self._returning is None
        assert (events is not None) == (frame["is_running"] and self._returning is None)
        if self._returning is None:
            view.begin(frame["last_seq"] if events is None else events[0]["seq"] - 1)
            for event in events or ():
                self._numbered(event)
            assert view.cursor == frame["last_seq"]
        self._returning = None

    def _numbered(self, frame: Frame) -> None:
        assert frame["session_id"] == self.bound
        view = self.view(frame["session_id"])
        if frame["type"] == "interaction" and frame["seq"] <= view.cursor:
            view.repeat(frame)  # it waits since before the bind (decisions D28)
        else:
            view.add(frame)
        match frame["type"]:
            case "interaction":
                self.asked[frame["interaction_id"]] = frame
            case "interaction_resolved":
                self.asked.pop(frame["interaction_id"], None)

    def _queue(self, frame: Frame) -> None:
        left: list[dict[str, Any]] = frame.get("removed", [])
        started = [entry for entry in left if entry["reason"] in ("started", "duplicate")]
        self.queued |= {entry["client_msg_id"] for entry in [*frame["queue"], *started] if entry["client_msg_id"]}
        self.removed |= {entry["client_msg_id"] for entry in left if entry["reason"] in ("cancelled", "refused")}
