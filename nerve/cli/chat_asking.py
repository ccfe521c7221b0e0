"""What an agent waits for, as a dialogue of lines: questions and forms, plans, approvals.  No I/O.

Of each, ``preamble`` is shown once and ``text`` before every line; ``take`` says what a line brings about.
"""

import json
from typing import Any

from attrs import define, field, frozen

from nerve.cli.chat_questions import Value, Wrong, read, said, shown
from nerve.cli.chat_text import Symbols, clean, one_line
from nerve.contract import codec
from nerve.contract.generated.entities import Form, FormOption, FormQuestion, FormQuestionKind, InteractionType
from nerve.contract.generated.frames_server import InteractionFrame

_LONG = 300
_YES = {"1", "y", "yes", "ok", "allow", "approve"}
_NO = {"n", "no", "deny", "refuse"}


@frozen
class Next:
    """The next question is to be shown; ``said`` is what the line was taken for."""

    said: str = ""


@frozen
class Reply:
    """The interaction is answered; ``said`` is what to show of it."""

    said: str
    result: dict[str, Any] | None = None
    denied: bool = False
    message: str | None = None


@frozen
class Edit:
    """The person wants this text in an editor; what becomes of it is ``Plan.edited``."""

    text: str


Outcome = Next | Reply | Edit | Wrong


def refusal(why: str) -> Reply:
    """Any interaction can be refused; the words reach the agent as they are."""
    return Reply("refused", denied=True, message=why or None)


@define(eq=False)
class Questions:
    """One question after another."""

    questions: list[FormQuestion]
    title: str = ""
    intro: str = ""
    answers: dict[str, Value] = field(factory=dict)
    at: int = 0

    def preamble(self) -> str:
        return "\n".join(filter(None, (clean(self.title).strip(), clean(self.intro).strip())))

    def text(self, symbols: Symbols) -> str:
        question, count = self.questions[self.at], len(self.questions)
        label = one_line(question.label, _LONG, symbols)
        place = f"{self.at + 1} of {count}" if count > 1 else ""
        head = ", ".join(filter(None, (label if label != clean(question.question).strip() else "", place)))
        return (f"[{head}] " if head else "") + shown(question, symbols)

    def take(self, line: str) -> Outcome:
        value = read(self.questions[self.at], line)
        return value if isinstance(value, Wrong) else self._answered(value)

    def skip(self) -> Outcome:
        if self.questions[self.at].required:
            return Wrong("this one has to be answered; /refuse answers none")
        return self._answered(None)

    def back(self) -> Outcome:
        if self.at == 0:
            return Wrong("this is the first question")
        self.at -= 1
        return Next()

    def _answered(self, value: Value | None) -> Outcome:
        question = self.questions[self.at]
        self.answers.pop(question.id, None)
        if value is not None:
            self.answers[question.id] = value
        if self.at + 1 < len(self.questions):
            self.at += 1
            return Next(said(value))
        return Reply(said(value), {"answers": self.answers})


@define(eq=False)
class Plan:
    plan: str

    def preamble(self) -> str:
        return clean(self.plan).strip() or "(the plan is empty)"

    def text(self, symbols: Symbols) -> str:
        return (
            "Is this plan good?\n"
            "  1  approve it\n"
            "  2  edit it first, in $EDITOR\n"
            "(a number; anything else asks for changes, and reaches the agent)"
        )

    def take(self, line: str) -> Outcome:
        word = line.strip()
        match word.lower():
            case "":
                return Wrong("1 approves, 2 edits; anything else asks for changes")
            case lowered if lowered in _YES:
                return Reply("approved")
            case "2" | "edit":
                return Edit(self.plan)
            case lowered if lowered in _NO:
                return refusal("")
        return Reply("changes asked for", denied=True, message=word)

    def edited(self, text: str) -> Outcome:
        if not text.strip():
            return Wrong("the edited plan is empty; nothing was sent")
        if text == self.plan:
            return Wrong("the plan was not changed; 1 approves it as it is")
        return Reply("approved, as you have edited it", {"plan": text})


@define(eq=False)
class Approval:
    what: str
    given: dict[str, Any]

    def preamble(self) -> str:
        lines = []
        for key, value in self.given.items():
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"{clean(key)}: {clean(written).strip()}")
        return "\n".join(lines)

    def text(self, symbols: Symbols) -> str:
        return (
            f"May the agent {self.what}?\n"
            "  1  allow it\n"
            "  2  deny it\n"
            "(a number; anything else denies it, and reaches the agent)"
        )

    def take(self, line: str) -> Outcome:
        word = line.strip()
        match word.lower():
            case "":
                return Wrong("1 allows, 2 denies; anything else denies it with these words")
            case lowered if lowered in _YES:
                return Reply("allowed", {})
            case lowered if lowered in _NO or lowered == "2":
                return Reply("denied", denied=True)
        return Reply("denied", denied=True, message=word)


Asking = Questions | Plan | Approval


def asking_of(frame: InteractionFrame) -> Asking | None:
    """The dialogue for it; None where its input is not what this version knows."""
    given = frame.tool_input
    match frame.interaction_type:
        case InteractionType.QUESTION:
            questions = _questions(given.get("questions"))
            return Questions(questions) if questions else None
        case InteractionType.FORM:
            try:
                form = codec.structure(Form, given, ())
            except codec.Invalid:
                return None
            return Questions(form.questions, form.title, form.intro) if form.questions else None
        case InteractionType.PLAN_EXIT:
            return Plan(_text(given.get("plan")))
        case InteractionType.COMMAND_APPROVAL:
            return Approval("run this command", given)
        case InteractionType.FILE_APPROVAL:
            return Approval("change these files", given)
        case InteractionType.PERMISSION_APPROVAL:
            return Approval(f"do this ({clean(frame.tool_name)})", given)


def _questions(given: Any) -> list[FormQuestion]:
    """Questions of a runtime, as those of a form; their answers go by the question, or by its header where two ask the
    same."""
    entries = [entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else []
    found: list[FormQuestion] = []
    for entry in entries:
        text, header = _text(entry.get("question")), _text(entry.get("header"))
        key = header if any(other.id == text for other in found) else text
        if key.strip():
            found.append(_question(key, text or header, header, entry))
    return found


def _question(key: str, text: str, header: str, entry: dict[str, Any]) -> FormQuestion:
    given = entry.get("options")
    options = [
        FormOption(label=_text(option.get("label")), description=_text(option.get("description")))
        for option in (given if isinstance(given, list) else [])
        if isinstance(option, dict) and _text(option.get("label")).strip()
    ]
    several = entry.get("multiSelect") is True
    chosen = FormQuestionKind.MULTI if several else FormQuestionKind.CHOICE
    return FormQuestion(
        id=key,
        kind=chosen if options else FormQuestionKind.LIST if several else FormQuestionKind.TEXT,
        label=header,
        question=text,
        help="",
        placeholder="",
        required=True,
        options=options,
        allow_other=bool(options),
        default=None,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
