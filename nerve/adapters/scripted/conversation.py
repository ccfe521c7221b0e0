"""The runtime's own record of its conversations: one append-only file of JSON lines each, as a real runtime has.

Every function blocks.  A line is on the disk when the function returns; a last line that a crash tore is dropped.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
from attrs import asdict, frozen

from nerve.adapters.protocol import Capabilities

log = logging.getLogger(__name__)

# An id becomes a file name, so nothing else may be one.
NATIVE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
LINE_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class TooLong(Exception):
    """A history is longer than the caller has room for."""


class UnknownTurn(Exception):
    """A fork was asked for at a turn that the conversation doesn't have."""


@frozen
class Conversations:
    """All conversations below ``directory``, which is made when it is first needed."""

    directory: Path

    def create(self, native_id: str) -> None:
        self._make(native_id, iter(()))

    def resume(self, native_id: str) -> Capabilities | None:
        """Ready the record for appending and give the capabilities it was left with; None if there is no record."""
        try:
            with open(self._path(native_id), "r+b") as file:
                whole = _whole_length(file.fileno())
                if whole < os.fstat(file.fileno()).st_size:
                    os.ftruncate(file.fileno(), whole)
                    os.fsync(file.fileno())
        except (FileNotFoundError, ValueError):
            return None
        known = Capabilities()
        for line in self._lines(native_id):
            if isinstance(kept := line.get("capabilities"), dict) and kept.keys() == asdict(known).keys():
                known = Capabilities(**kept)
        return known

    def fork(self, native_id: str, new_id: str, turn_id: str | None) -> bool:
        """Copy the turns up to and with ``turn_id`` (None: all).  False if there is no such conversation.

        Raises UnknownTurn.
        """
        try:
            turns = [line for line in self._lines(native_id) if "turn" in line]
        except (FileNotFoundError, ValueError):
            return False
        if turn_id is not None:
            until = next((number for number, line in enumerate(turns, 1) if line["turn"] == turn_id), None)
            if until is None:
                raise UnknownTurn(turn_id)
            turns = turns[:until]
        self._make(new_id, iter(turns))
        return True

    def add_turn(self, native_id: str, turn_id: str, text: str | None) -> None:
        """None: nobody has said anything, the turn began by itself."""
        self._append(native_id, {"turn": turn_id} if text is None else {"turn": turn_id, "text": text})

    def set_capabilities(self, native_id: str, capabilities: Capabilities) -> None:
        self._append(native_id, {"capabilities": asdict(capabilities)})

    def history(self, native_id: str, max_characters: int) -> str:
        """The user messages, one a line, their own line breaks as spaces.  Raises TooLong."""
        lines: list[str] = []
        room = max_characters
        for line in self._lines(native_id):
            if "turn" in line and "text" in line:
                lines.append(LINE_BREAK.sub(" ", str(line["text"])))
                room -= len(lines[-1]) + 1
                if room < -1:
                    raise TooLong
        return "\n".join(lines)

    def forget(self, native_id: str) -> None:
        with suppress(FileNotFoundError, ValueError):
            self._path(native_id).unlink()

    def _path(self, native_id: str) -> Path:
        if not NATIVE_ID.fullmatch(native_id):
            raise ValueError("not a native id")
        return self.directory / f"{native_id}.jsonl"

    def _make(self, native_id: str, lines: Iterator[dict[str, Any]]) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._path(native_id), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.writelines(orjson.dumps(line) + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _append(self, native_id: str, line: dict[str, Any]) -> None:
        handle = os.open(self._path(native_id), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            before = os.fstat(handle).st_size
            try:
                written = memoryview(orjson.dumps(line) + b"\n")
                while written:
                    written = written[os.write(handle, written) :]
                os.fsync(handle)
            except OSError:
                # A part of a line must not stay: the next line would be lost with it.
                os.ftruncate(handle, before)
                raise
        finally:
            os.close(handle)

    def _lines(self, native_id: str) -> Iterator[dict[str, Any]]:
        with open(self._path(native_id), "rb") as file:
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n"):
                    return
                try:
                    line = orjson.loads(raw)
                except orjson.JSONDecodeError:
                    line = None
                if not isinstance(line, dict):
                    log.warning("conversation %s: line %d can't be read and is left out", native_id, number)
                    continue
                yield line


def _whole_length(handle: int) -> int:
    """How many bytes the complete lines of a file have."""
    end = os.fstat(handle).st_size
    while end:
        start = max(0, end - 65536)
        at = os.pread(handle, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
