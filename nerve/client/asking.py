"""Which interactions a follower has shown, so that none comes twice."""

from attrs import define, field

REMEMBERED = 256


@define(eq=False)
class Asked:
    _ids: dict[str, None] = field(factory=dict, init=False)

    def forget(self) -> None:
        """What still waits is told again."""
        self._ids.clear()

    def shown(self, interaction_id: str) -> bool:
        """Remember it; False where it was shown before.  The oldest are forgotten."""
        if interaction_id in self._ids:
            return False
        self._ids[interaction_id] = None
        if len(self._ids) > REMEMBERED:
            del self._ids[next(iter(self._ids))]
        return True
