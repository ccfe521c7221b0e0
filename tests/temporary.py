"""Where what is temporary goes in tests."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_files(directory: Path) -> Iterator[None]:
    """Below a directory of the test's own, because ids that are counted come again in the next test."""
    before = tempfile.tempdir
    directory.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(directory)
    try:
        yield
    finally:
        tempfile.tempdir = before
