"""Where the shells of a test write."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_files(directory: Path) -> Iterator[None]:
    """The temporary directory is the test's own, because ids that are counted come again in the next test."""
    before = tempfile.tempdir
    tempfile.tempdir = str(directory)
    try:
        yield
    finally:
        tempfile.tempdir = before
