"""A session's sub-agents as a client keeps them: the roster, one transcript in order.  No I/O."""

from collections.abc import Iterable

from attrs import define, field, frozen

from nerve.client.following import LiveEvent
from nerve.contract.generated.entities import AgentCapabilities, AgentEventItem, AgentStatus, AgentSummary, AgentView
from nerve.contract.generated.frames_server import AgentUpdateFrame, SessionStatusFrame

LIVE = frozenset({AgentStatus.STARTING, AgentStatus.RUNNING, AgentStatus.STOPPING})


@frozen
class AgentChange:
    """``before`` is None for an agent that was not known."""

    before: AgentView | None
    now: AgentView

    @property
    def began(self) -> bool:
        """It works now and did not before: a new one, or one that was resumed."""
        return self.now.status in LIVE and (self.before is None or self.before.status not in LIVE)

    @property
    def ended(self) -> bool:
        return self.now.status not in LIVE and (self.before is None or self.before.status in LIVE)


@define(eq=False)
class Roster:
    """The agents of the session that it is shown every event of (``see``), oldest first."""

    summary: AgentSummary | None = field(default=None, init=False)
    capabilities: AgentCapabilities | None = field(default=None, init=False)
    _views: dict[str, AgentView] = field(factory=dict, init=False)

    @property
    def agents(self) -> list[AgentView]:
        return list(self._views.values())

    @property
    def live(self) -> list[AgentView]:
        """Without the runtime's housekeeping."""
        return [view for view in self._views.values() if view.status in LIVE and not view.ambient]

    def get(self, agent_id: str) -> AgentView | None:
        return self._views.get(agent_id)

    def named(self, name: str) -> list[AgentView]:
        """Those with this id or, else, this label; live ones first, and the newest first among them."""
        if (found := self._views.get(name)) is not None:
            return [found]
        called = [view for view in reversed(self._views.values()) if view.label == name]
        return sorted(called, key=lambda view: view.status not in LIVE)

    def see(self, event: LiveEvent) -> list[AgentChange]:
        """What is new in it.  Of an agent the view with the highest ``rev`` counts, whatever comes later."""
        match event:
            case SessionStatusFrame(agents=snapshot):
                known, self._views = self._views, {}
                self.summary, self.capabilities = snapshot.summary, snapshot.capabilities
                return self._take(snapshot.agents, known)
            case AgentUpdateFrame(agents=views, summary=summary):
                self.summary = summary
                return self._take(views, self._views)
            case _:
                return []

    def _take(self, views: Iterable[AgentView], known: dict[str, AgentView]) -> list[AgentChange]:
        changes = []
        for view in views:
            before = known.get(view.id)
            if before is None or view.rev > before.rev:
                changes.append(AgentChange(before, view))
                self._views[view.id] = view
            else:
                self._views[view.id] = before
        return changes


@define(eq=False)
class Transcript:
    """Brings pages and live items of one agent's transcript into one order, each item once.

    ``seen`` is the number of the last item given out; items count from 1 without a gap.  To begin with a page of the
    newest ones instead of the first, set it to the number before that page.
    """

    agent_id: str
    seen: int = 0
    _ahead: dict[int, AgentEventItem] = field(factory=dict, init=False)

    @property
    def incomplete(self) -> bool:
        """Items are missing that have to be read, behind ``seen``."""
        return bool(self._ahead)

    def take(self, items: Iterable[AgentEventItem]) -> list[AgentEventItem]:
        """Those that are next."""
        self._ahead.update((item.seq, item) for item in items if item.seq > self.seen)
        given = []
        while (item := self._ahead.pop(self.seen + 1, None)) is not None:
            self.seen += 1
            given.append(item)
        return given
