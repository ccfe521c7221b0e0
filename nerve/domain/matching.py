"""Which lines two texts have in common, in order: the heart of a diff, within a bound of work.

What only one side has is set aside, lines that both have exactly once are anchors (patience), and what lies between
goes to Myers' algorithm.  A stretch that would cost too much is not matched at all: the diff then shows it as replaced,
which is right, if longer than it need be.  The bound counts steps, so that the same texts always give the same diff.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from attrs import define, frozen

EFFORT = 1_000_000  # steps beyond a few per line; about half a second
MOST_EDITS = 1000  # of one stretch; what Myers keeps grows with their square


@frozen
class Block:
    """``size`` lines that are the same from ``old`` on and from ``new`` on; both count from 0."""

    old: int
    new: int
    size: int


@define
class _Budget:
    left: int

    def spend(self, steps: int) -> bool:
        """False if they are not there any more."""
        self.left -= steps
        return self.left >= 0


def matching_blocks(old: Sequence[str], new: Sequence[str], effort: int = EFFORT) -> list[Block]:
    """The blocks in order, none adjoining the next on both sides."""
    head = _common_head(old, new, 0, len(old), 0, len(new))
    tail = _common_tail(old, new, head, len(old), head, len(new))
    old_end, new_end = len(old) - tail, len(new) - tail
    pairs = [(n, n) for n in range(head)]
    pairs += _middle(old, new, (head, old_end, head, new_end), _Budget(effort + 4 * (len(old) + len(new))))
    pairs += [(old_end + n, new_end + n) for n in range(tail)]
    return _slid(_joined(pairs), old, new)


_Range = tuple[int, int, int, int]  # of old, then of new: from, to


def _middle(old: Sequence[str], new: Sequence[str], within: _Range, budget: _Budget) -> list[tuple[int, int]]:
    """Pairs of the lines that both sides have."""
    old_from, old_to, new_from, new_to = within
    there, here = set(new[new_from:new_to]), set(old[old_from:old_to])
    kept_old = [n for n in range(old_from, old_to) if old[n] in there]
    kept_new = [n for n in range(new_from, new_to) if new[n] in here]
    numbers: dict[str, int] = {}
    a = [numbers.setdefault(old[n], len(numbers)) for n in kept_old]
    b = [numbers[new[n]] for n in kept_new]
    return sorted((kept_old[i], kept_new[j]) for i, j in _aligned(a, b, budget))


def _aligned(a: Sequence[int], b: Sequence[int], budget: _Budget) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    ranges: list[_Range] = [(0, len(a), 0, len(b))]
    while ranges:
        a0, a1, b0, b1 = ranges.pop()
        head = _common_head(a, b, a0, a1, b0, b1)
        pairs += [(a0 + n, b0 + n) for n in range(head)]
        a0, b0 = a0 + head, b0 + head
        tail = _common_tail(a, b, a0, a1, b0, b1)
        a1, b1 = a1 - tail, b1 - tail
        pairs += [(a1 + n, b1 + n) for n in range(tail)]
        if a0 == a1 or b0 == b1 or not budget.spend(a1 - a0 + b1 - b0):
            continue
        anchors = _anchors(a, b, (a0, a1, b0, b1))
        if anchors:
            pairs += anchors
            ends = [*anchors, (a1, b1)]
            starts = [(a0, b0), *((i + 1, j + 1) for i, j in anchors)]
            ranges += [(i0, i1, j0, j1) for (i0, j0), (i1, j1) in zip(starts, ends, strict=True)]
        else:
            pairs += [(a0 + i, b0 + j) for i, j in _shortest_edit(a[a0:a1], b[b0:b1], budget)]
    return pairs


def _common_head(a: Sequence[object], b: Sequence[object], a0: int, a1: int, b0: int, b1: int) -> int:
    most = min(a1 - a0, b1 - b0)
    return next((n for n in range(most) if a[a0 + n] != b[b0 + n]), most)


def _common_tail(a: Sequence[object], b: Sequence[object], a0: int, a1: int, b0: int, b1: int) -> int:
    most = min(a1 - a0, b1 - b0)
    return next((n for n in range(most) if a[a1 - 1 - n] != b[b1 - 1 - n]), most)


def _anchors(a: Sequence[int], b: Sequence[int], within: _Range) -> list[tuple[int, int]]:
    """The longest rising sequence of what stands exactly once on either side."""
    a0, a1, b0, b1 = within
    once_a, once_b = Counter(a[a0:a1]), Counter(b[b0:b1])
    place = {b[j]: j for j in range(b0, b1) if once_b[b[j]] == 1}
    candidates = [(i, place[a[i]]) for i in range(a0, a1) if once_a[a[i]] == 1 and a[i] in place]
    ends: list[int] = []  # of the sequences of each length, the smallest last number
    at: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(candidates):
        length = bisect_left(ends, j)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        at[length : length + 1] = [n]
    chosen = []
    n = at[-1] if at else -1
    while n >= 0:
        chosen.append(candidates[n])
        n = before[n]
    return chosen[::-1]


def _shortest_edit(a: Sequence[int], b: Sequence[int], budget: _Budget) -> list[tuple[int, int]]:
    """Myers' greedy algorithm; no pairs at all when it would take too many edits or steps."""
    reach = {1: 0}  # diagonal -> how far along a
    trace: list[dict[int, int]] = []
    for edits in range(min(len(a) + len(b), MOST_EDITS) + 1):
        trace.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            start = x = reach[k + 1] if down else reach[k - 1] + 1
            while x < len(a) and x - k < len(b) and a[x] == b[x - k]:
                x += 1
            reach[k] = x
            if not budget.spend(1 + x - start):
                return []
            if x >= len(a) and x - k >= len(b):
                return _way_back(trace, x, x - k)
    return []


