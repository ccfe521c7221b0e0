"""What ends what: the table of ARCHITECTURE.md, a test for each of its cells.

Each action falls on a session in which everything is alive (see ``crossing``), through the front door.
"""

from functools import cache
from pathlib import Path

import pytest

from tests.agents.crossing import ACTIONS, came_of

COLUMNS = ("turn", "agents", "shells", "queue", "interactions", "sockets")
TABLE = """
| stop agent (*back*) | goes on | *front* goes on, *back* and *deep* stopped (`user`) | goes on | waits | *front* waits, *back* settled | stay |
| stop turn | stopped | *front* stopped (`turn_stop`), *back* and *deep* go on | goes on | runs | *front* settled, *back* waits | stay |
| stop all | stopped | stopped (`stop_all`) | stopped (`stop_all`) | runs | settled | stay |
| stop all, shells spared | stopped | stopped (`stop_all`) | goes on | runs | settled | stay |
| force | killed | interrupted (`force_stop`) | interrupted (`force_stop`) | runs | settled | stay |
| model change | goes on | go on | goes on | waits | wait | stay |
| archive | goes on | go on | goes on | waits | wait | stay |
| archive, forced | failed | interrupted (`archived`) | interrupted (`archived`) | cancelled | settled | stay |
| delete | failed | interrupted (`archived`) | interrupted (`archived`) | cancelled | settled | stay |
| account disabled | goes on | go on | goes on | waits | wait | the account's closed (1008) |
| shutdown | interrupted | interrupted (`gateway_restart`) | interrupted (`gateway_restart`) | refused | settled | all closed (1012) |
| kill -9 | interrupted | interrupted (`gateway_restart`) | interrupted (`gateway_restart`) | runs at the next start | settled | cut |
"""  # noqa: E501


def rows(table: str) -> dict[str, tuple[str, ...]]:
    """The cells of each action."""
    found = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.strip().splitlines()]
    return {action: tuple(cells) for action, *cells in found}


EXPECTED = rows(TABLE)
CELLS = [
    (action, column, cell) for action, cells in EXPECTED.items() for column, cell in zip(COLUMNS, cells, strict=True)
]
observed = cache(came_of)  # one life of the house for the cells of an action


@pytest.mark.parametrize(("action", "column", "cell"), CELLS, ids=[f"{action}-{column}" for action, column, _ in CELLS])
def test_what_an_action_does(action: str, column: str, cell: str) -> None:
    assert observed(action)[column] == cell


def test_every_action_stands_in_the_table() -> None:
    assert EXPECTED.keys() == ACTIONS.keys()


def test_the_table_is_the_one_in_the_architecture() -> None:
    text = Path("ARCHITECTURE.md").read_text(encoding="utf-8")
    head = f"| action | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}\n"
    assert text.count(head) == 1
    assert rows(text.partition(head)[2].partition("\n\n")[0]) == EXPECTED
