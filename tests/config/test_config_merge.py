"""Layers over each other, as properties."""

from typing import Any

from config_house import unhurried
from hypothesis import given
from hypothesis import strategies as st

from nerve.config.merge import merge

KEYS = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "${Y}"])
TREES = st.recursive(
    st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=2), max_size=3),
    lambda inner: st.dictionaries(KEYS, inner | SCALARS, max_size=3),
    max_leaves=12,
)


def walk(tree: dict[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            found |= walk(value, (*path, key))
        else:
            found[(*path, key)] = value
    return found


def at(tree: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


@unhurried
@given(TREES, TREES)
def test_everything_the_higher_layer_says_stands(lower: dict[str, Any], higher: dict[str, Any]) -> None:
    merged = merge(lower, higher)
    for path, value in walk(higher).items():
        kept = at(merged, path)
        if isinstance(kept, dict):
            assert value is None or value == {}
        else:
            assert kept == value


@unhurried
@given(TREES, TREES)
def test_what_only_the_lower_layer_says_is_kept_and_nothing_is_invented(
    lower: dict[str, Any], higher: dict[str, Any]
) -> None:
    merged = merge(lower, higher)
    assert merged.keys() == lower.keys() | higher.keys()
    for key in lower.keys() - higher.keys():
        assert merged[key] == lower[key]
    for key in lower.keys() & higher.keys():
        below, above = lower[key], higher[key]
        if isinstance(below, dict) and isinstance(above, dict):
            assert merged[key] == merge(below, above)


@unhurried
@given(TREES, TREES, TREES)
def test_layers_can_be_laid_one_by_one(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    assert merge(merge({}, a), {}) == a == merge(a, a)
    before = (repr(a), repr(b), repr(c))
    merge(merge(a, b), c)
    assert (repr(a), repr(b), repr(c)) == before


def test_lists_and_scalars_replace_outright() -> None:
    assert merge({"a": [1, 2], "b": {"c": 1}}, {"a": [3], "b": 4}) == {"a": [3], "b": 4}
    assert merge({"a": 1}, {"a": {"b": 2}}) == {"a": {"b": 2}}


def test_an_empty_heading_leaves_the_section_below_alone_and_an_empty_value_replaces() -> None:
    assert merge({"gateway": {"port": 1}}, {"gateway": None}) == {"gateway": {"port": 1}}
    assert merge({"port": 1, "hosts": ["x"]}, {"port": None, "hosts": None}) == {"port": None, "hosts": None}
