"""Nothing outside of a directory is opened through it, whatever the path, and whoever changes it meanwhile."""

import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.files import beneath
from nerve.files.beneath import Barred, Obstacle, Tree
from nerve.files.content import MISSING, UNREADABLE, Content, content_of


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root = tmp_path / "root"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "a.txt").write_text("inside")
    (root / "b.txt").write_text("inside")
    (tmp_path / "secret.txt").write_text("outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("outside")
    return Tree(root)


def read(tree: Tree, path: str) -> str:
    descriptor = tree.open(tree.parts(path))
    with os.fdopen(descriptor) as file:
        return file.read()


def obstacle(tree: Tree, path: str) -> Obstacle | None:
    """Why it is not opened; None if nothing is there."""
    try:
        text = read(tree, path)
    except Barred as barred:
        return barred.obstacle
    except OSError:
        return None
    raise AssertionError(f"{path!r} was opened: {text}")


@pytest.mark.parametrize("path", ["b.txt", "./b.txt", "deep/er/a.txt", "deep//er/./a.txt"])
def test_what_is_inside(tree: Tree, path: str) -> None:
    assert read(tree, path) == read(tree, f"{tree.root}/{path}") == "inside"


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "deep/../../secret.txt", "..", "deep/..", "deep/../b.txt", "/etc/passwd", "/", "//etc/passwd",
     "b.txt\0", "\0", "b.txt\0../secret.txt", "../root/b.txt", "/../etc/passwd", "\ud800", "..//secret.txt", "./../x"],
)  # fmt: skip
def test_what_leads_outside(tree: Tree, path: str) -> None:
    assert obstacle(tree, path) is Obstacle.OUTSIDE


def test_neighbours_whose_name_begins_alike(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "root-2").mkdir()
    (tmp_path / "root-2" / "b.txt").write_text("outside")
    for path in ("root-2/b.txt", "root/../root-2/b.txt", "root/../secret.txt", "secret.txt"):
        assert obstacle(tree, f"{tmp_path}/{path}") is Obstacle.OUTSIDE


@pytest.mark.parametrize(
    "path",
    ["%2e%2e/secret.txt", "%252e%252e/secret.txt", "..%2fsecret.txt", "..\\secret.txt", "\\..\\secret.txt", "...",
     "C:\\secret.txt", "~/secret.txt", "$HOME", "x" * 300, "x/" * 3000, "．．/secret.txt", "b.txt/", "deep/er/a.txt/x"],
)  # fmt: skip
def test_other_spellings_are_names_like_any_other(tree: Tree, path: str) -> None:
    if path == "b.txt/":
        assert read(tree, path) == "inside"
    elif path.startswith("deep"):
        assert obstacle(tree, path) is Obstacle.NO_DIRECTORY
    else:
        assert obstacle(tree, path) is None


def test_links_are_not_followed(tree: Tree, tmp_path: Path) -> None:
    (tree.root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (tree.root / "up").symlink_to("..")
    (tree.root / "in.txt").symlink_to("b.txt")
    (tree.root / "dangling").symlink_to("nowhere")
    (tree.root / "loop").symlink_to("loop")
    for path in ("out.txt", "up/secret.txt", "up", "in.txt", "dangling", "loop", "dangling/x", "up/root/b.txt"):
        assert obstacle(tree, path) is Obstacle.LINK, path


def test_only_regular_files_are_opened(tree: Tree) -> None:
    os.mkfifo(tree.root / "fifo")
    for path in ("deep", "", ".", "fifo", str(tree.root)):
        assert obstacle(tree, path) is Obstacle.NO_FILE, path


def test_closed_directories_and_files_by_any_name(tree: Tree, tmp_path: Path) -> None:
    os.link(tree.root / "b.txt", tree.root / "hard.txt")
    closed = Tree(tree.root, (tree.root / "deep", tree.root / "b.txt", tmp_path / "not there"))
    for path in ("deep/er/a.txt", "b.txt", "hard.txt"):
        assert obstacle(closed, path) is Obstacle.CLOSED, path
    (tmp_path / "alias").symlink_to(tree.root / "deep")
    assert obstacle(Tree(tmp_path / "alias" / "er", closed.closed), "a.txt") is Obstacle.CLOSED
    assert read(Tree(tmp_path / "alias" / "er"), "a.txt") == "inside"  # the root itself may be a link


def test_a_link_put_in_place_between_the_steps(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each opening of a component the next one is swapped; what was open stays what it was."""
    entered = beneath._enter

    def swapping(parent: int, name: str, path: Path, *, create: bool) -> int:
        descriptor = entered(parent, name, path, create=create)
        if name == "deep":
            (tree.root / "deep" / "er").rename(tree.root / "er")
            (tree.root / "deep" / "er").symlink_to(tmp_path / "outside")
        return descriptor

    monkeypatch.setattr(beneath, "_enter", swapping)
    assert obstacle(tree, "deep/er/a.txt") is Obstacle.LINK


def test_a_file_swapped_for_a_link_at_the_last_moment(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = beneath.open_file

    def swapping(parent: int, name: str, path: Path) -> int:
        (tree.root / "b.txt").unlink()
        (tree.root / "b.txt").symlink_to(tmp_path / "secret.txt")
        return opened(parent, name, path)

    monkeypatch.setattr(beneath, "open_file", swapping)
    assert obstacle(tree, "b.txt") is Obstacle.LINK


def test_directories_are_made_below_the_root_only(tree: Tree, tmp_path: Path) -> None:
    (tree.root / "away").symlink_to(tmp_path / "outside")
    with tree.directory(("new", "er"), create=True) as descriptor:
        assert os.path.samestat(os.fstat(descriptor), (tree.root / "new" / "er").stat())
    with pytest.raises(Barred), tree.directory(("away", "new"), create=True):
        raise AssertionError
    with pytest.raises(FileNotFoundError), tree.directory(("missing",)):
        raise AssertionError
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["a.txt"]


def test_nothing_stays_open(tree: Tree) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for path in ("deep/er/a.txt", "deep/er", "missing/x", "../x", "deep/er/a.txt/x", "b.txt"):
        try:
            os.close(tree.open(tree.parts(path)))
        except (Barred, OSError):
            continue
    assert count() == before


@given(st.lists(st.sampled_from(["..", ".", "", "deep", "er", "a.txt", "%2e%2e", "/", "~"]), max_size=8))
def test_parts_never_climb(segments: list[str]) -> None:
    tree = Tree(Path("/srv/root"))
    for path in ("/".join(segments), "/" + "/".join(segments), unquote("/".join(segments))):
        try:
            parts = tree.parts(path)
        except Barred:
            continue
        assert not {"..", ".", ""} & set(parts)
        assert Path(os.path.normpath(tree.path(parts))).is_relative_to("/srv/root")


def test_contents_and_their_bound(tree: Tree, tmp_path: Path) -> None:
    root = tree.root
    (root / "link").symlink_to("b.txt")
    assert content_of(root / "b.txt", root, 6) == Content(True, b"inside")
    assert content_of(root / "b.txt", root, 5) == UNREADABLE
    assert content_of(root / "link", root, 100) == UNREADABLE
    assert content_of(root / "no" / "b.txt", root, 100) == MISSING
    assert content_of(root / "b.txt" / "c", root, 100) == MISSING
    assert content_of(tmp_path / "secret.txt", root, 100) == Content(True, b"outside")
    assert content_of(root / ".." / "secret.txt", root, 100) == UNREADABLE
