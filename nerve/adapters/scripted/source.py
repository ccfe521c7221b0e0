"""Which play a prompt gets: the one in the message, the first file that matches, or none (the built-in reply)."""

import hashlib
import logging
import os
import stat
from collections import OrderedDict
from pathlib import Path

import jsonschema_rs
import trio
from attrs import define, field, frozen

from nerve.adapters.protocol import TurnPrompt, TurnSource
from nerve.adapters.scripted.document import MAX_BYTES
from nerve.adapters.scripted.play import parse_play, parse_scenario_file
from nerve.adapters.scripted.problem import PlayError
from nerve.adapters.scripted.steps import Play
from nerve.effects import Effects

log = logging.getLogger(__name__)

FIRST_LINE = "#!nerve-scenario"
PLAYABLE_SOURCES = frozenset({TurnSource.WEB, TurnSource.API})
MAX_FILES = 200
MESSAGES_PARSED_AT_ONCE = 2
# Bounds the automaton of one expression, and with it the time that matching takes per character.
MAX_EXPRESSION_BYTES = 1024 * 1024


@frozen
class Scenario:
    expression: jsonschema_rs.Draft202012Validator
    play: Play

    def matches(self, prompt: str) -> bool:
        return self.expression.is_valid(prompt)


@frozen
class BadScenario:
    path: Path
    reason: str


def holds_play(turn: TurnPrompt) -> bool:
    """Whether the message itself is a play: by its first line, and only from a person's own client."""
    return turn.source in PLAYABLE_SOURCES and turn.text.split("\n", 1)[0].rstrip() == FIRST_LINE


def read_scenario(content: bytes) -> Scenario:
    """Raises PlayError."""
    if len(content) > MAX_BYTES:
        raise PlayError("", "a play is at most 256 KiB")
    try:
        scenario = parse_scenario_file(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise PlayError("", "not UTF-8 text") from None
    # Python's own expressions can take exponential time and hold the interpreter meanwhile; this engine is linear.
    limits = jsonschema_rs.RegexOptions(size_limit=MAX_EXPRESSION_BYTES, dfa_size_limit=MAX_EXPRESSION_BYTES)
    try:
        expression = jsonschema_rs.Draft202012Validator({"pattern": scenario.match}, pattern_options=limits)
    except jsonschema_rs.ValidationError:
        raise PlayError("", "'match' is no regular expression without look-around and back-references") from None
    return Scenario(expression, scenario.play)


def scenario_files(workspace: Path) -> list[Path]:
    """The files that may hold a scenario, in file-name order; hidden ones don't count.  Blocks."""
    try:
        names = os.listdir(workspace / "scenarios")
    except OSError:
        return []
    return [workspace / "scenarios" / name for name in sorted(names) if name.endswith(".yaml") and name[0] != "."]


def check_scenarios(workspace: Path) -> list[BadScenario]:
    """The scenario files that are skipped, with the reason for people.  Blocks."""
    bad: list[BadScenario] = []
    paths = scenario_files(workspace)
    for path in paths[:MAX_FILES]:
        try:
            read_scenario(_read(path))
        except PlayError as error:
            bad.append(BadScenario(path, str(error)))
    bad += (BadScenario(path, f"only the first {MAX_FILES} files are read") for path in paths[MAX_FILES:])
    return bad


@define(eq=False)
class PlaySource:
    """One for all sessions.  Reads the files at each prompt; an unchanged one, by its content, is parsed once.

    Parsing is slow where the text is long (seconds of a thread), so few messages are parsed at the same time.
    """

    _workspace: Path
    _effects: Effects
    _parsed: OrderedDict[bytes, Scenario | PlayError] = field(factory=OrderedDict, init=False)
    _reported: OrderedDict[tuple[str, str], None] = field(factory=OrderedDict, init=False)
    _messages: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(MESSAGES_PARSED_AT_ONCE), init=False)
    # One at a time: the two mappings above belong to whichever thread is in here.
    _files: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(1), init=False)

    async def play_for(self, turn: TurnPrompt) -> Play | None:
        """The play, or None for the built-in reply.  Raises PlayError for a bad play in the message."""
        if holds_play(turn):
            return await self._effects.blocking(parse_play, turn.text, limiter=self._messages)
        return await self._effects.blocking(self._first_match, turn.text, limiter=self._files)

    def _first_match(self, prompt: str) -> Play | None:
        text = prompt.encode("utf-8", "replace").decode("utf-8")
        paths = scenario_files(self._workspace)
        for path in paths[:MAX_FILES]:
            try:
                scenario = self._scenario(_read(path))
            except PlayError as error:
                self._report(path, str(error))
                continue
            if scenario.matches(text):
                return scenario.play
        for path in paths[MAX_FILES:]:
            self._report(path, f"only the first {MAX_FILES} files are read")
        return None

    def _scenario(self, content: bytes) -> Scenario:
        key = hashlib.sha256(content).digest()
        known = self._parsed.pop(key, None)
        if known is None:
            try:
                known = read_scenario(content)
            except PlayError as error:
                known = error
        self._parsed[key] = known
        if len(self._parsed) > MAX_FILES:
            self._parsed.popitem(last=False)
        if isinstance(known, PlayError):
            raise PlayError(known.pointer, known.reason)
        return known

    def _report(self, path: Path, reason: str) -> None:
        """Once per file and reason, not at each message."""
        key = (path.name, reason)
        if key not in self._reported:
            log.warning("scenario file %s is skipped: %s", path, reason)
        self._reported[key] = None
        if len(self._reported) > 2 * MAX_FILES:
            self._reported.popitem(last=False)


def _read(path: Path) -> bytes:
    """At most one byte more than a play may have; a file that is no regular one, or unreadable, is a PlayError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise PlayError("", "not a regular file")
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PlayError("", os.strerror(error.errno or 0)) from None
