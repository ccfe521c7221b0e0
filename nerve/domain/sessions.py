"""Rules of sessions: what may be changed, what a change is recorded as, and which sessions may be archived."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Protocol

from attrs import define, evolve, field, frozen

from nerve.contract.generated.entities import Session, SessionStatus
from nerve.contract.generated.sessions import SessionChange
from nerve.contract.unset import UNSET
from nerve.errors import ErrorCode, NerveError

MAIN_ID = "main"
MAIN_TITLE = "Main"


class SessionEventType(StrEnum):
    """Changes that somebody makes to a session, as its events name them (gaps.md section 5)."""

    CREATED = "created"
    TITLE_CHANGED = "title_changed"
    STARRED = "starred"
    UNSTARRED = "unstarred"
    MODEL_CHANGED = "model_changed"
    PARENT_CHANGED = "parent_changed"
    ARCHIVED = "archived"
    UNARCHIVED = "unarchived"


def checked_change(change: SessionChange) -> SessionChange:
    """The change with its texts trimmed.  Raises NOTHING_TO_UPDATE, EMPTY_TITLE, EMPTY_MODEL."""
    if all(value is UNSET for value in (change.title, change.starred, change.model, change.parent_session_id)):
        raise NerveError(ErrorCode.NOTHING_TO_UPDATE)
    title = change.title if change.title is UNSET else change.title.strip()
    model = change.model if change.model is UNSET else change.model.strip()
    if title == "":
        raise NerveError(ErrorCode.EMPTY_TITLE)
    if model == "":
        raise NerveError(ErrorCode.EMPTY_MODEL)
    return evolve(change, title=title, model=model)


def check_parent(session: Session, parent_id: str, ancestors_of_parent: Collection[str]) -> None:
    """Whether a session may hang under ``parent_id``, which exists.

    Raises PARENT_CYCLE, and SESSION_NOT_STARTED for a session that has not run yet: its parent is where it comes from.
    """
    if session.id == parent_id or session.id in ancestors_of_parent:
        raise NerveError(ErrorCode.PARENT_CYCLE)
    if not has_started(session):
        raise NerveError(ErrorCode.SESSION_NOT_STARTED)


def has_started(session: Session) -> bool:
    """One that was resumed is ``created`` too, but has run."""
    return session.status is not SessionStatus.CREATED or session.sdk_session_id is not None


class LiveState(Protocol):
    """What the supervisor knows of a session at this moment."""

    @property
    def is_running(self) -> bool: ...
    @property
    def awaiting_input(self) -> bool: ...
    @property
    def background_count(self) -> int: ...
    @property
    def has_background_tasks(self) -> bool: ...


class ArchiveReason(StrEnum):
    """Why a session was archived; ``details.reason`` of the event."""

    USER = "user"
    CLEANUP = "cleanup"
    OVERFLOW = "overflow"
    CASCADE = "cascade"


class Hindrance(StrEnum):
    """Why a session can't be archived; the first two are the contract's sentences and give way to ``force``."""

    RUNNING = "session is running"
    BACKGROUND = "background agents running"
    PERMANENT = "main cannot be archived"


def hindrance(session_id: str, live: LiveState, *, force: bool) -> Hindrance | None:
    """What keeps this one session from being archived, its children left aside."""
    if session_id == MAIN_ID:
        return Hindrance.PERMANENT
    if force:
        return None
    if live.is_running:
        return Hindrance.RUNNING
    return Hindrance.BACKGROUND if live.background_count else None


@frozen
class TreeNode:
    """A session within the subtree of another."""

    id: str
    parent_id: str | None
    archived: bool


def deepest_first(nodes: Sequence[TreeNode], root_id: str) -> list[TreeNode]:
    """The subtree ordered so that every session comes after all of its descendants; the root is last."""
    children: dict[str | None, list[TreeNode]] = {}
    for node in nodes:
        if node.id != root_id:
            children.setdefault(node.parent_id, []).append(node)
    levels = [[node for node in nodes if node.id == root_id]]
    while level := [child for node in levels[-1] for child in children.get(node.id, ())]:
        levels.append(level)
    return [node for level in reversed(levels) for node in level]


def not_archived(child: str) -> str:
    """Why a session stays above another one that stayed."""
    return f"child session {child} is not archived"


@define
class ArchiveWalk:
    """Collects what became of each session of a subtree, walked deepest first.

    A session stays if one of its children stayed, also when an archived one stands between them.
    """

    archived_ids: list[str] = field(factory=list)
    skipped: list[tuple[str, str]] = field(factory=list)
    _stayed: dict[str, str] = field(factory=dict)  # id of a session: the descendant that stayed beneath it

    def kept_by(self, node: TreeNode) -> str | None:
        """The reason if a child of this session stayed; names the child."""
        child = self._stayed.get(node.id)
        return None if child is None else not_archived(child)

    def archive(self, node: TreeNode) -> None:
        self.archived_ids.append(node.id)

    def skip(self, node: TreeNode, reason: str) -> None:
        self.skipped.append((node.id, reason))
        if node.parent_id is not None:
            self._stayed.setdefault(node.parent_id, node.id)

    def pass_by(self, node: TreeNode) -> None:
        """An archived session stays as it is, and hands what stayed beneath it to its parent."""
        child = self._stayed.get(node.id)
        if child is not None and node.parent_id is not None:
            self._stayed.setdefault(node.parent_id, child)
