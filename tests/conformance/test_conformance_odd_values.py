"""Odd ids, texts, types and numbers in every place that takes one: documented answers, never a 5xx, never syntax."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import trio
from attrs import evolve

from tests.conformance.conftest import Opening
from tests.conformance.recipes import Request, bare, example_of, path_names, query_of, start_of, valid
from tests.conformance.subject import Subject, new_session
from tests.contract.spec_reader import complaints
from tests.spec_client import LONGEST_TARGET
from tests.spec_replies import BY_ID

ODD_TEXTS = {
    "space": " ",
    "dot": ".",
    "dots": "..",
    "slash": "a/b",
    "up": "../../etc/passwd",
    "percent": "100%",
    "percent-encoded": "%41%2e%00",
    "question": "a?b=c&d#e",
    "NUL": "main\x00",
    "controls": "\x01\x1b[31m\x7f\r\nSet-Cookie: a=b",
    "accents": "Zoë Ångström",
    "other script": "東京 Ελληνικά עברית",
    "emoji": "👩‍👩‍👧 🙂",
    "right to left": "\u202egnp.exe",
    "byte order mark": "\ufeffmain",
    "no character": "\uffff\U0010ffff",
    "long": "x" * 5000,
    "long and wide": "ü" * 2500,
    "quote": "' OR '1'='1",
    "comment": "main'; DROP TABLE sessions; --",
    "double quote": '"',
    "wildcards": "%_*?",
    "full text": 'NEAR("a" b, 10) AND NOT c* ^d : {e f}',
    "placeholder": "?1 :name @name $name {id} ${jndi:x}",
    "number": "-1",
    "null": "null",
}
LONGEST_PASSWORD = 72  # bytes
NAMING = [(operation_id, name) for operation_id, call in BY_ID.items() for name in path_names(call)]
each_text = pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)


async def is_well(subject: Subject) -> None:
    """Nobody lost anything by it."""
    await subject.owner.ok("sessions.get", path={"session_id": "main"})
    assert len((await subject.owner.ok("accounts.list"))["accounts"]) >= 1


@pytest.mark.req("GEN-01", "GEN-05", "GEN-12")
@each_text
async def test_odd_ids_name_nothing(text: str, subject: Subject) -> None:
    for operation_id, name in NAMING:
        request = bare(subject, operation_id)
        answer = await evolve(request, path={**request.path, name: text}).send()
        too_long = len(quote(text)) > LONGEST_TARGET and answer.status == 414
        assert answer.status == 404 or too_long, (operation_id, name)
    await is_well(subject)


@pytest.mark.req("GEN-05")
@pytest.mark.parametrize("raw", ["%ff%fe", "%ed%a0%80", "%c0%af", "%f4%90%80%80", "%", "%zz", "%u0041"])
async def test_ids_that_are_no_utf_8_name_nothing(raw: str, subject: Subject) -> None:
    for operation_id, name in NAMING:
        call = BY_ID[operation_id]
        path = call.path.replace(f"{{{name}}}", raw).replace("{session_id}", "main")
        assert (await subject.owner.send(call.method.upper(), path, json={})).status == 404


# --- texts in bodies ----------------------------------------------------------------------------------------------

TAKING = [operation_id for operation_id, call in BY_ID.items() if call.takes == "application/json"]
WRONG_TYPES: dict[str, Any] = {
    "null": None,
    "true": True,
    "number": 7,
    "fraction": 0.5,
    "huge number": 10**300,
    "text": "text",
    "list": ["x"],
    "object": {"x": "y"},
}


def fields(operation_id: str) -> dict[str, Any]:
    schema: dict[str, Any] = request_schema(operation_id)["properties"]
    return schema


def request_schema(operation_id: str) -> dict[str, Any]:
    schema: dict[str, Any] = BY_ID[operation_id].raw["requestBody"]["content"]["application/json"]["schema"]
    return schema


CHECKING = ("accounts.change_password", "auth.login")  # passwords: these are slower the more of them are wrong


async def request_for(subject: Subject, operation_id: str) -> Request:
    """One that touches nobody but who is made for it."""
    return bare(subject, operation_id) if operation_id == "setup.claim" else await valid(subject, operation_id)


async def check_body(request: Request, field: str, value: Any) -> None:
    """A body that does not fit its schema is 422 and says where; one that fits is never called unfit."""
    operation_id, body = request.operation_id, {**request.body, field: value}
    if (operation_id, field, value) == ("chat.send", "session_id", None):
        return  # the server chooses a session, which may be anybody's
    answer = await request.client.call(operation_id, body, path=request.path)
    assert answer.status < 500
    unfit = complaints(request_schema(operation_id), body) != []
    assert (answer.code == "invalid_request") is unfit, (operation_id, field, answer.reply)
    if unfit:
        assert ["body", field] in [problem["loc"][:2] for problem in answer.json["detail"]]


async def check_bodies(subject: Subject, operation_ids: Iterable[str], value: Any) -> None:
    for operation_id in operation_ids:
        request = await request_for(subject, operation_id)
        for field in fields(operation_id):
            await check_body(request, field, value)
    await is_well(subject)


@pytest.mark.req("GEN-01", "GEN-12")
@each_text
async def test_odd_texts_in_bodies_are_data(text: str, subject: Subject) -> None:
    await check_bodies(subject, [operation_id for operation_id in TAKING if operation_id not in CHECKING], text)


@pytest.mark.req("GEN-01", "GEN-12", "ACCT-23")
@each_text
async def test_odd_texts_are_passwords(text: str, subject: Subject) -> None:
    body = {"username": subject.unique("odd-"), "password": text}
    created = await subject.owner.call("accounts.create", body)
    assert created.code == ("password_too_long" if len(text.encode()) > LONGEST_PASSWORD else "")
    if created.code == "":
        token = (await subject.anyone.ok("auth.login", body))["token"]
        change = {"current_password": text, "new_password": f"{text[:9]}!"}
        await subject.anyone.with_(token=token).ok("accounts.change_password", change)


@pytest.mark.wrong_passwords
@pytest.mark.req("GEN-01", "GEN-12", "AUTH-21")
@each_text
async def test_nobody_has_an_odd_name(text: str, subject: Subject) -> None:
    answer = await subject.anyone.call("auth.login", {"username": text, "password": "of nobody"})
    assert answer.code == "bad_credentials"


@pytest.mark.req("GEN-01", "GEN-04")
@pytest.mark.parametrize("value", WRONG_TYPES.values(), ids=WRONG_TYPES)
async def test_wrong_types_in_bodies_are_422(value: Any, subject: Subject) -> None:
    await check_bodies(subject, TAKING, value)


@pytest.mark.req("GEN-04")
@pytest.mark.parametrize("operation_id", TAKING)
async def test_each_required_field_is_missed(operation_id: str, subject: Subject) -> None:
    request = bare(subject, operation_id)
    for field in request_schema(operation_id).get("required", []):
        body = {key: value for key, value in example_of(BY_ID[operation_id]).items() if key != field}
        answer = await request.client.call(operation_id, body, path=request.path)
        assert answer.code == "invalid_request"
        assert [problem["loc"] for problem in answer.json["detail"]] == [["body", field]]
        assert "correct horse" not in answer.reply.text


@pytest.mark.req("GEN-03")
async def test_lone_surrogates_are_no_text(subject: Subject) -> None:
    for operation_id in TAKING:
        content = b'{"title": "\\ud800", "message": "\\udfff", "password": "\\ud800"}'
        answer = await bare(subject, operation_id).raw(content).send()
        assert answer.code == "invalid_request"


@pytest.mark.req("GEN-12", "SESS-23", "SESS-44")
@each_text
async def test_what_is_written_comes_back_as_it_was(text: str, subject: Subject) -> None:
    session_id = await new_session(subject.owner)
    path = {"session_id": session_id}
    title = text.strip()[:500] or "x"
    assert (await subject.owner.ok("sessions.update", {"title": title}, path=path))["title"] == title
    await subject.owner.ok("chat.send", {"message": text, "session_id": session_id})
    messages = (await subject.owner.ok("sessions.messages", path=path))["messages"]
    assert messages[0]["content"] == text
    events = (await subject.owner.ok("sessions.events", path=path))["events"]
    assert title in [event["details"].get("title") for event in events]


# --- numbers and words in queries ---------------------------------------------------------------------------------

WHOLE = ["0", "1", "-1", "007", "1000", "-9223372036854775809", "9" * 40]
NO_NUMBERS = [
    "",
    " ",
    "1.5",
    "1e3",
    "0x10",
    "NaN",
    "ten",
    "1,2",
    "½",
    "\x00",
    "1; DROP TABLE sessions",
    "null",
    "-",
    "９x",
]
ASKING = [
    (operation_id, name)
    for operation_id, call in BY_ID.items()
    for name, schema in query_of(call).items()
    if schema["type"] != "string"
]


@pytest.mark.req("GEN-06")
@pytest.mark.parametrize(("operation_id", "name"), ASKING, ids="-".join)
async def test_any_whole_number_is_clamped_and_anything_else_is_422(
    operation_id: str, name: str, subject: Subject
) -> None:
    request = await valid(subject, operation_id)
    kind = query_of(BY_ID[operation_id])[name]["type"]
    needed = urlencode({key: value for key, value in request.options.get("query", {}).items() if key != name})
    fitting = WHOLE if kind == "integer" else ["true", "false"]
    for text in fitting:
        assert (await request.asking(**{name: text}).send()).code == ""
    for text in NO_NUMBERS:
        answer = await request.asking(**{name: text}).send()
        assert answer.code == "invalid_request", text
        assert [problem["loc"] for problem in answer.json["detail"]] == [["query", name]]
    assert (await request.with_options(query=f"{needed}&{name}=%ff").send()).code == "invalid_request"
    assert (await request.with_options(query=f"{needed}&{name}=x&{name}={fitting[0]}").send()).code == ""


# --- at once ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.req("GEN-11")
async def test_many_at_once_are_as_good_as_one_after_the_other(opening: Opening) -> None:
    async with opening(start_of("sessions.create")) as subject:
        made: list[str] = []

        async def make(number: int) -> None:
            session_id = await new_session(subject.owner, title=f"number {number}")
            body = {"message": f"to {number}", "session_id": session_id}
            answer = await subject.owner.ok("chat.send", body)
            assert answer["session_id"] == session_id
            made.append(session_id)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(make, number)
        feed = await subject.owner.ok("sessions.list")
        assert {row["id"] for row in feed["sessions"]} >= set(made)
        assert len(set(made)) == 20
        for session_id in made:
            messages = (await subject.owner.ok("sessions.messages", path={"session_id": session_id}))["messages"]
            assert [message["role"] for message in messages] == ["user", "assistant"]
