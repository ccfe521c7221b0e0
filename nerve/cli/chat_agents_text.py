"""Agents in words: what becomes of one, its row in a list, the items of its transcript.  No I/O."""

from collections.abc import Callable

from nerve.cli.chat_render import about
from nerve.cli.chat_text import Symbols, Tone, clean, one_line
from nerve.client import AgentChange
from nerve.client.agents import LIVE
from nerve.contract.generated.entities import (
    AgentAttention,
    AgentEventItem,
    AgentKind,
    AgentLifecycle,
    AgentStatus,
    AgentText,
    AgentTextKind,
    AgentToolCall,
    AgentToolResult,
    AgentView,
)

LABEL, ABOUT, LINE = 40, 100, 160
_KINDS = {
    AgentKind.REMOTE_AGENT: "remote agent",
    AgentKind.MCP_TASK: "task",
    AgentKind.OTHER: "task",
}
_BAD = {AgentStatus.FAILED: "has failed", AgentStatus.INTERRUPTED: "was interrupted", AgentStatus.LOST: "was lost"}

Told = tuple[str, Tone, str]  # text, tone and mark


def called(view: AgentView, symbols: Symbols) -> str:
    return one_line(view.label, LABEL, symbols)


def kind_of(view: AgentView) -> str:
    return _KINDS.get(view.kind, view.kind.value)


def told(change: AgentChange, symbols: Symbols, by: Callable[[str], str | None]) -> Told | None:
    """What to say when an agent's record changes; None for what one need not know.

    What is in the foreground stands in the conversation itself.  ``by`` names whoever stopped one, None: oneself.
    """
    now, before = change.now, change.before
    if now.ambient or not now.background:
        return None
    name = f"{kind_of(now)} {called(now, symbols)}"
    if change.ended:
        return _ended(now, name, symbols, by)
    if change.began:
        return f"{name} {'goes on' if now.runs > 1 else 'has started'}{_of_what(now, symbols)}", Tone.NOTE, symbols.note
    if now.status in LIVE and before is not None and not before.background:
        return f"{name} goes on in the background", Tone.NOTE, symbols.note
    unconfirmed = AgentAttention.STOP_UNCONFIRMED
    if now.attention is unconfirmed and before is not None and before.attention is not unconfirmed:
        return f"{name} does not stop; /stop force ends whatever runs in this session", Tone.BAD, symbols.bad
    return None


def _ended(now: AgentView, name: str, symbols: Symbols, by: Callable[[str], str | None]) -> Told:
    if now.status is AgentStatus.COMPLETED:
        said = one_line(now.result_preview or "", ABOUT, symbols)
        return f"{name} has completed" + (f": {said}" if said else ""), Tone.GOOD, symbols.good
    if now.status is AgentStatus.STOPPED:
        who = None if now.stopped_by_actor_id is None else by(now.stopped_by_actor_id)
        return f"{name} was stopped" + (f" by {clean(who)}" if who else ""), Tone.NOTE, symbols.stopped
    why = now.error or ("" if now.end_reason is None else now.end_reason.value.replace("_", " "))
    said = one_line(why, ABOUT, symbols)
    return f"{name} {_BAD[now.status]}" + (f": {said}" if said else ""), Tone.BAD, symbols.bad


def _of_what(view: AgentView, symbols: Symbols) -> str:
    said = one_line(view.command or view.description or "", ABOUT, symbols)
    return f": {said}" if said and said != view.label else ""


def row(view: AgentView, symbols: Symbols) -> str:
    """One line of a list."""
    name = "  " * (view.depth - 1) + called(view, symbols)
    calls = f"{view.tool_uses} tool call{'s' if view.tool_uses > 1 else ''}" if view.tool_uses else ""
    used = ", ".join(filter(None, (calls, f"{view.tokens:,} tokens" if view.tokens else "")))
    doing = view.activity if view.status in LIVE else view.error or view.result_preview
    what = one_line(doing or view.command or view.description or "", ABOUT, symbols)
    front = f"{name:<16} {kind_of(view):<8} {view.status.value:<9}"
    return "  ".join(filter(None, (front, used, what))).rstrip()


def item_lines(item: AgentEventItem, symbols: Symbols) -> list[str]:
    """An item of a transcript, short."""
    match item:
        case AgentText(kind=AgentTextKind.THINKING, text=text):
            return [f"{symbols.thinking}{one_line(text, LINE, symbols)}"]
        case AgentText(text=text):
            return clean(text).strip("\n").splitlines()
        case AgentToolCall(tool=tool, input=given):
            return [f"{symbols.tool}{one_line(tool, LABEL, symbols)}  {about(given, symbols)}".rstrip()]
        case AgentToolResult(result=result, is_error=is_error):
            said = one_line(result, LINE, symbols)
            return [f"  {symbols.bad}{said or 'failed'}" if is_error else f"  {symbols.good}{said or 'done'}"]
        case AgentLifecycle(event=event, reason=reason):
            why = "" if reason in (None, event.value) else f" ({clean(reason or '').replace('_', ' ')})"
            return [f"{symbols.note}{event.value.replace('_', ' ')}{why}"]
