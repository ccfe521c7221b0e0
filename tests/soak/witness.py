"""Everything clients ever saw of one session, and complaints about what they must never see.  No socket, no clock."""

from typing import Any

import orjson
from attrs import define, field

DELTAS = ("token", "thinking", "tool_output")
ENDINGS = ("done", "stopped", "error")


@define(eq=False)
class Witness:
    """``cursor`` is the number up to which the following client knows everything, be it a frame or a gap.

    Every method raises AssertionError for what breaks the promise of the numbered log.
    """

    session_id: str
    cursor: int = 0
    frames: dict[int, dict[str, Any]] = field(factory=dict)
    seen_at: dict[int, float] = field(factory=dict)
    gaps: list[tuple[int, int]] = field(factory=list)
    acknowledged: set[str] = field(factory=set)
    refused: set[str] = field(factory=set)

    def follow(self, text: bytes, now: float) -> dict[str, Any]:
        """A frame on the socket that misses nothing: it was bound with ``after_seq`` at the cursor."""
        frame = self.glance(text, now)
        match frame["type"]:
            case "session_status" if frame["session_id"] == self.session_id:
                assert frame["last_seq"] >= self.cursor, f"last_seq {frame['last_seq']} after {self.cursor} was shown"
                assert "buffered_events" not in frame
            case "gap":
                self._skip(frame)
        if (seq := frame.get("seq")) is not None:
            assert seq == self.cursor + 1, f"frame {seq} after {self.cursor}: {frame}"
            self.cursor = seq
        return frame

    def glance(self, text: bytes, now: float) -> dict[str, Any]:
        """A frame on any socket that is bound to the session."""
        frame: dict[str, Any] = orjson.loads(text)
        if frame.get("session_id") == self.session_id:
            for event in (frame, *frame.get("buffered_events", ())):
                if "seq" in event:
                    self._remember(event, now)
            if frame["type"] == "queue_update":
                self._hear_of_queue(frame)
        return frame

    def _remember(self, frame: dict[str, Any], now: float) -> None:
        seq = frame["seq"]
        known = self.frames.get(seq)
        if known is None:
            lost = [gap for gap in self.gaps if gap[0] <= seq <= gap[1]]
            assert not lost, f"number {seq} was told as lost in {lost[0]} and is used now: {frame}"
            self.frames[seq] = frame
            self.seen_at[seq] = now
        assert known is None or known == frame, f"number {seq} was {known} and is {frame} now"

    def _skip(self, gap: dict[str, Any]) -> None:
        assert "reset" not in gap, f"the server knows of fewer numbers than it has shown: {gap}, {self.cursor}"
        assert gap["from_seq"] == self.cursor + 1 <= gap["to_seq"] + 1, f"{gap} after {self.cursor}"
        self.gaps.append((gap["from_seq"], gap["to_seq"]))
        self.cursor = gap["to_seq"]

    def _hear_of_queue(self, frame: dict[str, Any]) -> None:
        """What acknowledges a message (gaps.md 6)."""
        for entry in frame["queue"]:
            self.acknowledged.add(entry["client_msg_id"])
        for entry in frame.get("removed", ()):
            if entry["reason"] in ("started", "duplicate"):
                self.acknowledged.add(entry["client_msg_id"])
            else:
                self.refused.add(entry["client_msg_id"])

    # --- what it adds up to ---------------------------------------------------------------------------------------

    def text_of_turn(self, first_seq: int, until: float = float("inf")) -> str:
        """The text that was seen of the turn whose first frame is ``first_seq``, as of the instant ``until``."""
        pieces = []
        for seq in sorted(seq for seq in self.frames if seq > first_seq):
            frame = self.frames[seq]
            if frame["type"] == "user_message" or frame["type"] in ENDINGS:
                break
            if frame["type"] == "token" and self.seen_at[seq] <= until:
                pieces.append(frame["content"])
        return "".join(pieces)

    def begun(self) -> list[str]:
        """The ``client_msg_id`` of every turn that was seen to begin, in order."""
        frames = (self.frames[seq] for seq in sorted(self.frames))
        return [frame["client_msg_id"] for frame in frames if frame["type"] == "user_message"]

    def ended(self) -> int:
        """How many turns were seen to end."""
        return sum(frame["type"] in ENDINGS for frame in self.frames.values())

    def check_turns(self) -> None:
        """Each turn begins, settles every tool call, and ends once; only deltas may be missing, and only in gaps."""
        running = False
        tools: set[str] = set()
        for seq in sorted(self.frames):
            frame = self.frames[seq]
            match frame["type"]:
                case "user_message":
                    assert not running, f"a turn began inside a turn at {seq}"
                    running = True
                case kind if kind in ENDINGS:
                    assert running, f"{kind} without a turn at {seq}"
                    assert not tools, f"the turn ended at {seq} with open tool calls {tools}"
                    running = False
                case kind:
                    assert running, f"{kind} outside a turn at {seq}"
                    if kind == "tool_use":
                        tools.add(frame["tool_use_id"])
                    elif kind == "tool_result":
                        tools.remove(frame["tool_use_id"])
        missing = set(range(1, self.cursor + 1)) - self.frames.keys()
        for first, last in self.gaps:
            missing -= set(range(first, last + 1))
        assert not missing, f"never seen and never told as lost: {sorted(missing)[:10]}"
