"""Scenarios of what many operations share, made from spec/: a request that succeeds, then with one thing spoilt."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.conformance.recipes import Request, bare, headers_of, query_of, start_of, valid
from tests.conformance.subject import Local, Play, Scenario, Start, Subject
from tests.contract.spec_reader import ERRORS
from tests.spec_client import Answer
from tests.spec_replies import BY_ID, Documented, errors_of, refusal_of

FOREIGN_HOST = "elsewhere.example"
FOREIGN_ORIGIN = "https://elsewhere.example"
LARGEST_BODY = 10 * 1024 * 1024

Spoil = Callable[[Subject, Request], Awaitable[Answer]]


async def _succeed(subject: Subject, request: Request) -> Answer:
    return await request.send()


async def _without_credential(subject: Subject, request: Request) -> Answer:
    return await request.by(token=None).send()


async def _to_another_host(subject: Subject, request: Request) -> Answer:
    return await request.by(host=FOREIGN_HOST).send()


async def _from_another_origin(subject: Subject, request: Request) -> Answer:
    cookie = ("cookie", f"nerve_token={request.client.wire.token}")
    return await request.by(token=None, headers=(cookie, ("origin", FOREIGN_ORIGIN))).send()


async def _as_the_system(subject: Subject, request: Request) -> Answer:
    return await request.by(token=subject.keys.system()).send()


async def _too_large(subject: Subject, request: Request) -> Answer:
    limit = BY_ID[request.operation_id].nerve.get("body_limit", LARGEST_BODY)
    return await request.raw(request.encoded().ljust(limit + 1)).send()


async def _as_a_form(subject: Subject, request: Request) -> Answer:
    return await request.raw(request.encoded(), "application/x-www-form-urlencoded").send()


async def _malformed(subject: Subject, request: Request) -> Answer:
    """A body that is no JSON; where there is no body, parameters that do not fit theirs."""
    call = BY_ID[request.operation_id]
    if call.takes == "multipart/form-data":
        return await request.with_options(content=b"no form").send()
    if call.takes is not None:
        return await request.raw(request.encoded() + b"}").send()
    query = {name: _unfit(schema) for name, schema in query_of(call).items() if not _takes_any(schema)}
    headers = dict.fromkeys(headers_of(call), "perhaps")
    return await request.with_options(query=query, headers=headers).send()


def _takes_any(schema: Mapping[str, Any]) -> bool:
    return schema["type"] == "string" and "maxLength" not in schema


def _unfit(schema: Mapping[str, Any]) -> str:
    return "x" * (schema["maxLength"] + 1) if schema["type"] == "string" else "perhaps"


async def _while_the_disk_is_full(subject: Subject, request: Request) -> Answer:
    subject.faults.refuse_writes("store_full")
    return await request.send()


async def _while_the_database_is_busy(subject: Subject, request: Request) -> Answer:
    subject.faults.refuse_writes("store_busy")
    return await request.send()


async def _with_a_broken_handler(subject: Subject, request: Request) -> Answer:
    subject.faults.break_handlers()
    return await request.send()


SPOILS: Mapping[str, Spoil] = {
    "unauthenticated": _without_credential,
    "wrong_host": _to_another_host,
    "foreign_origin": _from_another_origin,
    "body_too_large": _too_large,
    "unsupported_media_type": _as_a_form,
    "invalid_request": _malformed,
}
LOCAL_SPOILS: Mapping[str, Spoil] = {
    "internal": _with_a_broken_handler,
    "store_full": _while_the_disk_is_full,
    "store_busy": _while_the_database_is_busy,
}
# Of something that the path names: errors of operations that have such a parameter.
MISSING: Mapping[str, str] = {
    "session_not_found": "session_id",
    "account_not_found": "account_id",
    "file_not_found": "file_id",
}


def _spoilt(operation_id: str, spoil: Spoil) -> Play:
    async def play(subject: Subject) -> Answer:
        return await spoil(subject, await valid(subject, operation_id))

    return play


def _bare(operation_id: str) -> Play:
    async def play(subject: Subject) -> Answer:
        return await bare(subject, operation_id).send()

    return play


def _scenario(operation_id: str, name: str) -> Scenario | None:
    call, start = BY_ID[operation_id], start_of(operation_id)
    if name in SPOILS:
        return Scenario(_spoilt(operation_id, SPOILS[name]), start)
    if name in LOCAL_SPOILS:
        return Scenario(_spoilt(operation_id, LOCAL_SPOILS[name]), start, local=Local.FAULTS)
    if name == "identity_not_ready":
        return Scenario(_bare(operation_id), Start.UNREADY)
    if call.nerve["auth"] == "person" and name == refusal_of(call):
        return Scenario(_spoilt(operation_id, _as_the_system), start, local=Local.KEYS)
    if MISSING.get(name, "") and f"{{{MISSING[name]}}}" in call.path:
        return Scenario(_bare(operation_id))
    return None


def scenarios() -> dict[Documented, Scenario]:
    """The success of every operation, and every shared error of it."""
    made: dict[Documented, Scenario] = {}
    for operation_id, call in BY_ID.items():
        success = int(next(iter(call.raw["responses"])))
        made[Documented(operation_id, success)] = Scenario(_spoilt(operation_id, _succeed), start_of(operation_id))
        for name in errors_of(operation_id):
            if (scenario := _scenario(operation_id, name)) is not None:
                made[Documented(operation_id, ERRORS[name]["status"], name)] = scenario
    return made
