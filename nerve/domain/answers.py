"""What a person's answer to an interaction comes to (contract chapter WebSocket, decisions D25, D27, D30).

Values are trimmed, blank and repeated ones dropped, each cut to 4000 characters; what breaks a question's rules is
left out, and the question then counts as skipped.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen

from nerve.contract.generated.entities import InteractionType, SessionSource

LONGEST_VALUE = 4000
DECLINED = "Declined by user."
TIMED_OUT = "Nobody answered within an hour."
INTERRUPTED = "Interrupted while waiting for an answer."
NOBODY_THERE = (
    "Nobody can answer here: this session does not belong to a person at a screen. Use ask_user, or go on without"
    " asking and without plan mode."
)
# Sessions that no web client drives; a question there would wait for nobody.
UNATTENDED = frozenset(
    {
        SessionSource.TELEGRAM,
        SessionSource.SLACK,
        SessionSource.CRON,
        SessionSource.HOOK,
        SessionSource.WORKFLOW,
        SessionSource.EXTERNAL,
    }
)

REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/(?!\.{1,2}$)[A-Za-z0-9_.-]+")

Value = str | list[str]
Result = dict[str, Any] | None
Rule = Callable[[str], bool]


class BadAnswer(Exception):
    """The answer has not the form that this kind of interaction asks for."""


@frozen
class PersonsAnswer:
    """As a client sent it; ``result`` None approves without more."""

    result: dict[str, Any] | None
    denied: bool
    message: str | None


def refusal(message: str | None) -> str:
    """The person's own words, verbatim; a blank message says nothing, so that the agent is told at least that."""
    return message if message is not None and message.strip() else DECLINED


def accepted(kind: InteractionType, asked: Mapping[str, Any], result: Mapping[str, Any] | None) -> Result:
    """What the runtime gets for an interaction whose ``tool_input`` is ``asked``; None approves without more.

    Raises BadAnswer.
    """
    match kind:
        case InteractionType.QUESTION:
            return {"answers": question_answers(asked, _answers(result))}
        case InteractionType.FORM:
            return {"answers": form_answers(asked, _answers(result))}
        case InteractionType.PLAN_EXIT:
            return _plan(result)
        case _:
            return None


def _answers(result: Mapping[str, Any] | None) -> Mapping[str, Any]:
    answers = None if result is None else result.get("answers")
    if not isinstance(answers, Mapping):
        raise BadAnswer("answers must be an object")
    for value in answers.values():
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str) or item is None for item in items):
            raise BadAnswer("an answer is a text or a list of texts")
    return answers


def _plan(result: Mapping[str, Any] | None) -> Result:
    """The edited plan; None approves it as it is.  Of an edit that leaves nothing nobody knows what was approved."""
    if result is None or "plan" not in result:
        return None
    plan = result["plan"]
    if not isinstance(plan, str) or not plan.strip():
        raise BadAnswer("plan must be a text")
    return {"plan": plan}


def question_answers(asked: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Value]:
    """By question text; an answer may be filed under the text or the header.  Free text always counts."""
    found: dict[str, Value] = {}
    questions = asked.get("questions")
    for question in questions if isinstance(questions, list) else ():
        if not isinstance(question, Mapping) or not isinstance(text := question.get("question"), str):
            continue  # a real runtime's input is its own affair
        given = answers.get(text)
        if given is None:
            given = answers.get(str(question.get("header") or text))
        value = _value(given, several=bool(question.get("multiSelect")), fits=_anything)
        if value is not None:
            found.setdefault(text, value)
    return found


def form_answers(asked: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Value]:
    """By question id, in the form's order; what is missing was skipped."""
    found: dict[str, Value] = {}
    for question in asked["questions"]:
        several = question["kind"] in ("multi", "list", "repos")
        value = _value(answers.get(question["id"]), several=several, fits=_rule(question))
        if value is not None:
            found[question["id"]] = value
    return found


def _value(given: Any, *, several: bool, fits: Rule) -> Value | None:
    """A text and a list of it alone are the same; several values for a question that takes one are none."""
    items = _cleaned(given if isinstance(given, list) else [given], fits)
    if several:
        return items or None
    return items[0] if len(items) == 1 else None


def _cleaned(items: Iterable[str | None], fits: Rule) -> list[str]:
    cut = ((item or "").strip()[:LONGEST_VALUE].rstrip() for item in items)
    return list(dict.fromkeys(item for item in cut if item and fits(item)))


def _rule(question: Mapping[str, Any]) -> Rule:
    match question["kind"]:
        case "choice" | "multi" if not question["allow_other"]:
            labels = {option["label"].strip() for option in question["options"]}
            return labels.__contains__
        case "repos":
            return _is_repository
        case "url":
            return _is_web_address
        case _:
            return _anything


def _anything(value: str) -> bool:
    return True


def _is_repository(value: str) -> bool:
    return REPOSITORY.fullmatch(value) is not None and not value.startswith(("./", "../"))


def _is_web_address(value: str) -> bool:
    if any(character.isspace() or not character.isprintable() for character in value):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
