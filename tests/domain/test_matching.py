"""Matching lines: always right, close to the best, and bounded whatever the texts are."""

from hypothesis import given
from hypothesis import strategies as st

from nerve.domain.matching import Block, matching_blocks

TEXTS = st.lists(st.sampled_from("abcdef"), max_size=30)


def check(old: list[str], new: list[str], **bound: int) -> int:
    """Blocks say what is true, in order and apart; how many lines they match."""
    blocks = matching_blocks(old, new, **bound)
    i = j = 0
    for number, block in enumerate(blocks):
        assert block.size > 0
        assert (block.old >= i, block.new >= j) == (True, True)
        assert number == 0 or (block.old, block.new) != (i, j)
        assert old[block.old : block.old + block.size] == new[block.new : block.new + block.size]
        i, j = block.old + block.size, block.new + block.size
    assert i <= len(old)
    assert j <= len(new)
    return sum(block.size for block in blocks)


def longest_common(old: list[str], new: list[str]) -> int:
    row = [0] * (len(new) + 1)
    for line in old:
        before, row = row, [0]
        for n, other in enumerate(new):
            row.append(before[n] + 1 if line == other else max(before[n + 1], row[n]))
    return row[-1]


@given(TEXTS, TEXTS)
def test_what_is_matched_is_the_same(old: list[str], new: list[str]) -> None:
    assert check(old, new) <= longest_common(old, new)


@given(TEXTS, st.integers(min_value=0, max_value=40), st.integers(min_value=0, max_value=10))
def test_one_stretch_taken_away_leaves_the_rest_matched(old: list[str], start: int, size: int) -> None:
    new = old[:start] + old[start + size :]
    assert check(old, new) == len(new)


@given(st.lists(st.sampled_from("ab"), max_size=25), st.lists(st.sampled_from("ab"), max_size=25))
def test_where_nothing_stands_once_the_diff_is_the_shortest(old: list[str], new: list[str]) -> None:
    lines = [old * 2, new * 2]  # no line stands once
    assert check(*lines) == longest_common(*lines)


@given(TEXTS, TEXTS)
def test_without_effort_only_the_ends_are_sure(old: list[str], new: list[str]) -> None:
    check(old, new, effort=-10_000)
    assert check(old, old, effort=-10_000) == len(old)


def test_a_moved_block_and_new_lines() -> None:
    old = ["def a():", "    pass", "", "def b():", "    pass", ""]
    new = ["def a():", "    return 1", "    pass", "", "def c():", "", "def b():", "    pass", ""]
    assert matching_blocks(old, new) == [Block(0, 0, 1), Block(1, 2, 2), Block(3, 6, 3)]


def test_bad_texts_are_given_up_instead_of_compared_for_ever() -> None:
    numbers = [str(n) for n in range(3000)]
    assert check(numbers, numbers[::-1]) == 1
    letters = [str(n * n % 7) for n in range(4000)]
    others = [str(n * n * n % 7) for n in range(4000)]
    assert check(letters, others, effort=-30_000) < 100  # given up early: the budget counts steps, not seconds
