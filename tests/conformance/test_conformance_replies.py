"""Each reply that spec/ documents is provoked, and nothing that it does not document is ever answered."""

from collections.abc import Mapping

import pytest

from nerve.contract.generated.routes import ROUTES
from nerve.routes import ENDPOINTS
from tests.conformance import scenarios_people, scenarios_shared, scenarios_work
from tests.conformance.conftest import Opening
from tests.conformance.subject import Scenario
from tests.spec_replies import BY_ID, Documented, documented_replies, errors_of

DOCUMENTED = sorted(documented_replies())


def _merged(*tables: Mapping[Documented, Scenario]) -> dict[Documented, Scenario]:
    merged: dict[Documented, Scenario] = {}
    for table in tables:
        assert not (merged.keys() & table.keys())
        merged |= table
    return merged


SCENARIOS = _merged(scenarios_shared.scenarios(), scenarios_people.SCENARIOS, scenarios_work.SCENARIOS)


def test_every_operation_is_bound() -> None:
    assert sorted(endpoint.route.operation_id for endpoint in ENDPOINTS) == sorted(BY_ID)


def test_both_readers_of_the_spec_find_the_same_errors() -> None:
    generated = {r.operation_id: {code.value: kind.value for code, kind in r.errors.items()} for r in ROUTES}
    assert {operation_id: errors_of(operation_id) for operation_id in BY_ID} == generated


def test_every_documented_reply_has_a_scenario() -> None:
    assert SCENARIOS.keys() == documented_replies()


@pytest.mark.parametrize("documented", DOCUMENTED, ids=str)
async def test_documented_reply_is_reachable(documented: Documented, opening: Opening) -> None:
    scenario = SCENARIOS[documented]
    async with opening(scenario.start) as subject:
        answer = await scenario.play(subject)
        assert answer.documented == documented
