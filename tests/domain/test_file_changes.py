"""What is told of a changed file: status, figures, hunks and their bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.contract.generated.entities import FileStatus
from nerve.contract.generated.files import DiffLineType, FileDiff
from nerve.domain.file_changes import MOST_LINES, Version, file_diff, short_path, stats_of, status_of

ABSENT = Version(False)
TOO_BIG = Version(True)


def text(*lines: str) -> Version:
    return Version(True, "".join(f"{line}\n" for line in lines).encode())


def diff(before: Version, after: Version, context: int = 4, path: str = "/w/a.py") -> FileDiff:
    return file_diff(path, "/w", before, after, context)


def patched(before: list[str], told: FileDiff) -> list[str]:
    """``before`` with the hunks applied, which say where they belong and what they find there."""
    after: list[str] = []
    at = 0
    for hunk in told.hunks:
        start = hunk.old_start - (hunk.old_count > 0)
        after += before[at:start]
        assert len(after) == hunk.new_start - (hunk.new_count > 0)
        at = start
        for line in hunk.lines:
            if line.type is not DiffLineType.ADDITION:
                assert (before[at], line.old_line) == (line.content, at + 1)
                at += 1
            if line.type is not DiffLineType.DELETION:
                after.append(line.content)
                assert line.new_line == len(after)
        assert at == start + hunk.old_count
        assert len(after) == hunk.new_start - (hunk.new_count > 0) + hunk.new_count
    return after + before[at:]


@pytest.mark.req("SESS-75")
@given(
    st.lists(st.sampled_from(["a", "b", "c", "", "def f():"]), max_size=40),
    st.lists(st.sampled_from(["a", "b", "c", "", "def f():"]), max_size=40),
    st.integers(min_value=0, max_value=6),
)
def test_the_hunks_make_the_new_file_of_the_old(old: list[str], new: list[str], context: int) -> None:
    told = diff(text(*old), text(*new), context)
    assert patched(old, told) == new
    lines = [line for hunk in told.hunks for line in hunk.lines]
    assert told.stats.additions == sum(line.type is DiffLineType.ADDITION for line in lines)
    assert told.stats.deletions == sum(line.type is DiffLineType.DELETION for line in lines)
    assert (told.stats, told.truncated, told.binary) == (stats_of(text(*old), text(*new)), False, False)


def test_a_hunk_in_full() -> None:
    old = ["import os", "", "class Foo:", *["    # one"] * 6, "    def bar(self):", "        return None", "", "end"]
    new = [*old[:10], "        return 42", *old[11:]]
    (hunk,) = diff(text(*old), text(*new), 2).hunks
    assert (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count) == (9, 5, 9, 5)
    assert hunk.header == "class Foo:"
    assert [(line.type.value, line.content, line.old_line, line.new_line) for line in hunk.lines[1:4]] == [
        ("context", "    def bar(self):", 10, 10),
        ("deletion", "        return None", 11, hunk.lines[2].new_line),
        ("addition", "        return 42", hunk.lines[3].old_line, 11),
    ]


def test_changes_near_each_other_share_a_hunk() -> None:
    old = [str(n) for n in range(30)]
    new = [*old[:5], "x", *old[6:9], "y", *old[10:25], "z", *old[26:]]
    assert [len(diff(text(*old), text(*new), context).hunks) for context in (0, 1, 2, 8)] == [3, 3, 2, 1]


def test_headers_are_the_nearest_line_above_and_never_endless() -> None:
    old = ["def a():", *["  1"] * 20, "x" * 500, *["  2"] * 20, "  3", *["  4"] * 20, "  5"]
    new = ["  7" if line == "  3" else "  6" if line == "  5" else line for line in old]
    new[10] = "  changed"
    assert [hunk.header for hunk in diff(text(*old), text(*new), 1).hunks] == ["def a():", "x" * 80, "x" * 80]


@pytest.mark.parametrize(
    ("before", "after", "status", "figures"),
    [
        (ABSENT, text("a", "b"), FileStatus.CREATED, (2, 0)),
        (text("a"), ABSENT, FileStatus.DELETED, (0, 1)),
        (text("a"), text("b"), FileStatus.MODIFIED, (1, 1)),
        (text("a"), Version(True, b"a"), FileStatus.MODIFIED, (1, 1)),  # a last line without its end is another one
        (text("a"), Version(True, b"a\r\n"), FileStatus.MODIFIED, (1, 1)),
        (ABSENT, Version(True, b""), FileStatus.CREATED, (0, 0)),
        (text("a"), text("a"), None, (0, 0)),
        (ABSENT, ABSENT, None, (0, 0)),
        (TOO_BIG, text("a"), FileStatus.MODIFIED, (0, 0)),
        (TOO_BIG, TOO_BIG, FileStatus.MODIFIED, (0, 0)),
        (TOO_BIG, ABSENT, FileStatus.DELETED, (0, 0)),
        (ABSENT, TOO_BIG, FileStatus.CREATED, (0, 0)),
    ],
)
def test_status_and_figures(before: Version, after: Version, status: FileStatus, figures: tuple[int, int]) -> None:
    assert status_of(before, after) is status
    stats = stats_of(before, after)
    assert (stats.additions, stats.deletions) == figures
    told = diff(before, after)
    assert told.stats == stats
    assert told.status is (status or (FileStatus.MODIFIED if after.exists else FileStatus.DELETED))
    assert told.binary is (TOO_BIG in (before, after))


@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"a\0b\n", "ö".encode("latin-1")])
def test_what_is_no_text_is_binary(data: bytes) -> None:
    for before, after in (
        (Version(True, data), text("a")),
        (text("a"), Version(True, data)),
        (ABSENT, Version(True, data)),
    ):
        told = diff(before, after, path="/w/a.md")
        assert (told.binary, told.hunks, told.truncated, told.stats.additions) == (True, [], False, 0)


@pytest.mark.parametrize("lines", [MOST_LINES - 1, MOST_LINES, MOST_LINES + 1])
def test_a_long_diff_is_cut_and_its_figures_are_not(lines: int) -> None:
    told = diff(ABSENT, text(*(str(n) for n in range(lines))))
    assert told.truncated is (lines > MOST_LINES)
    assert told.stats.additions == lines
    (hunk,) = told.hunks
    assert (hunk.new_count, len(hunk.lines)) == (min(lines, MOST_LINES),) * 2


def test_a_cut_between_and_inside_hunks_keeps_the_counts_true() -> None:
    old = [str(n) for n in range(9000)]
    new = [line if n % 9 else "x" for n, line in enumerate(old)]
    told = diff(text(*old), text(*new), 1)
    assert told.truncated
    assert sum(len(hunk.lines) for hunk in told.hunks) == MOST_LINES
    assert told.stats.additions == told.stats.deletions == 1000
    last = told.hunks[-1]
    assert last.old_count == sum(line.type is not DiffLineType.ADDITION for line in last.lines)
    assert patched(old, told)[: last.new_start] == new[: last.new_start]


@pytest.mark.req("SESS-76", "SESS-77", "SESS-78")
def test_markdown_comes_whole_up_to_its_bound() -> None:
    long = text(*["line"] * (MOST_LINES + 1))
    for path, before, after, content, cut in (
        ("/w/a.md", text("old"), text("new", "er"), "new\ner\n", False),
        ("/w/A.MARKDOWN", text("old"), ABSENT, "old\n", False),
        ("/w/a.md", ABSENT, long, "line\n" * MOST_LINES, True),
        ("/w/a.md", ABSENT, text(*["line"] * MOST_LINES), "line\n" * MOST_LINES, False),
        ("/w/a.md", ABSENT, Version(True, b"\xff"), None, False),
        ("/w/a.md", ABSENT, TOO_BIG, None, False),
        ("/w/a.py", text("old"), text("new"), None, False),
        ("/w/md", text("old"), long, None, False),
    ):
        told = diff(before, after, path=path)
        assert (told.markdown_content, told.markdown_truncated) == (content, cut)


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/home/ada/nerve-workspace/notes/a.md", "notes/a.md"),
        ("/home/ada/nerve-workspace-2/a.md", "nerve-workspace-2/a.md"),
        ("/home/ada/project/foo.py", "project/foo.py"),
        ("/home/ada/foo.py", "foo.py"),
        ("/home/foo.py", "/home/foo.py"),
        ("/Users/ada/project/foo.py", "project/foo.py"),
        ("/srv/code/foo.py", "/srv/code/foo.py"),
        ("/homes/ada/foo.py", "/homes/ada/foo.py"),
    ],
)
def test_short_paths(path: str, short: str) -> None:
    assert short_path(path, "/home/ada/nerve-workspace") == short
