"""The one exception of the house, and the one mapping from it to a documented body."""

from typing import Any

from attrs import frozen

from nerve.contract.generated.errors import ERRORS, ErrorCode, ErrorKind
from nerve.contract.rules import Problem

__all__ = ["ErrorBody", "ErrorCode", "NerveError", "Problem", "error_body", "sole_error"]


class NerveError(Exception):
    """Something a client is told about.  Details fill the placeholders of the message and the body's extra keys.

    ``message=`` replaces the declared sentence where spec/errors.yaml says that it varies; ``retry_after=`` (seconds)
    becomes a header; ``problems=`` is the list of a 422.
    """

    def __init__(self, code: ErrorCode, **details: Any) -> None:
        super().__init__(code.value)
        self.code = code
        self.details = details

    def __str__(self) -> str:
        return self.message

    @property
    def message(self) -> str:
        given = self.details.get("message")
        return str(given) if given is not None else ERRORS[self.code].message.format_map(_Blank(self.details))


class _Blank(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""


@frozen
class ErrorBody:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: dict[str, Any]


def error_body(error: NerveError, kind: ErrorKind | None = None) -> ErrorBody:
    """The documented reply for an error: its status, extra headers and body (spec/errors.yaml).

    ``kind`` is the form that the operation states for its own body; None takes the error's own.
    """
    declared = ERRORS[error.code]
    extra = {key: error.details[key] for key in declared.extra if key in error.details}
    body: dict[str, Any]
    match kind or declared.kind:
        case ErrorKind.DETAIL:
            body = {"detail": error.message, **extra}
        case ErrorKind.FIELD:
            body = {"detail": error.message, "field": error.details["field"], **extra}
        case ErrorKind.CODE:
            body = {"detail": {"code": error.code.value, "message": error.message, **extra}}
        case ErrorKind.REASON:
            body = {"detail": {"reason": error.code.value, "message": error.message, **extra}}
        case ErrorKind.VALIDATION:
            problems: tuple[Problem, ...] = error.details["problems"]
            body = {"detail": [{"type": p.type, "loc": list(p.loc), "msg": p.msg} for p in problems]}
    headers: list[tuple[str, str]] = []
    if (seconds := error.details.get("retry_after", declared.retry_after)) is not None:
        headers.append(("retry-after", str(seconds)))
    if (allow := error.details.get("allow")) is not None:
        headers.append(("allow", str(allow)))
    return ErrorBody(declared.status, tuple(headers), body)


def sole_error(exc: BaseException) -> NerveError | None:
    """The NerveError inside ``exc``, looking through nursery groups of one; None if there is anything else."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc if isinstance(exc, NerveError) else None
