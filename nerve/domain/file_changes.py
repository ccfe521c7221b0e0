"""What became of a file, and how that is told: status, figures, hunks (sessions-and-agents.md section 10)."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from attrs import field, frozen

from nerve.contract.generated.entities import DiffStats, FileStatus
from nerve.contract.generated.files import DiffHunk, DiffLine, DiffLineType, FileDiff
from nerve.domain.matching import Block, matching_blocks

MOST_LINES = 2000  # of one diff, and of the Markdown text beside it
MOST_HEADER = 80
MARKDOWN = (".md", ".markdown")
HOMES = ("/home", "/Users")  # directories of home directories

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BEGINS = re.compile(r"[A-Za-z_$]")


@frozen
class Version:
    """A file at one time; ``data`` is None for one that is missing or whose content can't be had."""

    exists: bool
    data: bytes | None = field(default=None, repr=False)


def status_of(before: Version, after: Version) -> FileStatus | None:
    """None for a file that is as it was.  What can't be compared counts as modified."""
    if before.exists != after.exists:
        return FileStatus.CREATED if after.exists else FileStatus.DELETED
    if not before.exists or (before.data is not None and before.data == after.data):
        return None
    return FileStatus.MODIFIED


def stats_of(before: Version, after: Version) -> DiffStats:
    """Zero for what is no text on one of the sides."""
    old, new = lines_of(before), lines_of(after)
    if old is None or new is None:
        return DiffStats(additions=0, deletions=0)
    return _stats(old, new, matching_blocks(old, new))


def _stats(old: list[str], new: list[str], blocks: Iterable[Block]) -> DiffStats:
    common = sum(block.size for block in blocks)
    return DiffStats(additions=len(new) - common, deletions=len(old) - common)


def lines_of(version: Version) -> list[str] | None:
    """The lines with their line feeds, so that a last one without is another line; None for what is no UTF-8 text."""
    if not version.exists:
        return []
    if version.data is None or b"\0" in version.data:
        return None
    try:
        return _LINE.findall(version.data.decode())
    except UnicodeDecodeError:
        return None


def short_path(path: str, workspace: str) -> str:
    """Relative to the workspace; else, below a directory of homes, without the home's own name."""
    whole = PurePosixPath(path)
    if whole.is_relative_to(workspace):
        return str(whole.relative_to(workspace))
    for homes in HOMES:
        if whole.is_relative_to(homes) and len(below := whole.relative_to(homes).parts) > 1:
            return str(PurePosixPath(*below[1:]))
    return path


def file_diff(path: str, workspace: str, before: Version, after: Version, context: int) -> FileDiff:
    """The whole answer for one file.  Of a file that is as it was: no hunks, and the status of how it is now."""
    old, new = lines_of(before), lines_of(after)
    binary = old is None or new is None
    blocks = [] if old is None or new is None else matching_blocks(old, new)
    hunks, truncated = _told(_hunks(old or [], new or [], blocks, context))
    text, text_truncated = _markdown(path, new if after.exists else old)
    as_it_was = FileStatus.MODIFIED if after.exists else FileStatus.DELETED
    return FileDiff(
        path=path,
        short_path=short_path(path, workspace),
        status=status_of(before, after) or as_it_was,
        binary=binary,
        stats=DiffStats(additions=0, deletions=0) if binary else _stats(old or [], new or [], blocks),
        hunks=[] if binary else hunks,
        truncated=truncated and not binary,
        markdown_content=text,
        markdown_truncated=text_truncated,
    )


def _markdown(path: str, lines: list[str] | None) -> tuple[str | None, bool]:
    if lines is None or not path.lower().endswith(MARKDOWN):
        return None, False
    return "".join(lines[:MOST_LINES]), len(lines) > MOST_LINES


# --- hunks --------------------------------------------------------------------------------------------------------


@frozen
class _Change:
    """Lines of old and new, from and to, that stand for each other and differ."""

    old: tuple[int, int]
    new: tuple[int, int]


def _changes(old: list[str], new: list[str], blocks: Iterable[Block]) -> Iterator[_Change]:
    i = j = 0
    for block in (*blocks, Block(len(old), len(new), 0)):
        if i < block.old or j < block.new:
            yield _Change((i, block.old), (j, block.new))
        i, j = block.old + block.size, block.new + block.size


def _groups(changes: Iterable[_Change], context: int) -> Iterator[list[_Change]]:
    """Changes whose contexts meet."""
    group: list[_Change] = []
    for change in changes:
        if group and change.old[0] - group[-1].old[1] > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunks(old: list[str], new: list[str], blocks: Iterable[Block], context: int) -> Iterator[DiffHunk]:
    header, looked_at = "", 0
    for group in _groups(_changes(old, new, blocks), context):
        before = min(context, group[0].old[0])
        start = group[0].old[0] - before
        end = min(len(old), group[-1].old[1] + context)
        begins = (old[n] for n in range(start - 1, looked_at - 1, -1) if _BEGINS.match(old[n]))
        header, looked_at = next(begins, header), max(looked_at, start)
        lines = list(_lines(old, new, group, start, end))
        yield _hunk(lines, start, group[0].new[0] - before, header.rstrip()[:MOST_HEADER])


def _lines(old: list[str], new: list[str], group: list[_Change], start: int, end: int) -> Iterator[DiffLine]:
    """The lines of one hunk, from line ``start`` to line ``end`` of the old side."""
    i, j = start, group[0].new[0] - (group[0].old[0] - start)
    for change in (*group, _Change((end, end), (0, 0))):
        while i < change.old[0]:
            yield DiffLine(type=DiffLineType.CONTEXT, content=_shown(old[i]), old_line=i + 1, new_line=j + 1)
            i, j = i + 1, j + 1
        for n in range(*change.old):
            yield DiffLine(type=DiffLineType.DELETION, content=_shown(old[n]), old_line=n + 1)
        for n in range(*change.new):
            yield DiffLine(type=DiffLineType.ADDITION, content=_shown(new[n]), new_line=n + 1)
        i, j = change.old[1], change.new[1]


def _shown(line: str) -> str:
    return line.removesuffix("\n")


def _hunk(lines: list[DiffLine], old_before: int, new_before: int, header: str) -> DiffHunk:
    """``old_before`` and ``new_before``: how many lines stand before it.  A side without lines starts at the last."""
    old_count = sum(line.type is not DiffLineType.ADDITION for line in lines)
    new_count = sum(line.type is not DiffLineType.DELETION for line in lines)
    return DiffHunk(
        old_start=old_before + (old_count > 0),
        old_count=old_count,
        new_start=new_before + (new_count > 0),
        new_count=new_count,
        header=header,
        lines=lines,
    )


def _told(hunks: Iterable[DiffHunk]) -> tuple[list[DiffHunk], bool]:
    """As many hunks as the bound allows, the last one cut, and whether there are more."""
    told: list[DiffHunk] = []
    room = MOST_LINES
    for hunk in hunks:
        if not room:
            return told, True
        if len(hunk.lines) > room:
            old_before, new_before = hunk.old_start - (hunk.old_count > 0), hunk.new_start - (hunk.new_count > 0)
            told.append(_hunk(hunk.lines[:room], old_before, new_before, hunk.header))
            return told, True
        told.append(hunk)
        room -= len(hunk.lines)
    return told, False
