"""Each reply that spec/ documents is provoked, and nothing that it does not document is ever answered."""

from collections.abc import Mapping
from typing import Any

import pytest

from nerve.contract.generated.routes import ROUTES
from nerve.routes import ENDPOINTS
from tests.conformance import scenarios_agents, scenarios_people, scenarios_shared, scenarios_work
from tests.conformance.conftest import Opening, local, starting_marks
from tests.conformance.subject import Local, Scenario
from tests.spec_replies import BY_ID, Documented, documented_replies, errors_of

DOCUMENTED = sorted(documented_replies())


def _merged(*tables: Mapping[Documented, Scenario]) -> dict[Documented, Scenario]:
    merged: dict[Documented, Scenario] = {}
    for table in tables:
        assert not (merged.keys() & table.keys())
        merged |= table
    return merged


SCENARIOS = _merged(
    scenarios_shared.scenarios(),
    scenarios_people.SCENARIOS,
    scenarios_work.SCENARIOS,
    scenarios_agents.SCENARIOS,
)


def _promise(operation_id: str, code: str = "") -> Documented:
    return next(d for d in DOCUMENTED if (d.operation_id, d.code) == (operation_id, code))


PROVES: Mapping[Documented, pytest.MarkDecorator] = {
    _promise("auth.login"): pytest.mark.req("AUTH-17", "AUTH-18"),
    _promise("auth.login", "bad_credentials"): pytest.mark.req("AUTH-21"),
    _promise("auth.login", "setup_incomplete"): pytest.mark.req("AUTH-25"),
    _promise("auth.login", "identity_not_ready"): pytest.mark.req("AUTH-26"),
    _promise("auth.status"): pytest.mark.req("AUTH-29", "AUTH-30"),
    _promise("auth.check"): pytest.mark.req("AUTH-41"),
    _promise("auth.me"): pytest.mark.req("AUTH-43"),
    _promise("setup.claim"): pytest.mark.req("CLAIM-02", "CLAIM-03"),
    _promise("setup.claim", "password_or_passwordless"): pytest.mark.req("CLAIM-13"),
    _promise("setup.claim", "username_required"): pytest.mark.req("CLAIM-15"),
    _promise("setup.claim", "bad_username"): pytest.mark.req("CLAIM-16"),
    _promise("setup.claim", "password_too_long"): pytest.mark.req("CLAIM-17"),
    _promise("setup.claim", "wrong_setup_token"): pytest.mark.req("CLAIM-18"),
    _promise("setup.claim", "setup_complete"): pytest.mark.req("CLAIM-21"),
    _promise("setup.claim", "identity_not_ready"): pytest.mark.req("CLAIM-28"),
    _promise("accounts.me"): pytest.mark.req("ACCT-08"),
    _promise("accounts.create"): pytest.mark.req("ACCT-09"),
    _promise("accounts.create", "password_too_long"): pytest.mark.req("ACCT-23", "ACCT-25"),
    _promise("accounts.create", "bad_username"): pytest.mark.req("ACCT-26"),
    _promise("accounts.create", "username_taken"): pytest.mark.req("ACCT-28"),
    _promise("accounts.create", "first_account_unnamed"): pytest.mark.req("ACCT-30", "ACCT-31"),
    _promise("accounts.create", "first_account_passwordless"): pytest.mark.req("ACCT-31"),
    _promise("accounts.update", "account_not_found"): pytest.mark.req("ACCT-27"),
    _promise("accounts.disable", "account_not_found"): pytest.mark.req("ACCT-27"),
    _promise("accounts.enable", "account_not_found"): pytest.mark.req("ACCT-27"),
    _promise("accounts.update", "username_taken"): pytest.mark.req("ACCT-29"),
    _promise("accounts.disable", "last_enabled_account"): pytest.mark.req("ACCT-31"),
    _promise("accounts.enable", "passwordless_among_others"): pytest.mark.req("ACCT-31"),
    _promise("accounts.change_password", "current_password_required"): pytest.mark.req("ACCT-21"),
    _promise("accounts.change_password", "wrong_current_password"): pytest.mark.req("ACCT-22"),
    _promise("accounts.change_password", "password_too_long"): pytest.mark.req("ACCT-24"),
    _promise("health.get"): pytest.mark.req("HEALTH-01", "HEALTH-02", "HEALTH-06"),
    _promise("sessions.list"): pytest.mark.req("SESS-01", "SESS-30", "SESS-31", "SESS-32"),
    _promise("sessions.create"): pytest.mark.req("SESS-22"),
    _promise("sessions.get", "session_not_found"): pytest.mark.req("SESS-34"),
    _promise("sessions.unarchive", "session_not_found"): pytest.mark.req("SESS-21"),
    _promise("sessions.delete", "main_is_permanent"): pytest.mark.req("SESS-40"),
    _promise("sessions.archive", "main_is_permanent"): pytest.mark.req("SESS-59"),
    _promise("sessions.archive"): pytest.mark.req("SESS-64"),
    _promise("sessions.status"): pytest.mark.req("SESS-49"),
    _promise("chat.send"): pytest.mark.req("CHAT-01"),
    _promise("chat.send", "unauthenticated"): pytest.mark.req("CHAT-04"),
    _promise("chat.send", "invalid_request"): pytest.mark.req("CHAT-05"),
    _promise("sessions.stop", "session_not_found"): pytest.mark.req("AGENT-01", "AGENT-69"),
    _promise("sessions.stop", "bad_scope"): pytest.mark.req("AGENT-01", "AGENT-70"),
    _promise("queue.list", "session_not_found"): pytest.mark.req("AGENT-01", "AGENT-73"),
    _promise("queue.cancel"): pytest.mark.req("AGENT-74"),
    _promise("queue.cancel", "queue_entry_not_found"): pytest.mark.req("AGENT-01", "AGENT-75"),
    _promise("queue.cancel", "already_started"): pytest.mark.req("AGENT-01", "AGENT-76"),
    _promise("queue.cancel", "not_owner"): pytest.mark.req("AGENT-01", "AGENT-77"),
}


