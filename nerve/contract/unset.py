"""The value of a field that was left out.  The contract reads many fields by presence, so ``None`` is not it."""

from enum import Enum
from typing import Final, Literal


class Unset(Enum):
    """Has one member, so that ``x is UNSET`` narrows a union for the type checker."""

    UNSET = "unset"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
