"""Forms that an agent asks a person to fill in: what a form may hold, and how the answers are told to the agent."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nerve.contract.generated.entities import FormQuestionKind

WITH_OPTIONS = frozenset({FormQuestionKind.CHOICE, FormQuestionKind.MULTI})
OF_SEVERAL = frozenset({FormQuestionKind.MULTI, FormQuestionKind.LIST, FormQuestionKind.REPOS})
FEWEST_OPTIONS = 2
ANSWERED = "The person answered the form."
SKIPPED = "(skipped)"


class BadForm(Exception):
    """Names the question and what is wrong with it."""


def normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    """The form with every key present, from an input that fits the schema of ``ask_form``.

    Texts are trimmed, labels folded to one line; ids stay as they are.  Raises BadForm.
    """
    questions: list[dict[str, Any]] = []
    for number, question in enumerate(given["questions"]):
        try:
            questions.append(_question(question))
        except BadForm as wrong:
            raise BadForm(f"questions[{number}] ({question['id']!r}): {wrong}") from None
        if any(other["id"] == question["id"] for other in questions[:-1]):
            raise BadForm(f"questions[{number}].id {question['id']!r} is there twice.")
    return {"title": _line(given.get("title")), "intro": _text(given.get("intro")), "questions": questions}


def _question(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = FormQuestionKind(given["kind"])
    if not given["id"].strip():
        raise BadForm("id must not be blank.")
    question: dict[str, Any] = {
        "id": given["id"],
        "kind": kind.value,
        "label": _required("label", _line(given["label"])),
        "question": _required("question", _text(given["question"])),
        "help": _text(given.get("help")),
        "placeholder": _line(given.get("placeholder")),
        "required": bool(given.get("required")),
        "options": _options(given.get("options") or []) if kind in WITH_OPTIONS else [],
        "allow_other": bool(given.get("allow_other")) and kind in WITH_OPTIONS,
    }
    return {**question, "default": _default(given.get("default"), kind, question)}


def _options(given: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    if len(given) < FEWEST_OPTIONS:
        raise BadForm("options: choice and multi need 2 to 8.")
    options = [
        {"label": _required("options: label", _line(option["label"])), "description": _text(option.get("description"))}
        for option in given
    ]
    labels = [option["label"] for option in options]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise BadForm(f"options: the label {twice!r} is there twice.")
    return options


def _default(given: Any, kind: FormQuestionKind, question: Mapping[str, Any]) -> str | list[str] | None:
    """Null for one that is blank.  One text counts as a list of it where the kind takes several."""
    items = given if isinstance(given, list) else [given or ""]
    items = list(dict.fromkeys(item.strip() for item in items if item.strip()))
    if not items:
        return None
    if kind in WITH_OPTIONS and not question["allow_other"]:
        labels = [option["label"] for option in question["options"]]
        strange = next((item for item in items if item not in labels), None)
        if strange is not None:
            raise BadForm(f"default: {strange!r} is none of the options.")
    if kind in OF_SEVERAL:
        return items
    if isinstance(given, list):
        raise BadForm(f"default: {kind.value} takes one text, not a list.")
    return items[0]


def _required(name: str, text: str) -> str:
    if not text:
        raise BadForm(f"{name} must not be blank.")
    return text


def _text(given: str | None) -> str:
    return (given or "").strip()


def _line(given: str | None) -> str:
    return " ".join((given or "").split())


def told(form: Mapping[str, Any], answers: Mapping[str, str | list[str]]) -> str:
    """The tool's result: the answers line by line for reading, then as one line of JSON."""
    lines = [ANSWERED]
    for question in form["questions"]:
        answer = answers.get(question["id"])
        text = SKIPPED if answer is None else answer if isinstance(answer, str) else ", ".join(answer)
        lines.append(f"{question['label']}: " + "\n  ".join(text.splitlines()))
    skipped = [question["id"] for question in form["questions"] if question["id"] not in answers]
    return "\n".join(lines) + "\n\n" + json.dumps({"answers": dict(answers), "skipped": skipped}, ensure_ascii=False)
