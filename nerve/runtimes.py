"""Which agent runtimes this build can open, made from the configuration."""

from nerve.adapters.protocol import AgentAdapter
from nerve.adapters.scripted import ScriptedAdapter
from nerve.config import Config
from nerve.effects import Effects
from nerve.processes import Children
from nerve.runtime.backends import FALLBACK, Backends, absence


def backends_of(config: Config, effects: Effects, children: Children | None = None) -> Backends:
    """``agent.backend`` is the configured one; the scripted one stands in where that can't be opened.

    ``children`` are the house's processes; without them no runtime starts one.
    """
    configured = config.agent.backend
    reason = None if configured == FALLBACK else absence(configured)
    scripted: AgentAdapter = ScriptedAdapter(
        directory=config.paths.home / "scripted",
        workspace=config.workspace,
        effects=effects,
        reason=reason,
        closed=(config.paths.home, config.workspace / "config"),
        children=children if config.scripted.allow_run else None,
    )
    return Backends(configured, {scripted.name: scripted})
