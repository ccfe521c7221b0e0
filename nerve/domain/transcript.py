"""The assistant's message as it grows: plain text, thinking and blocks (sessions-and-agents.md 5).

The same fold runs over live events and, at recovery, over the logged frames of a turn that a crash cut off.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen

from nerve.domain.turns import OPEN_TOOL_RESULT, UNASKED_SOURCES


@frozen
class StoredMessage:
    content: str
    thinking: str | None
    blocks: list[dict[str, Any]] | None


@define
class Transcript:
    """Grows by pieces; ``close`` ends it and ``stored`` is what becomes the assistant row."""

    _blocks: list[dict[str, Any]] = field(factory=list)
    _lead: dict[str, Any] | None = None  # the block that tells what started the turn; not something that was said
    _open_tools: dict[str, dict[str, Any]] = field(factory=dict)

    @property
    def empty(self) -> bool:
        return not self._blocks

    @property
    def open_tools(self) -> tuple[str, ...]:
        """Ids of the tool calls that have no result yet, in the order of their start."""
        return tuple(self._open_tools)

    @classmethod
    def of(cls, source: str) -> "Transcript":
        """That of a turn from this source."""
        transcript = cls()
        if source in UNASKED_SOURCES:
            transcript.lead(source)
        return transcript

    def lead(self, kind: str, **facts: Any) -> None:
        """Mark what started the turn, before everything it says."""
        self._lead = {"type": kind, **facts}

    def text(self, piece: str) -> None:
        self._extend("text", piece)

    def thinking(self, piece: str) -> None:
        self._extend("thinking", piece)

    def _extend(self, kind: str, piece: str) -> None:
        if self._blocks and self._blocks[-1]["type"] == kind:
            self._blocks[-1]["pieces"].append(piece)
        else:
            self._blocks.append({"type": kind, "pieces": [piece]})

    def tool_started(self, tool_use_id: str, tool: str, tool_input: dict[str, Any]) -> None:
        block = {
            "type": "tool_call",
            "tool": tool,
            "input": tool_input,
            "tool_use_id": tool_use_id,
            "result": None,
            "is_error": False,
        }
        self._blocks.append(block)
        self._open_tools[tool_use_id] = block

    def tool_finished(self, tool_use_id: str, result: str, is_error: bool) -> None:
        block = self._open_tools.pop(tool_use_id, None)
        if block is not None:
            block["result"], block["is_error"] = result, is_error

    def model_changed(self, before: str, after: str, downgrade: bool) -> None:
        self._blocks.append({"type": "model_change", "from": before, "to": after, "downgrade": downgrade})

    def workflow(self, tool_use_id: str, tree: dict[str, Any]) -> None:
        """The newest progress tree of the workflow that this call started."""
        for block in reversed(self._blocks):
            if block.get("tool_use_id") == tool_use_id:
                block["workflow"] = tree
                return

    def close_tools(self) -> None:
        """A tool call that the turn's end cut off has a result too: that it was interrupted.  No workflow runs on."""
        for tool_use_id, block in list(self._open_tools.items()):
            if block.get("workflow", {}).get("status") == "running":
                block["workflow"] = {**block["workflow"], "status": "stopped"}
            self.tool_finished(tool_use_id, OPEN_TOOL_RESULT, True)

    def answer(self) -> str:
        """All text so far."""
        return "".join(piece for block in self._blocks if block["type"] == "text" for piece in block["pieces"])

    def stored(self, mark: str | None) -> StoredMessage:
        """The row's values; ``mark`` says how a turn ended that did not complete, after a blank line."""
        text = self.answer()
        thoughts = "".join(p for block in self._blocks if block["type"] == "thinking" for p in block["pieces"])
        blocks = [_plain(block) for block in self._blocks]
        if self._lead is not None:
            blocks.insert(0, dict(self._lead))
        if mark is not None:
            text = f"{text}\n\n{mark}" if text else mark
            blocks.append({"type": "text", "content": mark})
        return StoredMessage(text, thoughts or None, blocks or None)


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    if "pieces" in block:
        return {"type": block["type"], "content": "".join(block["pieces"])}
    return dict(block)


def replay(frames: Iterable[Mapping[str, Any]]) -> Transcript:
    """The transcript that logged frames of one turn add up to; frames that tell of anything else are passed over."""
    transcript = Transcript()
    for frame in frames:
        match frame["type"]:
            case "wakeup":
                transcript.lead("wakeup")
            case "auto_turn":
                known = ("triggers", "more")
                transcript.lead("auto", **{key: frame[key] for key in known if key in frame})
            case "token":
                transcript.text(frame["content"])
            case "thinking":
                transcript.thinking(frame["content"])
            case "tool_use":
                transcript.tool_started(frame["tool_use_id"], frame["tool"], frame["input"])
            case "tool_result":
                transcript.tool_finished(frame["tool_use_id"], frame["result"], frame["is_error"])
            case "workflow_progress":
                transcript.workflow(frame["tool_use_id"], frame["workflow"])
            case "model_changed":
                transcript.model_changed(frame["from_model"], frame["to_model"], frame["downgrade"])
    return transcript
