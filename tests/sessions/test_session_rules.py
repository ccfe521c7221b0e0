"""Rules of sessions as pure functions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.contract.generated.sessions import SessionChange
from nerve.domain.sessions import ArchiveWalk, Hindrance, TreeNode, checked_change, deepest_first, hindrance
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.views import LiveState


@st.composite
def trees(draw: st.DrawFn) -> list[TreeNode]:
    """A tree whose root is ``n0``, in any order."""
    size = draw(st.integers(1, 12))
    nodes = [
        TreeNode(f"n{n}", None if n == 0 else f"n{draw(st.integers(0, n - 1))}", draw(st.booleans()))
        for n in range(size)
    ]
    return draw(st.permutations(nodes))


def below(nodes: list[TreeNode], node_id: str) -> set[str]:
    children = {node.id for node in nodes if node.parent_id == node_id}
    return children.union(*(below(nodes, child) for child in children))


@pytest.mark.req("SESS-60")
@given(trees())
def test_every_session_comes_after_its_descendants(nodes: list[TreeNode]) -> None:
    order = [node.id for node in deepest_first(nodes, "n0")]
    assert sorted(order) == sorted(node.id for node in nodes)
    for node in nodes:
        assert all(order.index(child) < order.index(node.id) for child in below(nodes, node.id))


@pytest.mark.req("SESS-61")
@given(nodes=trees(), data=st.data())
def test_ancestors_of_what_stays_stay_and_name_a_child(nodes: list[TreeNode], data: st.DataObject) -> None:
    busy = data.draw(st.sets(st.sampled_from([node.id for node in nodes])))
    walk = ArchiveWalk()
    for node in deepest_first(nodes, "n0"):
        if node.archived:
            walk.pass_by(node)
            continue
        obstacle = "busy" if node.id in busy else walk.kept_by(node)
        if obstacle is None:
            walk.archive(node)
        else:
            walk.skip(node, obstacle)
    live = {node.id for node in nodes if not node.archived}
    skipped = dict(walk.skipped)
    assert set(walk.archived_ids) | skipped.keys() == live
    assert not set(walk.archived_ids) & skipped.keys()
    for node_id in live:
        assert (node_id in skipped) == bool(({node_id} | below(nodes, node_id)) & busy & live)
    for node_id, reason in skipped.items():
        if reason != "busy":
            assert any(f"child session {child} " in reason for child in below(nodes, node_id) & skipped.keys())


@pytest.mark.req("SESS-61", "SESS-62", "SESS-59")
def test_what_hinders_archiving() -> None:
    running = LiveState(is_running=True, background_count=2)
    background = LiveState(background_count=1)
    assert hindrance("a", running, force=False) is Hindrance.RUNNING
    assert hindrance("a", background, force=False) is Hindrance.BACKGROUND
    assert hindrance("a", running, force=True) is None
    assert hindrance("a", LiveState(), force=False) is None
    assert hindrance("main", LiveState(), force=True) is Hindrance.PERMANENT


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (SessionChange(), ErrorCode.NOTHING_TO_UPDATE),
        (SessionChange(title=" \n"), ErrorCode.EMPTY_TITLE),
        (SessionChange(title="x", model=" "), ErrorCode.EMPTY_MODEL),
    ],
)
def test_a_change_that_says_nothing_is_refused(change: SessionChange, code: ErrorCode) -> None:
    with pytest.raises(NerveError) as refused:
        checked_change(change)
    assert refused.value.code is code


def test_texts_of_a_change_are_trimmed_and_null_is_a_parent() -> None:
    assert checked_change(SessionChange(title=" a b ")) == SessionChange(title="a b")
    assert checked_change(SessionChange(parent_session_id=None)) == SessionChange(parent_session_id=None)
