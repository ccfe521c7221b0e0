"""The daemon's log keeps to its size, and nobody who reads it misses a line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from nerve.cli.log_file import MAX_BYTES, begin_anew, older, open_log
from nerve.cli.logs import follow, last_lines
from tests.live.instance import Instance

LINES = 400
# A process whose stdout and stderr are the log, as a daemon's are; it also writes past the logging.
PROGRAM = f"""
import logging, os, sys
from pathlib import Path
from nerve.cli.log_file import RotatingStderr, is_stderr
path = Path(sys.argv[1])
assert is_stderr(path)
log = logging.getLogger("x")
log.addHandler(RotatingStderr(path, 2000))
for number in range(0, {LINES}, 4):
    log.error("line %d", number)
    print("line", number + 1, flush=True)
    print("line", number + 2, file=sys.stderr)
    os.system(f"echo line {{number + 3}}")
"""


def numbered(count: int, first: int = 0) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(first, first + count))


@frozen
class Log:
    path: Path
    descriptor: int

    def write(self, text: bytes) -> None:
        os.write(self.descriptor, text)

    def begin_anew(self) -> None:
        begin_anew(self.path, [self.descriptor])


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    path = tmp_path / "nerve.log"
    descriptor = open_log(path)
    yield Log(path, descriptor)
    os.close(descriptor)


def test_what_a_process_writes_goes_on_in_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "nerve.log"
    descriptor = open_log(path)
    try:
        subprocess.run(
            [sys.executable, "-c", PROGRAM, path], stdout=descriptor, stderr=descriptor, timeout=60, check=True
        )
    finally:
        os.close(descriptor)
    before, now = older(path).read_bytes(), path.read_bytes()
    assert 2000 <= len(before) < 2100
    assert len(now) < 2100
    assert numbered(LINES).endswith(before + now)
    assert sorted(os.listdir(tmp_path)) == ["nerve.log", "nerve.log.1"]
    assert {found.stat().st_mode & 0o777 for found in (path, older(path))} == {0o600}


def test_the_last_lines_reach_back_into_the_file_before(log: Log) -> None:
    log.write(numbered(90))
    log.begin_anew()
    assert last_lines(log.path, 50)[0] == numbered(50, 40)
    log.write(numbered(3, 90))
    lines, place = last_lines(log.path, 50)
    assert lines == numbered(50, 43)
    assert place.offset == len(numbered(3, 90))


def test_whoever_follows_gets_every_line_once(log: Log) -> None:
    log.write(numbered(10))
    moments = iter(
        [
            lambda: log.write(numbered(10, 10)),
            log.begin_anew,
            lambda: log.write(numbered(10, 20)),
            # A rest in the old file and the beginning of a new one, between two looks.
            lambda: (log.write(numbered(10, 30)), log.begin_anew(), log.write(numbered(10, 40))),
            lambda: (log.begin_anew(), log.write(numbered(10, 50))),
        ]
    )

    class Over(Exception):
        pass

    def sleep(seconds: float) -> None:
        moment = next(moments, None)
        if moment is None:
            raise Over
        moment()

    lines, place = last_lines(log.path)
    seen = [lines]
    with pytest.raises(Over):
        seen += follow(log.path, place, sleep)
    assert b"".join(seen) == numbered(60)


def test_a_log_that_was_cut_is_followed_from_its_beginning(log: Log) -> None:
    log.write(numbered(10))
    place = last_lines(log.path)[1]
    os.truncate(log.path, 0)
    log.write(numbered(1))
    assert next(follow(log.path, place)) == numbered(1)


def test_what_can_not_be_renamed_goes_on_as_it_is(log: Log) -> None:
    older(log.path).mkdir()
    log.write(numbered(5))
    with pytest.raises(OSError, match=r"nerve\.log"):
        log.begin_anew()
    log.write(numbered(5, 5))
    assert log.path.read_bytes() == numbered(10)
    assert sorted(os.listdir(log.path.parent)) == ["nerve.log", "nerve.log.1"]


def test_a_file_that_another_process_has_put_there_is_gone_on_with(log: Log) -> None:
    log.write(numbered(5))
    other = open_log(log.path)
    begin_anew(log.path, [other])
    os.write(other, b"refused\n")
    os.close(other)
    log.write(numbered(5, 5))
    log.begin_anew()
    log.write(numbered(1, 10))
    assert older(log.path).read_bytes() == numbered(10)
    assert log.path.read_bytes() == b"refused\n" + numbered(1, 10)


@pytest.mark.slow
def test_a_daemon_begins_a_new_log_when_its_own_is_full(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700, exist_ok=True)
    path = instance.home / "nerve.log"
    path.write_bytes(b"x" * MAX_BYTES + b"\n")
    instance.must("start", "--port", "0")
    assert older(path).stat().st_size < MAX_BYTES + 1000
    assert path.stat().st_size < 10_000
    assert "listens on" in instance.must("logs")
