"""``say`` and ``think``: words one by one, variables replaced."""

import re
from collections.abc import Callable, Iterator

import trio

from nerve.adapters.protocol import AgentEvent, TextAdded, ThinkingAdded
from nerve.adapters.scripted.acts.part import Ended, Failed, Part
from nerve.adapters.scripted.conversation import TooLong
from nerve.adapters.scripted.steps import Say, Think

MAX_SAID_CHARACTERS = 4 * 1024 * 1024

WORD = re.compile(r"\S+\s*")
VARIABLE = re.compile(r"\$\{([^}]*)\}")


async def perform(part: Part, step: Say | Think) -> None:
    match step:
        case Say(text=text, pace=pace):
            await stream(part, await _expanded(part, step.pointer, text), pace, TextAdded)
        case Think(text=text, pace=pace):
            await stream(part, text, pace, ThinkingAdded)


async def stream(part: Part, text: str, pace: float, event: Callable[[str], AgentEvent]) -> None:
    """Emit ``text`` as it stands, word by word with ``pace`` seconds between them."""
    for number, word in enumerate(words(text)):
        if number and pace:
            await trio.sleep(pace)
        await part.stage.emit(event(word))


async def _expanded(part: Part, pointer: str, text: str) -> str:
    """``text`` with its variables replaced, once: what a variable holds is never searched for variables."""
    room = MAX_SAID_CHARACTERS - part.said
    names = VARIABLE.findall(text)
    known = {**part.variables, "result": part.result}
    try:
        if "history" in names:
            known["history"] = await part.stage.history(room)
        if len(text) + sum(len(known.get(name, "")) for name in names) > room:
            raise TooLong
    except TooLong:
        raise Ended(Failed(f"{pointer}: 'say' makes the play say more than 4 MiB")) from None
    expanded = VARIABLE.sub(lambda found: known.get(found[1], ""), text)
    part.said += len(expanded)
    return expanded


def words(text: str) -> Iterator[str]:
    """The words of ``text``, each with the white space after it; joined they are ``text`` again."""
    lead = text[: len(text) - len(text.lstrip())]
    for found in WORD.finditer(text, len(lead)):
        yield lead + found[0]
        lead = ""
    if lead:
        yield lead
