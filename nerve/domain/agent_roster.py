"""The agents of one session together: the tree, the summary, what a stop reaches, what a list shows."""

from collections.abc import Collection, Iterable, Mapping

from attrs import frozen

from nerve.contract.generated.entities import AgentEndReason, AgentStatus, AgentSummary
from nerve.domain.agents import AgentRecord


def summarised(records: Iterable[AgentRecord]) -> AgentSummary:
    """Housekeeping is left out."""
    counted = [record for record in records if not record.ambient]
    live = [record for record in counted if record.live]
    by_status = dict.fromkeys((status.value for status in AgentStatus), 0)
    for record in counted:
        by_status[record.status.value] += 1
    return AgentSummary(
        total=len(counted),
        live=len(live),
        **by_status,
        attention=sum(record.attention is not None for record in counted),
        shells_live=sum(record.is_shell for record in live),
        tokens=sum(record.tokens for record in counted),
        cost_usd=round(sum(record.cost_usd for record in counted), 6),
        oldest_live_started_at=min((r.started_at for r in live if r.started_at is not None), default=None),
    )


def listed(records: Collection[AgentRecord], limit: int) -> list[AgentRecord]:
    """Every live one and the newest ended ones, at most ``limit`` in all unless more are live; oldest first."""
    live = [record for record in records if record.live]
    room = max(0, limit - len(live))
    ended = sorted((r for r in records if not r.live), key=lambda r: (r.ended_at or r.created_at, r.created_at))
    return sorted([*live, *(ended[-room:] if room else ())], key=lambda r: (r.created_at, r.depth, r.id))


def depth_below(parent: AgentRecord | None) -> int:
    return 1 if parent is None else parent.depth + 1


def reach(records: Mapping[str, AgentRecord], agent_id: str) -> list[AgentRecord]:
    """The agent and all that it started, directly or not, and that is live; deepest first."""
    children: dict[str | None, list[AgentRecord]] = {}
    for record in records.values():
        children.setdefault(record.parent_agent_id, []).append(record)
    found, next_level = [records[agent_id]], [records[agent_id]]
    while next_level := [child for parent in next_level for child in children.get(parent.id, ())]:
        found += next_level
    return deepest_first(record for record in found if record.live)


def deepest_first(records: Iterable[AgentRecord]) -> list[AgentRecord]:
    return sorted(records, key=lambda record: -record.depth)


def stopping_ancestor(records: Mapping[str, AgentRecord], record: AgentRecord) -> AgentRecord | None:
    """The nearest live ancestor, if it is to stop: what appears beneath it is born stopping.

    One that lives on beneath a stopping ancestor was spared, and so is what it starts.
    """
    parent = records.get(record.parent_agent_id or "")
    while parent is not None and not parent.live:
        parent = records.get(parent.parent_agent_id or "")
    return parent if parent is not None and parent.status is AgentStatus.STOPPING else None


def waited_for(records: Mapping[str, AgentRecord], record: AgentRecord | None) -> bool:
    """Whether a turn waits for it: live and in the foreground all the way up to the orchestrator."""
    while record is not None:
        if record.background or not record.live:
            return False
        if record.parent_agent_id is None:
            return True
        record = records.get(record.parent_agent_id)
    return False


def outliving_the_turn(records: Mapping[str, AgentRecord]) -> list[AgentRecord]:
    """The live agents, housekeeping left out, that go on when the turn is over."""
    return [record for record in records.values() if record.counts and not waited_for(records, record)]


@frozen
class StopOrder:
    """A stop of a session's turn, or of everything in it.

    It stands until the turn is over: whatever it reaches that appears meanwhile is born stopping.  ``whole``: also what
    the turn does not wait for, shells and monitors among it only with ``shells``.
    """

    cause: AgentEndReason
    actor_id: str | None
    whole: bool
    shells: bool = True

    def reaches(self, records: Mapping[str, AgentRecord], record: AgentRecord) -> bool:
        return waited_for(records, record) or (self.whole and (self.shells or not record.is_shell))

    def targets(self, records: Mapping[str, AgentRecord]) -> list[AgentRecord]:
        """Deepest first."""
        return deepest_first(r for r in records.values() if r.live and self.reaches(records, r))

    def widened_by(self, other: "StopOrder") -> "StopOrder":
        """The one that stands when another stop comes: a narrower one takes nothing back."""
        return other if (other.whole, other.shells) >= (self.whole, self.shells) else self
