"""Checking passwords against accounts, slower the more often it fails (decisions D20 and D21)."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from attrs import define, field

from nerve.errors import ErrorCode, NerveError
from nerve.identity.directory import Directory, Person
from nerve.identity.failures import Failures
from nerve.identity.naming import normal_username
from nerve.identity.passwords import Passwords
from nerve.identity.peers import household
from nerve.identity.registry import Registry

log = logging.getLogger(__name__)

WAITING_PER_PEER = 4
SLOW_SECONDS = 2.0
_NAME_LENGTH = 64


@define(eq=False)
class _Line:
    """Where the slowed answers to one peer stand, one behind the other."""

    waiting: int = 0
    turn: trio.Lock = field(factory=trio.Lock)


class SignIn:
    def __init__(self, registry: Registry, passwords: Passwords) -> None:
        self._registry = registry
        self._passwords = passwords
        self._failures = Failures()
        self._lines: dict[str, _Line] = {}

    async def login(self, peer: str, username: str | None, password: str) -> Person:
        """Waits for bcrypt, and two seconds more where failures came before.

        Raises SETUP_INCOMPLETE, LOGIN_BUSY, or BAD_CREDENTIALS whichever part was wrong.
        """
        directory = self._registry.directory
        directory.require_claimed()
        if (sole := directory.sole) is not None and sole.open and sole.enabled:
            return sole
        person = _named(directory, username)
        if not await self.check(peer, _pair_name(person, username), person, password):
            raise NerveError(ErrorCode.BAD_CREDENTIALS)
        assert person is not None
        return person

    async def check(self, peer: str, name: str, person: Person | None, password: str) -> bool:
        """True if ``password`` is that of the enabled account.  Takes its time, whatever the answer is."""
        home = household(peer)
        async with self._place(home) as line:
            hashed = None if person is None else person.password_hash
            right = await self._passwords.matches(password, hashed, like=self._usual_hash())
            right = right and person is not None and self._unchanged(person)
            slow = self._count(home, name, right)
            if slow:
                async with line.turn:
                    await trio.sleep(SLOW_SECONDS)
        return right

    async def hashed(self, peer: str, password: str) -> str:
        """A new password's hash; its computation stands in the same bounded lines.  Raises LOGIN_BUSY."""
        async with self._place(household(peer)):
            return await self._passwords.hashed(password)

    def _count(self, home: str, name: str, right: bool) -> bool:
        """Remember the outcome; True if its answer is to be slowed."""
        now = trio.current_time()
        if not right:
            self._failures.failed(home, name, now)
        slow = self._failures.slowed(home, name, now)
        if right:
            self._failures.succeeded(home, name)
        else:
            log.info("a password was refused to %s", home)
        return slow

    def _unchanged(self, person: Person) -> bool:
        """The account may have been disabled, or got another password, while bcrypt was busy."""
        now = self._registry.directory.by_id.get(person.id)
        return now is not None and now.enabled and now.password_hash == person.password_hash

    def _usual_hash(self) -> str | None:
        people = self._registry.directory.people
        return people[0].password_hash if people else None

    @asynccontextmanager
    async def _place(self, home: str) -> AsyncIterator[_Line]:
        line = self._lines.setdefault(home, _Line())
        if line.waiting >= WAITING_PER_PEER:
            raise NerveError(ErrorCode.LOGIN_BUSY)
        line.waiting += 1
        try:
            yield line
        finally:
            line.waiting -= 1
            if line.waiting == 0:
                del self._lines[home]


def _named(directory: Directory, username: str | None) -> Person | None:
    """Left out or blank, it means the only account, if there is only one."""
    name = normal_username(username or "")
    return directory.by_username.get(name) if name else directory.sole


def _pair_name(person: Person | None, username: str | None) -> str:
    # However an account is called, or not called at all, its failures count together.
    return f"name {normal_username(username or '')[:_NAME_LENGTH]}" if person is None else person.id
