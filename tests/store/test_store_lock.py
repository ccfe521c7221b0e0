import fcntl
import os
from pathlib import Path

import pytest

from nerve.store.lock import HomeLocked, home_lock


@pytest.mark.parametrize(
    ("content", "pid", "holder"),
    [
        ("", None, "another process"),
        ("no number", None, "another process"),
        ("4194999", None, "another process"),  # above the kernel's largest pid: nobody lives there
        ("1", 1, "process 1"),
    ],
)
def test_the_holder_is_named_if_it_is_known(tmp_path: Path, content: str, pid: int | None, holder: str) -> None:
    with (tmp_path / "nerve.lock").open("w") as file:
        file.write(content)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(HomeLocked, match=f"in use by {holder}") as caught, home_lock(tmp_path):
            pass
    assert caught.value.pid == pid


def test_the_lock_ends_with_its_block(tmp_path: Path) -> None:
    def fail() -> None:
        with home_lock(tmp_path):
            assert (tmp_path / "nerve.lock").read_text() == str(os.getpid())
            raise LookupError

    for _ in range(2):
        with pytest.raises(LookupError):
            fail()
