"""Which agents a live session follows, over any number of connections.  No I/O."""

from attrs import define, field

from nerve.contract.generated.frames_client import AgentSubscribeFrame, AgentUnsubscribeFrame

MAX_FOLLOWED = 8  # what a server allows; a ninth drops the oldest


@define(eq=False)
class Subscriptions:
    session_id: str
    _followed: dict[str, None] = field(factory=dict, init=False)  # oldest first
    _due: list[AgentSubscribeFrame | AgentUnsubscribeFrame] = field(factory=list, init=False)

    def add(self, agent_id: str) -> None:
        """Nothing if it is followed already."""
        if agent_id in self._followed:
            return
        while len(self._followed) >= MAX_FOLLOWED:
            self.remove(next(iter(self._followed)))
        self._followed[agent_id] = None
        self._due.append(AgentSubscribeFrame(session_id=self.session_id, agent_id=agent_id))

    def remove(self, agent_id: str) -> None:
        if agent_id in self._followed:
            del self._followed[agent_id]
            self._due.append(AgentUnsubscribeFrame(session_id=self.session_id, agent_id=agent_id))

    def disconnected(self) -> None:
        """Subscriptions end with their connection."""
        self._due = [AgentSubscribeFrame(session_id=self.session_id, agent_id=followed) for followed in self._followed]

    def due(self) -> list[AgentSubscribeFrame | AgentUnsubscribeFrame]:
        """What has to go out now; it counts as sent."""
        due, self._due = self._due, []
        return due
