"""What doesn't fit about a value, in words: the clause that follows the name of the value."""

from typing import Any

from jsonschema_rs import ValidationError, ValidationErrorKind

TYPES = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def about_value(error: ValidationError) -> str | None:
    """None for a rule that has no words here."""
    match error.kind:
        case ValidationErrorKind.Type(types=types):
            return "must be " + " or ".join(TYPES.get(name, name) for name in types)
        case ValidationErrorKind.Minimum(limit=limit):
            return f"must be at least {limit}"
        case ValidationErrorKind.Maximum(limit=limit):
            return f"must be at most {limit}"
        case ValidationErrorKind.MinLength() | ValidationErrorKind.MinItems() | ValidationErrorKind.MinProperties():
            return "must not be empty"
        case ValidationErrorKind.MaxLength(limit=limit):
            return f"must be at most {limit} characters long"
        case ValidationErrorKind.MaxItems(limit=limit):
            return f"must have at most {limit} entries"
        case ValidationErrorKind.Enum(options=options):
            return "must be " + " or ".join(_option(option) for option in options)
        case ValidationErrorKind.Constant(expected_value=value):
            return f"must be {_option(value)}"
        case _:
            return None


def _option(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
