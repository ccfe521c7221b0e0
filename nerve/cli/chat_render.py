"""What a session shows, as text: frames in, pieces out.  No I/O, no clock."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from nerve.cli.chat_notes import note_of
from nerve.cli.chat_text import Piece, Symbols, Tone, clean, counted, one_line
from nerve.client import CaughtUp, Disconnected, LineEvent, LiveEvent, Unanswered, Unconfirmed
from nerve.client.following import INTERACTION_NOT_FOUND
from nerve.contract.generated.entities import Message, MessageRole, QueueEntry
from nerve.contract.generated.frames_server import (
    AnswerInjectedFrame,
    DoneFrame,
    ErrorFrame,
    FileChangedFrame,
    QueueUpdateFrame,
    RemovalReason,
    SessionStatusFrame,
    StoppedFrame,
    ThinkingFrame,
    TokenFrame,
    ToolOutputFrame,
    ToolResultFrame,
    ToolUseFrame,
    UserMessageFrame,
    WorkflowProgressFrame,
)
from nerve.contract.unset import UNSET

OUTPUT_LINES = 20  # of one tool call; the rest is counted
RESULT_LINES = 12
SUMMARY = 100
PREVIEW = 44

# What a tool call is about, in the order in which the keys of its input are looked for.
_TELLING = (
    "command",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
    "title",
)


@define
class _Call:
    """One tool call and how much of its output was shown."""

    label: str
    lines: int = 0
    hidden: int = 0
    line_open: bool = False


@define(eq=False)
class Renderer:
    """``own`` are this client's messages by their id: they were shown when they were typed.  ``me`` is its actor.

    Output is a column of sections, a blank line between two of different kinds; text that is still growing leaves its
    line open.
    """

    symbols: Symbols = field(factory=Symbols)
    names: Callable[[str | None], str] = field(default=lambda actor_id: "somebody")
    own: Mapping[str, str] = field(factory=dict)
    me: str | None = None
    _section: str | None = None
    _line_open: bool = False
    _calls: dict[str, _Call] = field(factory=dict)
    _last_call: str | None = None
    _last_path: Any = None
    _waiting: dict[str, QueueEntry] = field(factory=dict)
    _offline: bool = False
    _progress: str | None = None

    def render(self, event: LiveEvent) -> list[Piece]:
        match event:
            case TokenFrame(content=content):
                return self._flow("text", "", content, Tone.TEXT)
            case ThinkingFrame(content=content):
                return self._flow("thinking", self.symbols.thinking, content, Tone.THINKING)
            case ToolUseFrame():
                return self._tool_use(event)
            case ToolOutputFrame(tool_use_id=call_id, content=content):
                return self._tool_output(call_id, content)
            case ToolResultFrame():
                return self._tool_result(event)
            case FileChangedFrame():
                return self._file_changed(event)
            case DoneFrame() | StoppedFrame():
                return self._end(event)
            case ErrorFrame():
                return self._error(event)
            case UserMessageFrame(client_msg_id=sent) if sent in self.own:
                return []
            case UserMessageFrame(content=content, actor_id=actor_id):
                return self.message(content, self.names(actor_id))
            case AnswerInjectedFrame(content=content, actor_id=actor_id, answered_by=by):
                return self.message(content, self.names(actor_id) if actor_id else clean(by))
            case QueueUpdateFrame():
                return self._queue_update(event)
            case SessionStatusFrame():
                return [*self._back(), *self._queued(event.agents.queue)]
            case Disconnected() | CaughtUp() | Unconfirmed() | Unanswered():
                return self._line(event)
            case _:
                text = note_of(event, self.symbols)
                # A workflow tells its progress again and again.
                again = isinstance(event, WorkflowProgressFrame) and text == self._progress
                self._progress = text if isinstance(event, WorkflowProgressFrame) else self._progress
                return [] if text is None or again else self.note(text)

    # --- sections -------------------------------------------------------------------------------------------------

    def note(self, text: str, tone: Tone = Tone.NOTE, mark: str | None = None) -> list[Piece]:
        """A remark of the client; further lines are indented."""
        mark = self.symbols.note if mark is None else mark
        indented = text.replace("\n", "\n" + " " * len(mark))
        return [*self._enter("note"), Piece(f"{mark}{indented}\n", tone)]

    def asked(self, preamble: str, text: str) -> list[Piece]:
        """What an agent asks; both are cleaned."""
        self._section = None if self._section is None else "before"
        before = self._flow("asked", "", f"{preamble}\n\n", Tone.TEXT) if preamble else []
        mark = self.symbols.asks
        first, _, rest = text.partition("\n")
        rest = "".join(f"{' ' * len(mark)}{line}\n" for line in rest.splitlines())
        return [*before, *self._enter("asked"), Piece(f"{mark}{first}\n", Tone.PERSON), Piece(rest)]

    def message(self, text: str, name: str | None = None) -> list[Piece]:
        """What a person said; without a name it is the one at this terminal."""
        mark = self.symbols.prompt if name is None else f"{clean(name)}{self.symbols.prompt}"
        self._section = None if self._section is None else "before"
        lines = clean(text).rstrip("\n").replace("\n", "\n" + " " * len(self.symbols.prompt))
        return [*self._enter("person"), Piece(f"{mark}{lines}\n", Tone.PERSON)]

    def stored(self, message: Message) -> list[Piece]:
        """A message of the history."""
        if message.role is MessageRole.USER:
            mine = self.me is not None and message.actor_id == self.me
            return self.message(message.content, None if mine else self.names(message.actor_id))
        if message.role is MessageRole.SYSTEM:
            return self.note(clean(message.content))
        return [*self.close(), *self._flow("text", "", message.content.strip("\n") + "\n", Tone.TEXT)]

    def begin(self) -> None:
        """Another session is shown from here on."""
        self._calls.clear()
        self._waiting = {}
        self._offline = False
        self._progress = None

    def close(self) -> list[Piece]:
        """End the open line, if there is one."""
        ended = [Piece("\n")] if self._line_open else []
        self._line_open = False
        return ended

    def _enter(self, section: str) -> list[Piece]:
        pieces = self.close()
        if self._section not in (None, section):
            pieces.append(Piece("\n"))
        self._section = section
        return pieces

    def _flow(self, section: str, mark: str, content: str, tone: Tone) -> list[Piece]:
        """Text that comes in pieces; blank lines at the beginning of a section are left out."""
        text = clean(content)
        pieces: list[Piece] = []
        if self._section != section:
            text = text.lstrip("\n")
            if not text:
                return []
            pieces = [*self._enter(section), Piece(mark, tone)]
        if text:
            pieces.append(Piece(text, tone))
            self._line_open = not text.endswith("\n")
        return pieces

    # --- tools ----------------------------------------------------------------------------------------------------

    def _tool_use(self, frame: ToolUseFrame) -> list[Piece]:
        what = about(frame.input, self.symbols)
        tool = one_line(frame.tool, PREVIEW, self.symbols)
        self._calls[frame.tool_use_id] = _Call(f"{tool} {one_line(what, PREVIEW, self.symbols)}".rstrip())
        self._last_call = frame.tool_use_id
        self._last_path = frame.input.get("file_path")
        rest = [Piece(f"  {what}", Tone.OUTPUT)] if what else []
        return [*self._enter("tool"), Piece(f"{self.symbols.tool}{tool}", Tone.TOOL), *rest, Piece("\n")]

    def _call(self, call_id: str) -> tuple[_Call, list[Piece]]:
        """The call and, where something else was shown since, a line that says which one it is."""
        call = self._calls.setdefault(call_id, _Call("a tool"))
        pieces = self._enter("tool") if self._section != "tool" else []
        if self._last_call != call_id:
            pieces += [*self.close(), Piece(f"{self.symbols.tool}{call.label}\n", Tone.OUTPUT)]
            if (last := self._calls.get(self._last_call or "")) is not None:
                last.line_open = False
            call.line_open = False
        self._last_call = call_id
        return call, pieces

    def _tool_output(self, call_id: str, content: str) -> list[Piece]:
        text = clean(content)
        if not text:
            return []
        call, pieces = self._call(call_id)
        for line in text.splitlines(keepends=True):
            if not call.line_open:
                call.lines += 1
            if call.lines > OUTPUT_LINES:
                call.hidden += not call.line_open
            else:
                mark = "" if call.line_open else f"  {self.symbols.output}"
                pieces.append(Piece(mark + line, Tone.OUTPUT))
                self._line_open = not line.endswith("\n")
            call.line_open = not line.endswith("\n")
        return pieces

    def _tool_result(self, frame: ToolResultFrame) -> list[Piece]:
        call, pieces = self._call(frame.tool_use_id)
        pieces += self.close()
        if call.hidden:
            pieces.append(
                Piece(f"  {self.symbols.output}{self.symbols.more}{counted(call.hidden, 'more line')}\n", Tone.OUTPUT)
            )
        lines = clean(frame.result).strip("\n").splitlines()
        tone, mark = (Tone.BAD, self.symbols.bad) if frame.is_error else (Tone.GOOD, self.symbols.good)
        if len(lines) > 1 and (frame.is_error or not call.lines):
            shown, hidden = lines[:RESULT_LINES], len(lines) - RESULT_LINES
            pieces += [Piece(f"  {self.symbols.output}{line}\n", Tone.OUTPUT) for line in shown]
            if hidden > 0:
                pieces.append(
                    Piece(f"  {self.symbols.output}{self.symbols.more}{counted(hidden, 'more line')}\n", Tone.OUTPUT)
                )
            lines = []
        said = one_line(lines[0], SUMMARY, self.symbols) if len(lines) == 1 else "failed" if frame.is_error else "done"
        del self._calls[frame.tool_use_id]
        return [*pieces, Piece(f"  {mark}{said}\n", tone)]

    def _file_changed(self, frame: FileChangedFrame) -> list[Piece]:
        """Nothing where the tool call just before says it already."""
        if self._section == "tool" and frame.path == self._last_path:
            return []
        changed = f"{frame.operation.value.replace('_', ' ')} {one_line(frame.path, SUMMARY, self.symbols)}"
        return [*self._enter("tool"), Piece(f"  {self.symbols.file}{changed}\n", Tone.OUTPUT)]

    # --- ends and errors ------------------------------------------------------------------------------------------

    def _end(self, frame: DoneFrame | StoppedFrame) -> list[Piece]:
        self._calls.clear()
        if isinstance(frame, StoppedFrame):
            return self.note("stopped", Tone.BAD, self.symbols.stopped)
        usage = frame.usage
        if usage is UNSET:
            return self.close()
        read = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        text = f"{read:,} tokens in, {usage.output_tokens:,} out"
        if isinstance(frame.max_context_tokens, int):
            text += f", {read / frame.max_context_tokens:.0%} of the context"
        return self.note(text)

    def _error(self, frame: ErrorFrame) -> list[Piece]:
        said = clean(frame.error).strip() or "no reason was given"
        if frame.seq is not UNSET:
            self._calls.clear()
            return self.note(f"the turn has ended with an error: {said}", Tone.BAD, self.symbols.bad)
        if said == INTERACTION_NOT_FOUND:
            said = "that was answered before, or is not asked any more"
        return self.note(said.replace("_", " ") if " " not in said else said, Tone.BAD, self.symbols.bad)

    # --- queue and line -------------------------------------------------------------------------------------------

    def _queue_update(self, frame: QueueUpdateFrame) -> list[Piece]:
        pieces: list[Piece] = []
        for entry in frame.removed or ():
            known = self._waiting.get(entry.queue_id or "")
            text = self.own.get(entry.client_msg_id or "")
            preview = known.preview if known is not None else text
            if entry.reason is RemovalReason.STARTED and known is not None and text is not None:
                pieces += self.message(text)
            elif entry.reason is RemovalReason.CANCELLED and preview is not None:
                pieces += self.note(f"taken back: {one_line(preview, PREVIEW, self.symbols)}")
            elif entry.reason is RemovalReason.REFUSED and preview is not None:
                refused = f"refused: {one_line(preview, PREVIEW, self.symbols)}"
                pieces += self.note(refused, Tone.BAD, self.symbols.bad)
        return pieces + self._queued(frame.queue)

    def _queued(self, queue: list[QueueEntry]) -> list[Piece]:
        new = [entry for entry in queue if entry.queue_id not in self._waiting]
        self._waiting = {entry.queue_id: entry for entry in queue}
        return [piece for entry in new for piece in self.note(self.waiting(entry))]

    def waiting(self, entry: QueueEntry) -> str:
        """One line about a message that waits."""
        by = "" if (entry.client_msg_id or "") in self.own else f", from {clean(self.names(entry.actor_id))}"
        return f"waits: {one_line(entry.preview, PREVIEW, self.symbols)} ({clean(entry.queue_id)}{by})"

    def _line(self, event: LineEvent) -> list[Piece]:
        match event:
            case Disconnected(reason=reason):
                if self._offline:
                    return []
                self._offline = True
                return self.note(f"{clean(reason)}; connecting again {self.symbols.ellipsis}")
            case Unconfirmed(client_msg_id=sent):
                preview = one_line(self.own.get(sent, ""), PREVIEW, self.symbols)
                text = f"nobody knows whether this arrived, it is not sent again: {preview}"
                return self.note(text, Tone.BAD, self.symbols.bad)
            case Unanswered():
                text = "no line has outlived your answer, it is not sent again"
                return self.note(text, Tone.BAD, self.symbols.bad)
            case CaughtUp():
                return []

    def _back(self) -> list[Piece]:
        """The line stands again; what was missed comes next."""
        was_offline, self._offline = self._offline, False
        return self.note("connected again") if was_offline else []


def about(given: dict[str, Any], symbols: Symbols) -> str:
    """The one thing of a tool's input that says most, in one line."""
    for key in _TELLING:
        if isinstance(value := given.get(key), str) and value.strip():
            return one_line(value, SUMMARY, symbols)
    match given:
        case {"questions": [{"question": str(question)}, *_]} | {"plan": str(question)}:
            return one_line(question, SUMMARY, symbols)
    pairs = ", ".join(f"{key}: {_written(value)}" for key, value in given.items())
    return one_line(pairs, SUMMARY, symbols)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
