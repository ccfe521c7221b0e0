"""``ask_form``: the agent asks the person who watches for several things at once (contract chapter WebSocket)."""

from typing import Any

from nerve.adapters.protocol import Denied, InteractionRequest, ToolResult
from nerve.contract.generated.entities import InteractionType
from nerve.domain.forms import BadForm, normalised, told
from nerve.tools.tool import Tool, ToolContext


async def run(context: ToolContext, given: dict[str, Any]) -> ToolResult:
    """Waits for the person, an hour at most."""
    try:
        form = normalised(given)
    except BadForm as wrong:
        return ToolResult(str(wrong), is_error=True)
    # A call of a tool does not say which agent made it, so the orchestrator counts as the one who asks.
    reply = await context.ask(InteractionRequest(InteractionType.FORM, "ask_form", form))
    if isinstance(reply, Denied):
        return ToolResult(reply.message, is_error=True)
    return ToolResult(told(form, (reply.result or {}).get("answers", {})))


TOOL = Tool("ask_form", run)
