"""Rules of agents over plain values: numbers that only grow, kinds, names, cuts, pages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.contract.generated.entities import AgentEndReason, AgentKind, AgentStatus
from nerve.domain import agents
from nerve.domain.agent_items import cut, cut_input
from nerve.domain.agent_kinds import activity, kind_of
from nerve.domain.agents import AgentRecord
from nerve.domain.prices import output_cost

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)


def record(**facts: Any) -> AgentRecord:
    known = {"id": "ag_1", "session_id": "s", "backend": "scripted", "kind": AgentKind.AGENT, "ref": "r"}
    return AgentRecord(**{**known, "created_at": NOW, **facts})


@pytest.mark.req("AGENT-11")
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_rev_grows_whatever_the_clock_does(milliseconds: list[int]) -> None:
    rev = 0
    for offset in milliseconds:
        now = NOW + timedelta(milliseconds=offset)
        before, rev = rev, agents.next_rev(rev, now)
        assert rev > before
        assert rev >= int(now.timestamp() * 1_000_000)


@pytest.mark.req("AGENT-11")
def test_every_change_of_a_record_has_a_greater_rev() -> None:
    begun = record()
    running = agents.started(begun, NOW)
    stopping = agents.stop_requested(running, AgentEndReason.USER, "act_1", NOW)
    over = agents.ended(stopping, *agents.stopped(stopping), NOW)
    again = agents.resumed(over, NOW)
    lost = agents.interrupted(again, AgentEndReason.GATEWAY_RESTART, NOW)
    seen = agents.acknowledged(lost, NOW)
    revs = [each.rev for each in (begun, running, stopping, over, again, lost, seen)]
    assert revs == sorted(set(revs))
    # What changes nothing has no new number.
    assert agents.stop_requested(stopping, AgentEndReason.STOP_ALL, "act_2", NOW) is stopping
    assert agents.acknowledged(seen, NOW) is seen


@pytest.mark.req("AGENT-10")
@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("claude-fable-5-1", 50),
        ("claude-opus-5-5", 25),
        ("claude-opus-4-7", 25),
        ("claude-opus-4-20250514", 75),
        ("claude-opus-4-1", 75),
        ("claude-sonnet-5-5", 15),
        ("eu.anthropic.claude-sonnet-4-5-v1:0", 15),
        ("claude-haiku-5-5", 5),
        ("claude-haiku-4-5", 5),
        ("claude-haiku-3-5", 4),
        ("abacus", 25),
        (None, 25),
    ],
)
def test_a_model_has_its_price(model: str | None, price: float) -> None:
    assert output_cost(model, 1_000_000) == price


@pytest.mark.parametrize(
    ("task_type", "kind"),
    [
        ("local_workflow", AgentKind.WORKFLOW),
        ("remote_agent", AgentKind.REMOTE_AGENT),
        ("in_process_teammate", AgentKind.TEAMMATE),
        ("mcp_task", AgentKind.MCP_TASK),
        ("local_agent", AgentKind.AGENT),
        ("local_bash", AgentKind.SHELL),
        ("shell", AgentKind.SHELL),
        ("monitor", AgentKind.MONITOR),
        ("dream", AgentKind.OTHER),
    ],
)
def test_a_kind_follows_from_the_task_type(task_type: str, kind: AgentKind) -> None:
    assert kind_of(task_type) is kind


def test_a_label_is_the_first_name_there_is() -> None:
    names = {"name": "n", "description": "d", "agent_type": "t", "command": "c" * 70, "task_id": "i"}
    for expected in ("n", "d", "t", "c" * 60, "i"):
        assert record(**names).label == expected
        del names[next(iter(names))]
    assert record().label == "ag_1"


@given(TEXT, st.dictionaries(TEXT, TEXT | st.integers() | st.lists(TEXT), max_size=3))
def test_an_activity_is_one_short_line(tool: str, tool_input: dict[str, Any]) -> None:
    line = activity(tool, tool_input)
    assert len(line) <= 120
    assert tool_input or line == tool[:120]


@pytest.mark.req("AGENT-40")
@given(TEXT, st.integers(0, 80))
def test_a_cut_keeps_as_much_as_fits_and_no_half_character(text: str, room: int) -> None:
    kept, size = cut(text, room)
    assert size == len(text.encode())
    assert text.startswith(kept)
    assert len(kept.encode()) <= room
    assert kept == text or len((kept + text[len(kept)]).encode()) > room


VALUES = st.recursive(
    TEXT | st.integers(0, 2**53) | st.booleans() | st.none(), lambda v: st.lists(v, max_size=3), max_leaves=5
)


@pytest.mark.req("AGENT-40")
@given(st.dictionaries(TEXT, VALUES, max_size=5), st.integers(1, 100))
def test_a_cut_input_has_no_more_than_its_bound(tool_input: dict[str, Any], room: int) -> None:
    kept, full_size = cut_input(tool_input, room)
    whole = len(orjson.dumps(tool_input))
    if full_size is None:
        assert kept == tool_input
        assert whole <= room
        return
    assert full_size == whole > room
    said = sum(len(v.encode()) if isinstance(v, str) else len(orjson.dumps(v)) for v in kept.values())
    assert said + sum(len(key.encode()) for key in kept) <= room
    for key, value in kept.items():
        assert tool_input[key].startswith(value) if isinstance(value, str) else tool_input[key] == value


@pytest.mark.req("AGENT-07", "AGENT-08")
@pytest.mark.parametrize("reason", AgentEndReason)
def test_what_the_house_ends_is_interrupted_and_what_people_stop_is_stopped(reason: AgentEndReason) -> None:
    stopping = agents.stop_requested(record(status=AgentStatus.RUNNING), reason, None, NOW)
    over = agents.ended(stopping, *agents.stopped(stopping), NOW)
    house = ("process_ended", "gateway_restart", "force_stop", "model_switch", "archived")
    assert over.end_reason is reason
    assert over.status.value == ("interrupted" if reason.value in house else "stopped")
    assert (over.attention is not None) is (reason.value in house)
