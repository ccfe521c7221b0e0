"""A text that no log line, error or ``repr`` can show."""

import hmac
from typing import NoReturn


class Secret:
    """Holds one credential.  False when blank; ``reveal()`` is the only way to the value.

    Not a ``str``: formatting, concatenation and JSON encoders can't pick the value up by accident.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = "" if not value.strip() else value

    def reveal(self) -> str:
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(
            self._value.encode("utf-8", "surrogatepass"), other._value.encode("utf-8", "surrogatepass")
        )

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(set)" if self._value else "Secret(unset)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled or copied")

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> "Secret":
        return self
