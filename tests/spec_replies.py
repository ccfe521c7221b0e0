"""What spec/ promises of replies, and which promise a reply keeps.  Reads spec/ apart from the generator."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote_to_bytes

from attrs import frozen
from jsonschema import Draft202012Validator, FormatChecker

from tests.contract.spec_reader import CALLS, COMMON, ENTITIES, ERRORS, Call

MODES = ("local", "external")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PLAIN_STRING = {"type", "default", "description"}

BY_ID: Mapping[str, Call] = {call.id: call for call in CALLS}


@frozen(order=True)
class Documented:
    """One promised reply.  ``code`` is the name of the error, "" for a success."""

    operation_id: str
    status: int
    code: str = ""

    def __str__(self) -> str:
        return f"{self.operation_id}-{self.status}" + (f"-{self.code}" if self.code else "")


# --- which errors an operation may answer -------------------------------------------------------------------------


def modes_of(call: Call) -> tuple[str, ...]:
    return tuple(call.nerve.get("modes", MODES))


def refusal_of(call: Call) -> str:
    return str(call.nerve.get("refusal", "person_required"))


def _has_rules(parameter: dict[str, Any]) -> bool:
    schema = parameter["schema"]
    return schema.get("type") != "string" or bool(schema.keys() - _PLAIN_STRING)


def _applies(when: str, call: Call) -> bool:
    nerve = call.nerve
    needs_credential = nerve["auth"] in ("any", "person")
    match when:
        case "every":
            return True
        case "host":
            return nerve.get("host") != "any"
        case "credential":
            return needs_credential
        case "person":
            return bool(nerve["auth"] == "person")
        case "ambient_write":
            return needs_credential and nerve["work"] == "write"
        case "body":
            return "requestBody" in call.raw
        case "params":
            return any(_has_rules(parameter) for parameter in call.raw.get("parameters", []))
        case "write":
            return bool(nerve["work"] == "write")
        case other:
            raise ValueError(f"spec/common.yaml knows no rule {other!r}")


@cache
def errors_of(operation_id: str) -> dict[str, str]:
    """The errors of an operation, each with the kind of its body."""
    call = BY_ID[operation_id]
    errors: dict[str, str] = {}
    for group in COMMON["groups"]:
        if _applies(group["when"], call):
            names = (refusal_of(call) if name == "refusal" else name for name in group["errors"])
            without = call.nerve.get("without", ())
            errors |= {name: ERRORS[name]["kind"] for name in names if name not in without}
    for entry in call.nerve.get("errors", []):
        name, kind = next(iter(entry.items())) if isinstance(entry, dict) else (entry, call.errors_as)
        errors[name] = kind or ERRORS[name]["kind"]
    return errors


def documented_replies() -> frozenset[Documented]:
    """Every (operation, status, code) of spec/, successes included."""
    successes = {Documented(call.id, int(status)) for call in CALLS for status in call.raw["responses"]}
    errors = {Documented(call.id, ERRORS[name]["status"], name) for call in CALLS for name in errors_of(call.id)}
    return frozenset(successes | errors)


# --- which operation a request asks for ---------------------------------------------------------------------------


@frozen
class Resource:
    """What one path of spec/ serves in one mode."""

    template: str
    calls: Mapping[str, Call]  # by method, upper case

    @property
    def allow(self) -> set[str]:
        return {*self.calls, "OPTIONS"} | ({"HEAD"} if "GET" in self.calls else set())


@cache
def resources(mode: str) -> tuple[Resource, ...]:
    """Literal segments before parameters, so that the first one that fits is the one that counts."""
    templates: dict[str, dict[str, Call]] = {}
    for call in CALLS:
        if mode in modes_of(call):
            templates.setdefault(call.path, {})[call.method.upper()] = call
    ordered = sorted(templates, key=lambda path: [segment.startswith("{") for segment in path.split("/")])
    return tuple(Resource(template, templates[template]) for template in ordered)


def find(mode: str, raw_path: str) -> Resource | None:
    segments = [_decoded(segment) for segment in raw_path.split("/")]
    if None in segments:
        return None
    return next((r for r in resources(mode) if _fits(r.template.split("/"), segments)), None)


def _decoded(segment: str) -> str | None:
    if _MALFORMED.search(segment):
        return None
    try:
        return unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _fits(template: list[str], segments: list[Any]) -> bool:
    return len(template) == len(segments) and all(
        bool(there) if wanted.startswith("{") else wanted == there
        for wanted, there in zip(template, segments, strict=True)
    )


# --- which promise a body keeps -----------------------------------------------------------------------------------


def error_names(body: Any, candidates: Mapping[str, str], status: int) -> list[str]:
    """Which of the errors (name to kind) have this status and this body; those with a fixed sentence win."""
    fitting = [n for n, kind in candidates.items() if ERRORS[n]["status"] == status and is_error(body, n, kind)]
    fixed = [name for name in fitting if not ERRORS[name].get("varies")]
    return fixed or fitting


def is_error(body: Any, name: str, kind: str | None = None) -> bool:
    """Whether a body is exactly that of the error."""
    declared = ERRORS[name]
    extra = set(declared.get("extra", ()))
    if not isinstance(body, dict) or "detail" not in body:
        return False
    detail, kind = body["detail"], kind or declared["kind"]
    match kind:
        case "detail":
            return body.keys() == {"detail"} | extra and _says(detail, declared)
        case "field":
            return body.keys() == {"detail", "field"} | extra and _says(detail, declared)
        case "code" | "reason":
            return (
                body.keys() == {"detail"}
                and isinstance(detail, dict)
                and detail.keys() == {kind, "message"} | extra
                and detail[kind] == name
                and _says(detail["message"], declared)
            )
        case "validation":
            return (
                body.keys() == {"detail"} and isinstance(detail, list) and bool(detail) and all(map(_problem, detail))
            )
        case other:
            raise ValueError(f"spec/errors.yaml knows no kind {other!r}")


def _says(sentence: Any, declared: dict[str, Any]) -> bool:
    if not isinstance(sentence, str) or not sentence:
        return False
    return bool(declared.get("varies")) or _sentence(declared["message"]).fullmatch(sentence) is not None


@cache
def _sentence(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{[a-z_]+\}", template)
    return re.compile(".+".join(map(re.escape, parts)), re.DOTALL)


def _problem(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.keys() == {"type", "loc", "msg"}
        and isinstance(item["type"], str)
        and isinstance(item["msg"], str)
        and isinstance(item["loc"], list)
        and all(isinstance(step, str | int) and not isinstance(step, bool) for step in item["loc"])
    )


# --- schemas ------------------------------------------------------------------------------------------------------


_formats = FormatChecker(formats=())


@_formats.checks("date-time")
def _is_instant(value: object) -> bool:
    """Stricter than JSON Schema's own: the one form of an instant on the wire (decisions D54)."""
    return not isinstance(value, str) or _INSTANT.fullmatch(value) is not None


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": {"schemas": ENTITIES}}, format_checker=_formats)


@cache
def _reply_validator(operation_id: str, status: int) -> Draft202012Validator:
    content = BY_ID[operation_id].raw["responses"][str(status)]["content"]
    return validator(next(iter(content.values()))["schema"])


def body_complaints(operation_id: str, status: int, body: Any) -> Iterator[str]:
    for error in _reply_validator(operation_id, status).iter_errors(body):
        yield f"{error.json_path}: {error.message}"


def media_type_of(operation_id: str, status: int) -> str:
    return str(next(iter(BY_ID[operation_id].raw["responses"][str(status)]["content"])))
