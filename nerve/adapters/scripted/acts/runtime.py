"""``usage``, ``model``, ``capabilities`` and ``unmapped``: what the runtime says about itself."""

from typing import TypeVar

from attrs import evolve

from nerve.adapters.protocol import CapabilitiesChanged, ModelObserved, Usage
from nerve.adapters.scripted.acts.part import Part
from nerve.adapters.scripted.steps import AddUsage, ChangeCapabilities, ServeModel, Unmap

N = TypeVar("N", int, float)


async def perform(part: Part, step: AddUsage | ServeModel | ChangeCapabilities | Unmap) -> None:
    match step:
        case AddUsage(usage=usage):
            part.usage = added(part.usage, usage)
        case ServeModel(model=model, downgrade=downgrade):
            if model != part.stage.model:
                part.stage.model = model
                await part.stage.emit(ModelObserved(model, downgrade))
        case ChangeCapabilities():
            await _change_capabilities(part, step)
        case Unmap():
            part.mapped = False


async def _change_capabilities(part: Part, step: ChangeCapabilities) -> None:
    given = {
        "stop_task": step.stop_task,
        "transcript": step.transcript,
        "output": step.output,
        "interrupt_spares_background": step.interrupt_spares_background,
    }
    changed = evolve(part.stage.capabilities, **{key: on for key, on in given.items() if on is not None})
    if changed != part.stage.capabilities:
        await part.stage.keep_capabilities(changed)
        await part.stage.emit(CapabilitiesChanged(changed))


def added(so_far: Usage | None, more: Usage) -> Usage:
    """Several ``usage`` steps add up (decisions D44); the context window is the last one given."""
    if so_far is None:
        return more
    return Usage(
        so_far.input_tokens + more.input_tokens,
        so_far.output_tokens + more.output_tokens,
        so_far.cache_read_input_tokens + more.cache_read_input_tokens,
        so_far.cache_creation_input_tokens + more.cache_creation_input_tokens,
        _sum(so_far.cost_usd, more.cost_usd),
        more.max_context_tokens if more.max_context_tokens is not None else so_far.max_context_tokens,
        _sum(so_far.num_turns, more.num_turns),
    )


def _sum(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
