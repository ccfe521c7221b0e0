"""What is said about a play that doesn't fit its schema: one sentence about the first place where it doesn't."""

from collections.abc import Iterable
from typing import Any

from jsonschema_rs import ValidationError, ValidationErrorKind

from nerve.adapters.scripted.problem import PlayError, pointer_to, shown
from nerve.contract.misfit import about_value


def first_problem(errors: Iterable[ValidationError], document: Any, step_names: frozenset[str]) -> PlayError | None:
    """The error about the first place in document order, or None where there is no error."""
    found = list(errors)
    if not found:
        return None
    first = min(found, key=lambda error: _position(error.instance_path, document))
    path = first.instance_path
    here = _value_at(document, path)
    if isinstance(here, dict):
        return _about_mapping(first, path, here, step_names)
    if not path:
        return PlayError("", "a play must be a list of steps, or a mapping with 'steps'")
    key = path[-1]
    if isinstance(key, str):
        return PlayError(pointer_to(path[:-1]), f"'{key}' {_about_value(first)}")
    return PlayError(pointer_to(path), _about_value(first))


def _about_mapping(
    error: ValidationError, path: list[str | int], mapping: dict[str, Any], step_names: frozenset[str]
) -> PlayError:
    at = pointer_to(path)
    owner = _owner(path, mapping, step_names)
    kind = error.kind
    if isinstance(kind, ValidationErrorKind.Required):
        return PlayError(at, f"{owner} needs '{kind.property}'")
    if isinstance(kind, ValidationErrorKind.AdditionalProperties):
        return PlayError(at, f"{owner} has no field '{shown(kind.unexpected[0])}'")
    if isinstance(kind, ValidationErrorKind.AnyOf):
        if not mapping:
            return PlayError(at, "a step needs a name")
        return PlayError(at, f"unknown step '{shown(next(iter(mapping)))}'")
    if path and isinstance(path[-1], str):
        return PlayError(pointer_to(path[:-1]), f"'{path[-1]}' {_about_value(error)}")
    return PlayError(at, _about_value(error))


def _owner(path: list[str | int], mapping: dict[str, Any], step_names: frozenset[str]) -> str:
    """How the mapping is called: the play, a step, or what a key holds."""
    if not path:
        return "a play"
    if isinstance(path[-1], str):
        return f"'{path[-1]}'"
    if len(path) < 2 or path[-2] in ("steps", "revise", "on_settled"):
        name = next((key for key in mapping if key in step_names), None)
        return f"the step '{'agent' if 'agent' in mapping else name}'"
    return f"an entry of '{path[-2]}'"


def _about_value(error: ValidationError) -> str:
    return about_value(error) or "does not fit the schema of plays"


def _value_at(document: Any, path: Iterable[str | int]) -> Any:
    for part in path:
        document = document[part]
    return document


def _position(path: Iterable[str | int], document: Any) -> tuple[int, ...]:
    position: list[int] = []
    for part in path:
        position.append(part if isinstance(part, int) else list(document).index(part))
        document = document[part]
    return tuple(position)
