"""Files that people send: taken in whole or not at all, kept in the workspace, taken away when nobody needs them."""

import errno
import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote

import trio
from attrs import define, field, frozen

from nerve.domain.attachments import HEAD_BYTES, file_name, kind_of
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.files.arrival import Arrival
from nerve.files.beneath import Barred, Tree
from nerve.files.clearing import remove, remove_strays
from nerve.files.opened import OpenedFile
from nerve.store import uploads
from nerve.store.database import Database
from nerve.store.uploads import StoredFile, Upload

log = logging.getLogger("nerve.runtime")

FOLDER = ".uploads"
UNSENT = "unsent"  # the folder of what was sent for no session in particular
FILE_BYTES = 20 * 1024 * 1024
BUFFER_BYTES = 256 * 1024
KEPT = timedelta(days=1)  # what no message carries
FIRST_SWEEP_SECONDS = 60.0
SWEEP_SECONDS = 3600.0

_OURS = re.compile(r"[0-9a-f]{16}_.+|\.[0-9a-f]{16}_.+\.part")
_FULL = (errno.ENOSPC, errno.EDQUOT)


@frozen
class IncomingFile:
    """A file begins; ``media_type`` is what its sender claims."""

    filename: str
    media_type: str | None


FilePiece = IncomingFile | bytes | None  # None ends a file


@define(eq=False)
class _Growing:
    """One file on its way in."""

    arrival: Arrival
    upload_id: str
    incoming: IncomingFile
    path: str
    head: bytes = b""
    size: int = 0
    waiting: bytearray = field(factory=bytearray)

    def take(self, data: bytes) -> None:
        """Raises FILE_TOO_LARGE."""
        self.size += len(data)
        if self.size > FILE_BYTES:
            raise NerveError(ErrorCode.FILE_TOO_LARGE, filename=file_name(self.incoming.filename), limit=FILE_BYTES)
        self.head += data[: HEAD_BYTES - len(self.head)]
        self.waiting += data

    def write(self) -> None:
        data, self.waiting = bytes(self.waiting), bytearray()
        self.arrival.write(data)


@frozen(eq=False)
class Uploads:
    """``FOLDER`` of the workspace is made when it is needed; it must not be a link."""

    _database: Database
    _effects: Effects
    _workspace: Path

    async def receive(
        self, pieces: AsyncIterator[FilePiece], session_id: str | None, actor_id: str | None
    ) -> list[Upload]:
        """Keep all files of a form, or none.  Returns once they are on disk and on record.

        Raises SESSION_NOT_FOUND, TOO_MANY_UPLOADS, FILE_TOO_LARGE, STORE_FULL, UPLOADS_UNUSABLE, and what the pieces
        raise.
        """
        await self._database.read(uploads.check_session, session_id)
        await self._database.read(uploads.check_room, actor_id, 1)
        arrived: list[_Growing] = []
        try:
            with _told_problems():
                await self._take_in(pieces, session_id, arrived)
            kept = [self._upload(file, session_id, actor_id) for file in arrived]
            await self._database.write(uploads.add, kept)
        except BaseException:
            with trio.CancelScope(shield=True):  # a few local files
                await self._effects.blocking(_discard, arrived)
            raise
        await self._effects.blocking(_close, arrived)
        return kept

    async def _take_in(self, pieces: AsyncIterator[FilePiece], session_id: str | None, arrived: list[_Growing]) -> None:
        blocking = self._effects.blocking
        async for piece in pieces:
            if isinstance(piece, IncomingFile):
                # Shielded, so that what was begun is known here and can be taken away.
                with trio.CancelScope(shield=True):
                    arrived.append(await blocking(self._begin, piece, session_id))
                continue
            file = arrived[-1]
            file.take(piece or b"")
            if piece is None or len(file.waiting) >= BUFFER_BYTES:
                await blocking(file.write)
            if piece is None:
                await blocking(file.arrival.settle)

    def _begin(self, incoming: IncomingFile, session_id: str | None) -> _Growing:
        upload_id = self._effects.new_id("upload")
        folder = UNSENT if session_id is None else quote(session_id, safe="")
        name = f"{upload_id}_{file_name(incoming.filename)}"
        arrival = Arrival(Tree(self._workspace), (FOLDER, folder), name)
        return _Growing(arrival, upload_id, incoming, f"{FOLDER}/{folder}/{name}")

    def _upload(self, file: _Growing, session_id: str | None, actor_id: str | None) -> Upload:
        kind, media_type = kind_of(file.head, file.incoming.media_type)
        return Upload(
            id=file.upload_id,
            session_id=session_id,
            actor_id=actor_id,
            filename=file_name(file.incoming.filename),
            media_type=media_type,
            kind=kind.value,
            size=file.size,
            directory=str(self._workspace),
            path=file.path,
            created_at=self._effects.now(),
        )

    async def open(self, upload_id: str) -> tuple[Upload, OpenedFile]:
        """Raises FILE_NOT_FOUND, also for one that is not where it was put."""
        upload = await self._database.read(uploads.get, upload_id)
        return upload, await self._effects.blocking(_opened, upload)

    # --- taking away ----------------------------------------------------------------------------------------------

    async def keep_clean(self) -> None:
        """Sweep once an hour, for ever."""
        await trio.sleep(FIRST_SWEEP_SECONDS)
        while True:
            try:
                await self.sweep()
            except NerveError as refused:
                log.warning("uploads that nobody needs stay for now: %s", refused)
            await trio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Take away what no message has carried for a day, and what a crash has left without a record."""
        before = self._effects.now() - KEPT
        await remove_stored(self._effects, await self._database.write(uploads.expire, before))
        known = await self._database.read_large(uploads.paths, str(self._workspace))
        await self._effects.blocking(remove_strays, Tree(self._workspace), FOLDER, _OURS, known, before.timestamp())


@contextmanager
def _told_problems() -> Iterator[None]:
    """What the disk says, as clients are told.  A client that left is no OSError."""
    try:
        yield
    except Barred as barred:
        log.warning("an upload was refused: %s", barred)
        raise NerveError(ErrorCode.UPLOADS_UNUSABLE) from None
    except OSError as refused:
        if refused.errno in _FULL:
            raise NerveError(ErrorCode.STORE_FULL) from None
        log.warning("an upload was refused: %s", refused)
        raise NerveError(ErrorCode.UPLOADS_UNUSABLE) from None


async def remove_stored(effects: Effects, files: Iterable[StoredFile]) -> None:
    """Take files away whose records are gone."""
    by_directory = attrgetter("directory")
    for directory, group in groupby(sorted(files, key=by_directory), key=by_directory):
        tree = Tree(Path(directory))
        await effects.blocking(remove, tree, [tree.parts(file.path) for file in group])


def _opened(upload: Upload) -> OpenedFile:
    tree = Tree(Path(upload.directory))
    try:
        return OpenedFile(tree.open(tree.parts(upload.path)))
    except (OSError, Barred):
        raise NerveError(ErrorCode.FILE_NOT_FOUND) from None


def _discard(arrived: list[_Growing]) -> None:
    for file in arrived:
        file.arrival.discard()


def _close(arrived: list[_Growing]) -> None:
    for file in arrived:
        file.arrival.close()
