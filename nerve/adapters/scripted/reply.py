"""The built-in reply: what was received, that no model is configured, and how to configure one."""

PREVIEW_CHARACTERS = 80


def built_in_reply(prompt: str, reason: str | None) -> str:
    """``reason`` says why the configured runtime is not used; None: the scripted runtime is the configured one."""
    preview = " ".join(prompt[: PREVIEW_CHARACTERS * 4].split())
    if len(preview) > PREVIEW_CHARACTERS or len(prompt) > PREVIEW_CHARACTERS * 4:
        preview = preview[:PREVIEW_CHARACTERS].rstrip() + "…"
    received = f"I received your message: “{preview}”." if preview else "I received an empty message."
    if reason is None:
        why = "No model is configured: `agent.backend` is `scripted`, so this answer comes from a script."
        how = (
            "To talk to a model, set `agent.backend` to `claude` or `codex` in `config.yaml` and give a credential, "
            "for example `anthropic_api_key` in `config.local.yaml` or `ANTHROPIC_API_KEY` in the environment; "
            "then run `nerve restart`."
        )
    else:
        why = f"No model is configured, so this answer comes from a script. The reason: {reason.strip().rstrip('.')}."
        how = (
            "To talk to a model, give a credential, for example `anthropic_api_key` in `config.local.yaml` or "
            "`ANTHROPIC_API_KEY` in the environment; `agent.backend` chooses the runtime. Then run `nerve restart`."
        )
    return f"{received}\n\n{why}\n\n{how}"
