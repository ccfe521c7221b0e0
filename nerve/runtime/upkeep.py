"""What the house does by itself every few hours: the clean-up of sessions, retention, and forgetting deleted words.

When a job last ran is kept in the database, so that a restart neither repeats nor puts off what is due.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import trio
from attrs import field, frozen

from nerve.domain.cleanup import Policy
from nerve.effects import Effects
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.archiving import Archiver
from nerve.runtime.limits import Limits
from nerve.store import agents, deletions, instance, retention, search
from nerve.store.database import Database
from nerve.store.instants import from_text, to_text

log = logging.getLogger("nerve.runtime")

REST = timedelta(minutes=5)  # after a start, and before another try
FORGET_SECONDS = 30.0
PAUSE_SECONDS = 0.05  # between two steps, so that other writes get their turn


@frozen
class Keeping:
    """What retention keeps, and how often it looks."""

    kept: timedelta
    kept_full: timedelta
    interval: timedelta


@frozen
class Job:
    name: str
    interval: timedelta
    run: Callable[[], Awaitable[None]]


@frozen
class Upkeep:
    """``keeping`` None: of sessions nothing leaves by age.  Agents that ended longer ago than ``agents_kept`` do."""

    _database: Database
    _effects: Effects
    _archiver: Archiver
    _policy: Policy
    _keeping: Keeping | None = None
    _agents_kept: timedelta = Limits().ended_agents_kept
    jobs: tuple[Job, ...] = field(init=False)

    @jobs.default
    def _jobs(self) -> tuple[Job, ...]:
        jobs = [Job("cleanup", self._policy.interval, self._clean_up)]
        if self._keeping is not None:
            jobs.append(Job("retention", self._keeping.interval, self._retain))
        return tuple(jobs)

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._forget, name="forgetting deleted words")
            for job in self.jobs:
                nursery.start_soon(self._repeat, job, name=job.name)

    async def _repeat(self, job: Job) -> None:
        while True:
            last = await self._database.read(instance.fact, _key(job))
            await trio.sleep(_wait(job.interval, last, self._effects.now()).total_seconds())
            if await self._tried(job.run):
                await self._tried(self._remember, job)

    async def _remember(self, job: Job) -> None:
        await self._database.write(instance.set_fact, _key(job), to_text(self._effects.now()))

    async def _tried(self, what: Callable[..., Awaitable[None]], *args: Job) -> bool:
        """False if the disk was full or the database busy: it is tried again after ``REST``."""
        try:
            await what(*args)
        except NerveError as refusal:
            if refusal.code not in (ErrorCode.STORE_FULL, ErrorCode.STORE_BUSY):
                raise
            log.warning("upkeep has to wait: %s", refusal.message)
            return False
        return True

    # --- the jobs -------------------------------------------------------------------------------------------------

    async def _clean_up(self) -> None:
        left = await self._archiver.clean_up(self._policy)
        if left:
            log.info("%d sessions were archived by the clean-up", len(left))
        await self._database.write(deletions.expire, self._effects.now())
        not_after = self._effects.now() - self._agents_kept
        while True:
            if not await self._database.write(agents.forget_old, not_after):
                return
            await trio.sleep(PAUSE_SECONDS)

    async def _retain(self) -> None:
        assert self._keeping is not None
        now = self._effects.now()
        after = 0
        while ids := await self._database.read_large(retention.full, now - self._keeping.kept_full, after):
            await self._database.write(retention.reduce, ids)
            after = ids[-1][0]
            await trio.sleep(PAUSE_SECONDS)
        for shelf in retention.SHELVES:
            while keys := await self._database.read_large(retention.old, shelf, now - self._keeping.kept):
                await self._database.write(retention.remove, shelf, keys)
                await trio.sleep(PAUSE_SECONDS)

    async def _forget(self) -> None:
        """A few messages at a time, as long as the words of deleted ones are in the search index."""
        while True:
            if await self._database.read(search.anything_forgotten):
                await self._tried(self._forget_all)
            await trio.sleep(FORGET_SECONDS)

    async def _forget_all(self) -> None:
        while True:
            if not await self._database.write(search.forget):
                return
            await trio.sleep(PAUSE_SECONDS)


def _key(job: Job) -> str:
    return f"last_{job.name}"


def _wait(interval: timedelta, last: str | None, now: datetime) -> timedelta:
    """Until it is due, at least ``REST``; a clock that was set back costs no more than an interval."""
    if last is None:
        return REST
    return min(max(from_text(last) + interval - now, REST), interval)