@local(Local.CODE)
def test_every_operation_is_bound() -> None:
    assert sorted(endpoint.route.operation_id for endpoint in ENDPOINTS) == sorted(BY_ID)


@local(Local.CODE)
def test_both_readers_of_the_spec_find_the_same_errors() -> None:
    generated = {r.operation_id: {code.value: kind.value for code, kind in r.errors.items()} for r in ROUTES}
    assert {operation_id: errors_of(operation_id) for operation_id in BY_ID} == generated


def test_every_documented_reply_has_a_scenario() -> None:
    assert SCENARIOS.keys() == documented_replies()


def _case(documented: Documented) -> Any:
    marks = [PROVES[documented]] if documented in PROVES else []
    if (scenario := SCENARIOS.get(documented)) is not None:  # one that is missing fails the test above
        marks += starting_marks(scenario.start) if scenario.local is None else [local(scenario.local)]
    if documented == _promise("setup.claim"):
        marks.append(pytest.mark.claims)  # the first of those that do
    if documented.code == "login_busy":
        marks.append(pytest.mark.wrong_passwords)
    return pytest.param(documented, marks=marks)


@pytest.mark.req("GEN-01", "GEN-08", "AUTH-01", "AUTH-09", "ACCT-02", "ACCT-04", "ACTOR-01", "ACTOR-04")
@pytest.mark.parametrize("documented", [_case(documented) for documented in DOCUMENTED], ids=str)
async def test_documented_reply_is_reachable(documented: Documented, opening: Opening) -> None:
    scenario = SCENARIOS[documented]
    async with opening(scenario.start) as subject:
        answer = await scenario.play(subject)
        assert answer.documented == documented
