import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.processes.theatre import Theatre, open_theatre


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory that nobody else has files in; it is that of the theatre's house, too."""
    place = tmp_path / "home-temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
async def theatre(tmp_path: Path) -> AsyncIterator[Theatre]:
    async with open_theatre(tmp_path) as theatre:
        yield theatre
