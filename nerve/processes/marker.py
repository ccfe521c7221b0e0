"""What a child process carries in its environment, so that it is found again whoever its parent is by then."""

from collections.abc import Mapping

from attrs import frozen

HOME = "NERVE_HOME_ID"
SESSION = "NERVE_SESSION_ID"
AGENT = "NERVE_AGENT_ID"


@frozen
class Marker:
    """Whose process it is: the home's id outlives daemons, the agent's is its record's."""

    home_id: str
    session_id: str
    agent_id: str

    def environment(self) -> dict[str, str]:
        return {HOME: self.home_id, SESSION: self.session_id, AGENT: self.agent_id}

    @classmethod
    def found_in(cls, environment: Mapping[str, str]) -> "Marker | None":
        """The mark of a process; None for one that carries no home."""
        home_id = environment.get(HOME)
        if not home_id:
            return None
        return cls(home_id, environment.get(SESSION, ""), environment.get(AGENT, ""))


def is_marker(name: str) -> bool:
    """Whether a variable belongs to a mark: a daemon that an agent starts must not inherit the agent's."""
    return name in (HOME, SESSION, AGENT)