def _way_back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, k = trace[edits], x - y
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        from_x = reach[before] if edits else 0
        from_y = from_x - before if edits else 0
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = from_x, from_y
    return pairs[::-1]


def _joined(pairs: list[tuple[int, int]]) -> list[Block]:
    blocks: list[Block] = []
    start, size = (0, 0), 0
    for i, j in pairs:
        if size and (i, j) == (start[0] + size, start[1] + size):
            size += 1
            continue
        if size:
            blocks.append(Block(*start, size))
        start, size = (i, j), 1
    if size:
        blocks.append(Block(*start, size))
    return blocks


def _slid(blocks: list[Block], old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """The same number of matches, with what was only added or only taken away moved beside another change.

    A group may move where the line that it leaves behind is the same as the one that it takes in.  Without another
    change in reach it goes down as far as it can, which is where people would say that something was added.
    """
    ends = [Block(0, 0, 0), *blocks, Block(len(old), len(new), 0)]
    settled = [ends[0]]
    for number, below in enumerate(ends[1:], start=1):
        above = settled[-1]
        start, end, lines = _lone_group(above, below, old, new)
        if start == end:
            settled.append(below)
            continue
        up = next((n for n in range(above.size) if lines[start - 1 - n] != lines[end - 1 - n]), above.size)
        if up == above.size and len(settled) > 1 and not _adjoin(settled[-2], above):
            settled[-1] = Block(below.old - up, below.new - up, below.size + up)
            continue
        down = next((n for n in range(below.size) if lines[start + n] != lines[end + n]), below.size)
        settled[-1] = Block(above.old, above.new, above.size + down)
        if down < below.size or number == len(ends) - 1:
            settled.append(Block(below.old + down, below.new + down, below.size - down))
    return [block for block in settled if block.size]


def _adjoin(first: Block, second: Block) -> bool:
    return (first.old + first.size, first.new + first.size) == (second.old, second.new)


def _lone_group(above: Block, below: Block, old: Sequence[str], new: Sequence[str]) -> tuple[int, int, Sequence[str]]:
    """Where the lines between two blocks are, if only one side has any; an empty stretch if they can't move."""
    i, j = above.old + above.size, above.new + above.size
    if j == below.new:
        return i, below.old, old
    if i == below.old:
        return j, below.new, new
    return 0, 0, ()
