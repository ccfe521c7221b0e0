"""Plays a transcript of spec/ against a server: what the client says is said, what the server says has to come.

Ids, numbers and instants of a transcript stand for whatever the server has in their place: the same id always for the
same one, numbers for numbers in the same order, instants for instants.
"""

import re
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from attrs import define, field

from tests.conformance.subject import Subject
from tests.spec_client import SocketClient

NAMES = {"session_id", "queue_id", "tool_use_id", "actor_id", "interaction_id", "planFilePath"}
NUMBERS = {"seq", "last_seq", "from_seq", "to_seq"}
INSTANTS = {"created_at", "generated_at"}
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@define(eq=False)
class Cast:
    """Who stands for whom."""

    names: dict[str, str] = field(factory=lambda: {"main": "main"})
    numbers: dict[int, int] = field(factory=dict)

    def check(self, wanted: Any, found: Any, key: str = "") -> None:
        """Raises AssertionError where ``found`` can't stand for ``wanted``."""
        match wanted:
            case dict():
                assert isinstance(found, dict), key
                assert found.keys() == wanted.keys()
                for name, value in wanted.items():
                    self.check(value, found[name], name)
            case list():
                assert isinstance(found, list), key
                assert len(found) == len(wanted), key
                for one, other in zip(wanted, found, strict=True):
                    self.check(one, other, key)
            case str() if key in NAMES:
                self._name(wanted, found)
            case int() if key in NUMBERS:
                self._number(wanted, found)
            case str() if key in INSTANTS:
                assert _INSTANT.fullmatch(found)
            case _:
                assert found == wanted, key

    def _name(self, wanted: str, found: Any) -> None:
        assert isinstance(found, str)
        assert self.names.setdefault(wanted, found) == found
        assert list(self.names.values()).count(found) == 1

    def _number(self, wanted: int, found: Any) -> None:
        assert isinstance(found, int)
        assert self.numbers.setdefault(wanted, found) == found
        ordered = sorted(self.numbers.items())
        assert all(before[1] < after[1] for before, after in pairwise(ordered)), ordered

    def number(self, wanted: int) -> int:
        """What a client has to say for a number; one that the transcript's server never issued is too high here too."""
        return self.numbers.get(wanted, max(self.numbers.values(), default=0) + wanted)

    def spoken(self, frame: dict[str, Any]) -> dict[str, Any]:
        said = dict(frame)
        for name in NAMES & said.keys():
            said[name] = self.names[said[name]]
        if said.get("after_seq") is not None:
            said["after_seq"] = self.number(said["after_seq"])
        return said

    def query(self, target: str) -> dict[str, Any]:
        query: dict[str, Any] = dict(parse_qsl(urlsplit(target).query))
        if "session_id" in query:
            query["session_id"] = self.names[query["session_id"]]
        if "after_seq" in query:
            query["after_seq"] = self.number(int(query["after_seq"]))
        return query


@define(eq=False)
class Performance:
    """One run of a transcript.  ``before_step`` may be overridden to do what happens beside the socket."""

    subject: Subject
    cast: Cast = field(factory=Cast)

    async def before_step(self, number: int, step: dict[str, Any]) -> None:
        """Called before each step, the first one has the number 0."""

    async def run(self, steps: list[dict[str, Any]]) -> None:
        socket: SocketClient | None = None
        async with AsyncExitStack() as connection:
            for number, step in enumerate(steps):
                await self.before_step(number, step)
                match step:
                    case {"open": target}:
                        query = self.cast.query(target)
                        socket = await connection.enter_async_context(self.subject.owner.connect(query))
                    case {"client": frame} if socket is not None:
                        await socket.send_json(self.cast.spoken(frame))
                    case {"server": frame} if socket is not None:
                        self._compare(number, frame, await socket.receive_json())
                    case {"closed": 1006}:
                        await connection.aclose()
                    case {"closed": code} if socket is not None:
                        await socket.expect_close(code)
                    case _:
                        raise ValueError(f"step {number} makes no sense: {step}")

    def _compare(self, number: int, wanted: dict[str, Any], found: dict[str, Any]) -> None:
        try:
            self.cast.check(wanted, found)
        except AssertionError as error:
            raise AssertionError(f"step {number}: {error}\n  wanted {wanted}\n  found  {found}") from None
