"""The directory in memory, and how it follows the database, be it changed by us or by another process."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import apsw
import trio

from nerve.errors import ErrorCode, NerveError
from nerve.identity.directory import Directory, load
from nerve.store.database import Database
from nerve.store.instance import data_version

log = logging.getLogger(__name__)

T = TypeVar("T")
Listener = Callable[[str], None]

WATCH_SECONDS = 0.5


class Registry:
    """Holds the current directory and tells listeners of accounts that were disabled."""

    def __init__(self, database: Database, configured_hash: str | None) -> None:
        self.database = database
        self.configured_hash = configured_hash
        self.directory = Directory()
        self._version = -1
        self._listeners: list[Listener] = []

    def on_disabled(self, listener: Listener) -> Callable[[], None]:
        """``listener(account_id)`` is called as soon as a disabling is committed; returns how to unsubscribe."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def write(self, fn: Callable[..., T], /, *args: Any) -> T:
        """One transaction, and the directory is fresh before this returns.  As cancellable as ``Database.write``."""
        value = await self.database.write(fn, *args)
        with trio.CancelScope(shield=True):  # one bounded read: what was committed has to take effect
            await self.reload()
        return value

    async def reload(self) -> None:
        # Nothing awaits between the read and the assignment, so an older state never replaces a newer one.
        self._version, directory = await self.database.read(_snapshot, self.configured_hash)
        self._adopt(directory)

    async def watch(self) -> None:
        """Follows other processes (the command line), within a second.  Runs until cancelled."""
        while True:
            await trio.sleep(WATCH_SECONDS)
            try:
                changed = await self.database.read(_snapshot_if_moved, self.configured_hash, self._version)
            except NerveError as busy:
                if busy.code is not ErrorCode.STORE_BUSY:
                    raise
                log.warning("accounts could not be read: %s", busy)
                continue
            if changed is not None:
                self._version, directory = changed
                self._adopt(directory)

    def _adopt(self, directory: Directory) -> None:
        gone = self.directory.enabled_ids() - directory.enabled_ids()
        self.directory = directory
        for account_id in sorted(gone):
            log.info("account %s is disabled", account_id)
            for listener in tuple(self._listeners):
                listener(account_id)


def _snapshot(db: apsw.Connection, configured_hash: str | None) -> tuple[int, Directory]:
    return data_version(db), load(db, configured_hash)


def _snapshot_if_moved(db: apsw.Connection, configured_hash: str | None, version: int) -> tuple[int, Directory] | None:
    return _snapshot(db, configured_hash) if data_version(db) != version else None
