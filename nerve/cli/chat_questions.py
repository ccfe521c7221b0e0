"""One question that an agent asks: as text, and what a line says to it.  No I/O."""

import re
from urllib.parse import urlsplit

from attrs import frozen

from nerve.cli.chat_text import Symbols, clean, one_line
from nerve.contract.generated.entities import FormQuestion, FormQuestionKind

MAX_CHARACTERS = 4000  # what a server keeps of one value
_LONG = 300
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PARTS = re.compile(r"[,\n]")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")

Value = str | list[str]


@frozen
class Wrong:
    """A line that answers nothing; ``reason`` is for the person."""

    reason: str


def shown(question: FormQuestion, symbols: Symbols) -> str:
    """The question, its options, and what may be typed."""
    lines = [clean(question.question).strip() or clean(question.label).strip()]
    if question.help.strip():
        lines.append(clean(question.help).strip())
    marks = _marks(question)
    wide = max((len(mark) for mark in marks), default=0)
    for mark, option in zip(marks, question.options, strict=True):
        about = one_line(option.description, _LONG, symbols)
        label = one_line(option.label, _LONG, symbols)
        lines.append(f"  {mark:>{wide}}  {label}" + (f"  {about}" if about else ""))
    return "\n".join([*lines, f"({_how(question, symbols)})"])


def _marks(question: FormQuestion) -> list[str]:
    """What stands before the options: numbers, unless an option is one itself."""
    count = len(question.options)
    numbered = not any(option.label.strip().isdigit() for option in question.options) or count > len(_LETTERS)
    return [str(number) for number in range(1, count + 1)] if numbered else list(_LETTERS[:count])


def _how(question: FormQuestion, symbols: Symbols) -> str:
    own = " or your own words" if question.allow_other else ""
    mark = "a number" if not question.options or _marks(question)[0] == "1" else "a letter"
    match question.kind:
        case FormQuestionKind.CHOICE:
            how = mark + own
        case FormQuestionKind.MULTI:
            how = f"{mark}, or several{own}, with commas between"
        case FormQuestionKind.TEXT:
            how = one_line(question.placeholder, _LONG, symbols) or "your own words"
        case FormQuestionKind.LIST:
            how = "one or more, with commas or line ends (Alt-Enter) between"
        case FormQuestionKind.REPOS:
            how = "repositories as owner/name, with commas between"
        case FormQuestionKind.URL:
            how = "an address that begins with http:// or https://"
    if question.default is not None and question.default != []:
        return f"{how}; Enter: {one_line(said(question.default), _LONG, symbols)}"
    return how if question.required else f"{how}; Enter leaves it out"


def said(value: Value | None) -> str:
    """A value in words."""
    if value is None:
        return "left out"
    return value if isinstance(value, str) else ", ".join(value)


def read(question: FormQuestion, line: str) -> Value | Wrong | None:
    """What the line answers; None leaves the question out."""
    text = line.strip()
    if not text:
        if question.default is not None and question.default != []:
            return question.default
        return Wrong("this one has to be answered; /refuse answers none") if question.required else None
    many = question.kind in (FormQuestionKind.MULTI, FormQuestionKind.LIST, FormQuestionKind.REPOS)
    items: list[str] = []
    for part in _parts(question, text) if many else [text]:
        item = _item(question, part)
        if isinstance(item, Wrong):
            return item
        if item not in items:
            items.append(item)
    return items if many else items[0]


def _parts(question: FormQuestion, text: str) -> list[str]:
    """The items that a line names; a list that is written in rows keeps its commas."""
    if text in {option.label.strip() for option in question.options}:
        return [text]
    if question.kind is FormQuestionKind.LIST and "\n" in text:
        parts = text.split("\n")
    elif question.kind is FormQuestionKind.REPOS or set(text.split()) <= set(_marks(question)):
        parts = re.split(r"[,\s]+", text)
    else:
        parts = _PARTS.split(text)
    return [stripped for part in parts if (stripped := part.strip())] or [text]


def _item(question: FormQuestion, text: str) -> str | Wrong:
    if len(text) > MAX_CHARACTERS:
        return Wrong(f"that is longer than {MAX_CHARACTERS} characters")
    match question.kind:
        case FormQuestionKind.CHOICE | FormQuestionKind.MULTI:
            return _option(question, text)
        case FormQuestionKind.REPOS if _REPOSITORY.fullmatch(text) is None:
            return Wrong(f"{text} is not like owner/name")
        case FormQuestionKind.URL if not _is_address(text):
            return Wrong("that does not begin with http:// or https:// and the name of a host")
        case _:
            return text


def _option(question: FormQuestion, text: str) -> str | Wrong:
    labels = [option.label for option in question.options]
    named = [label for label in labels if label.strip().casefold() == text.casefold()]
    if named:
        return next((label for label in named if label.strip() == text), named[0])
    marks = _marks(question)
    if text.lower() in marks:
        return labels[marks.index(text.lower())]
    if question.allow_other and not (text.isdigit() and marks[:1] == ["1"]):
        return text
    return Wrong(f"{text} is none of these" if labels else "there is nothing to choose from; /refuse answers none")


def _is_address(text: str) -> bool:
    try:
        found = urlsplit(text)
        return found.scheme in ("http", "https") and bool(found.hostname) and not re.search(r"\s", text)
    except ValueError:
        return False
