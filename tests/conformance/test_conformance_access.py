"""Who may call what: every operation with every kind of credential, expected from the policies in spec/."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from attrs import evolve

from tests.conformance.conftest import Opening, local
from tests.conformance.recipes import bare, start_of, valid
from tests.conformance.subject import PASSWORD, Local, Start, Subject, new_person, new_session
from tests.contract.spec_reader import Call
from tests.spec_client import SpecClient
from tests.spec_replies import BY_ID, modes_of, refusal_of

Credential = Callable[[Subject], Awaitable[SpecClient]]
AWAY = "192.0.2.7"  # a peer that is not this machine


async def nobody(subject: Subject) -> SpecClient:
    return subject.anyone


async def garbage(subject: Subject) -> SpecClient:
    return subject.anyone.with_(token="garbage")


async def truncated(subject: Subject) -> SpecClient:
    return subject.anyone.with_(token=str(subject.owner.wire.token)[:-2])


async def expired(subject: Subject) -> SpecClient:
    me = await subject.owner.ok("auth.me")
    return subject.anyone.with_(token=subject.keys.session(me["account"]["id"], age_seconds=7200, life_seconds=3600))


async def stranger(subject: Subject) -> SpecClient:
    return subject.anyone.with_(token=subject.keys.session("acc_ffffffffffffffff"))


async def disabled(subject: Subject) -> SpecClient:
    person, account = await new_person(subject)
    await subject.owner.ok("accounts.disable", path={"account_id": account["id"]})
    return person


async def session(subject: Subject) -> SpecClient:
    return subject.owner


async def by_cookie(subject: Subject) -> SpecClient:
    return subject.anyone.with_(headers=(("cookie", f"other=1; nerve_token={subject.owner.wire.token}"),))


async def legacy(subject: Subject) -> SpecClient:
    return subject.anyone.with_(token=subject.keys.legacy())


async def system(subject: Subject) -> SpecClient:
    return subject.anyone.with_(token=subject.keys.system())


async def tool(subject: Subject) -> SpecClient:
    return subject.anyone.with_(token=subject.keys.mcp())


async def bound_tool(subject: Subject) -> SpecClient:
    return subject.anyone.with_(token=subject.keys.mcp(await new_session(subject.owner)))


async def orphaned_tool(subject: Subject) -> SpecClient:
    return subject.anyone.with_(token=subject.keys.mcp("no-such-session"))


async def gateway(subject: Subject) -> SpecClient:
    return subject.anyone.with_(headers=(("x-nerve-actor-context", subject.keys.context("bob@gateway", "Bob")),))


async def forged_context(subject: Subject) -> SpecClient:
    return subject.anyone.with_(headers=(("x-nerve-actor-context", subject.keys.system()),))


def away(credential: Credential) -> Credential:
    async def from_afar(subject: Subject) -> SpecClient:
        return (await credential(subject)).with_(peer=AWAY)

    return from_afar


# Whom each credential stands for, in the words of the policies: a person, some program of the house, or nobody.
LOCAL: Mapping[str, tuple[Credential, str]] = {
    "none": (nobody, "nobody"),
    "garbage": (garbage, "nobody"),
    "truncated": (truncated, "nobody"),
    "expired": (expired, "nobody"),
    "unknown account": (stranger, "nobody"),
    "disabled": (disabled, "nobody"),
    "session": (session, "person"),
    "session from afar": (away(session), "person"),
    "cookie": (by_cookie, "person"),
    "legacy": (legacy, "person"),
    "system": (system, "program"),
    "MCP": (tool, "program"),
    "MCP of a session": (bound_tool, "program"),
    "MCP of a deleted session": (orphaned_tool, "nobody"),
    "actor context": (gateway, "nobody"),
}
EXTERNAL: Mapping[str, tuple[Credential, str]] = {
    "none": (nobody, "nobody"),
    "garbage": (garbage, "nobody"),
    "actor context": (gateway, "person"),
    "actor context from afar": (away(gateway), "person"),
    "forged actor context": (forged_context, "nobody"),
    "session": (stranger, "nobody"),
    "legacy": (legacy, "nobody"),
    "system": (system, "program"),
    "system from afar": (away(system), "nobody"),
    "MCP": (tool, "program"),
    "MCP from afar": (away(tool), "nobody"),
}
CASES = [
    *((Start.CLAIMED, name, *case) for name, case in LOCAL.items()),
    *((Start.EXTERNAL, name, *case) for name, case in EXTERNAL.items()),
]
ANYWHERE = {"none", "garbage", "truncated", "disabled", "session", "cookie"}


def _case(start: Start, name: str, credential: Credential, who: str) -> Any:
    marks = []
    if start is not Start.CLAIMED:
        marks.append(local(Local.ALONE))
    elif name not in ANYWHERE:
        marks.append(local(Local.PEER if name.endswith("from afar") else Local.KEYS))
    return pytest.param(start, name, credential, who, marks=marks, id=f"{start.value}-{name}")


each_credential = pytest.mark.parametrize(("start", "name", "credential", "who"), [_case(*case) for case in CASES])


def expected(call: Call, who: str) -> str | None:
    """The error that the policy demands; None if it lets the caller through."""
    match call.nerve["auth"], who:
        case "open", _:
            return None
        case _, "nobody":
            return "unauthenticated"
        case "person", "program":
            return refusal_of(call)
    return None


@pytest.mark.req("AUTH-01", "AUTH-03", "AUTH-05", "AUTH-07", "AUTH-08", "AUTH-10", "AUTH-42", "ACCT-02", "CHAT-04")
@each_credential
async def test_a_credential_may_what_the_policies_say(
    start: Start, name: str, credential: Credential, who: str, opening: Opening
) -> None:
    async with opening(start) as subject:
        client = await credential(subject)
        for operation_id, call in BY_ID.items():
            if client.mode not in modes_of(call):
                continue
            request = bare(subject, operation_id)
            answer = await client.call(operation_id, request.body, path=request.path)
            refusals = {"unauthenticated", refusal_of(call)}
            assert (answer.code if answer.code in refusals else None) == expected(call, who), (name, operation_id)


@pytest.mark.req("AUTH-04")
@pytest.mark.parametrize("operation_id", [i for i, call in BY_ID.items() if call.nerve["auth"] != "open"])
async def test_a_token_in_the_query_is_as_good(operation_id: str, opening: Opening) -> None:
    async with opening(start_of(operation_id)) as subject:
        request = await valid(subject, operation_id)
        by_query = subject.anyone
        request = request.asking(token=str(request.client.wire.token))
        answer = await evolve(request, client=by_query).send()
        assert answer.code == ""


@pytest.mark.req("AUTH-02", "AUTH-03", "AUTH-04")
async def test_the_header_counts_before_the_cookie_and_the_cookie_before_the_query(subject: Subject) -> None:
    good, bad = str(subject.owner.wire.token), "garbage"

    async def code(header: str | None, cookie: str | None, query: str | None) -> str:
        headers = {} if cookie is None else {"cookie": f"nerve_token={cookie}"}
        client = subject.anyone.with_(token=header)
        answer = await client.call("auth.check", headers=headers, query={} if query is None else {"token": query})
        return answer.code

    assert await code(good, bad, bad) == await code(None, good, bad) == await code(None, None, good) == ""
    assert await code(bad, good, good) == await code(None, bad, good) == "unauthenticated"


@local(Local.ALONE)
@pytest.mark.req("AUTH-09", "AUTH-26", "AUTH-39", "CLAIM-28")
async def test_before_identity_is_ready_only_what_is_open_answers(opening: Opening) -> None:
    async with opening(Start.UNREADY) as subject:
        for operation_id, call in BY_ID.items():
            request = bare(subject, operation_id)
            answer = await request.send()
            needs_identity = call.nerve["auth"] != "open" or "identity_not_ready" in call.nerve.get("errors", [])
            assert (answer.code == "identity_not_ready") is needs_identity, operation_id
        assert (await subject.anyone.ok("auth.status"))["login"] == "username_password"


@pytest.mark.req("WS-01", "WS-02", "WS-03", "WS-04")
@each_credential
async def test_a_socket_of_nobody_is_closed_with_4001(
    start: Start, name: str, credential: Credential, who: str, opening: Opening
) -> None:
    async with opening(start) as subject:
        client = await credential(subject)
        async with client.connect() as socket:
            if who == "nobody":
                await socket.expect_close(4001)
            else:
                assert (await socket.receive_json())["type"] == "session_switched"


@pytest.mark.req("ACCT-32", "ACCT-33", "ACCT-34", "WS-06")
async def test_disabling_ends_what_is_open_and_enabling_gives_it_back(subject: Subject) -> None:
    person, account = await new_person(subject)
    path = {"account_id": account["id"]}
    async with person.connect() as socket, subject.owner.connect() as other:
        await socket.receive_until("session_status")
        await subject.owner.ok("accounts.disable", path=path)
        await socket.expect_close(1008)
        assert (await person.call("auth.check")).code == "unauthenticated"
        await other.send_json({"type": "ping"})
        assert (await other.receive_until("pong"))[-1] == {"type": "pong"}
    sign_in = {"username": account["username"], "password": PASSWORD}
    assert (await subject.anyone.call("auth.login", sign_in)).code == "bad_credentials"
    await subject.owner.ok("accounts.enable", path=path)
    await person.ok("auth.check")
