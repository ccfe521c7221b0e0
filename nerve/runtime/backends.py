"""Which agent runtimes there are, and which one a new session gets (scripted-runtime.md, decisions D4)."""

from collections.abc import Mapping

from attrs import field, frozen

from nerve.adapters.protocol import AgentAdapter
from nerve.errors import ErrorCode, NerveError

FALLBACK = "scripted"


@frozen
class BackendChoice:
    """``reason`` says why the fallback stands in for the configured runtime; None when it doesn't."""

    backend: str
    reason: str | None = None


@frozen
class Backends:
    """``known`` are all names that the configuration may carry; ``adapters`` those that this build can open."""

    configured: str
    adapters: Mapping[str, AgentAdapter] = field(repr=False)
    known: tuple[str, ...] = ("claude", "codex", "scripted")

    def adapter(self, backend: str) -> AgentAdapter:
        adapter = self.adapters.get(backend)
        if adapter is None:
            raise NerveError(ErrorCode.BACKEND_UNAVAILABLE, message=absence(backend))
        return adapter

    async def choose(self, requested: str | None = None) -> BackendChoice:
        """For a new session.  A runtime that was asked for by name is never replaced by a script.

        Raises UNKNOWN_BACKEND and BACKEND_UNAVAILABLE.
        """
        if requested is not None:
            if requested not in self.known:
                raise NerveError(ErrorCode.UNKNOWN_BACKEND, backend=requested)
            reason = await self._unavailable(requested)
            if reason is not None:
                raise NerveError(ErrorCode.BACKEND_UNAVAILABLE, message=reason)
            return BackendChoice(requested)
        reason = await self._unavailable(self.configured)
        return BackendChoice(self.configured) if reason is None else BackendChoice(FALLBACK, reason)

    async def _unavailable(self, backend: str) -> str | None:
        adapter = self.adapters.get(backend)
        if adapter is None:
            return absence(backend)
        found = await adapter.availability()
        return None if found.available else found.reason or absence(backend)


def absence(backend: str) -> str:
    """Why sessions can't run on a runtime that this build has no adapter for; for people."""
    return f"The agent runtime {backend} is not available on this server."
