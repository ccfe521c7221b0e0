"""The served documents: valid by the rules of their formats, and true of the server that serves them."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.conformance.subject import Subject
from tests.contract.spec_reader import CLIENT, SERVER
from tests.spec_replies import BY_ID, errors_of

METHODS = {"get", "post", "put", "patch", "delete"}


async def served(subject: Subject, operation_id: str) -> dict[str, Any]:
    document: dict[str, Any] = await subject.owner.ok(operation_id)
    return document


@pytest.mark.slow
async def test_the_openapi_document_is_valid(subject: Subject) -> None:
    document = await served(subject, "meta.openapi")
    assert document["openapi"].startswith("3.1.")
    errors = list(OpenAPIV31SpecValidator(document).iter_errors())
    assert errors == []


async def test_every_operation_of_the_document_is_routed(subject: Subject) -> None:
    paths = (await served(subject, "meta.openapi"))["paths"]
    assert {op["operationId"] for path in paths.values() for op in path.values()} == BY_ID.keys()
    for path, operations in paths.items():
        assert operations.keys() <= METHODS
        answer = await subject.anyone.send("OPTIONS", re.sub(r"\{[a-z_]+\}", "x", path))
        allowed = {method.strip().lower() for method in answer.reply.headers["allow"].split(",")}
        assert operations.keys() == allowed & METHODS, path


async def test_every_error_of_an_operation_is_in_the_document(subject: Subject) -> None:
    paths = (await served(subject, "meta.openapi"))["paths"]
    for operation_id, call in BY_ID.items():
        responses = paths[call.path][call.method]["responses"]
        told = {name: kind for reply in responses.values() for name, kind in reply.get("x-nerve-errors", {}).items()}
        assert told == errors_of(operation_id)
        needs = call.nerve["auth"] != "open"
        assert bool(paths[call.path][call.method]["security"]) is needs


async def test_the_errors_of_the_document_fit_what_is_answered(subject: Subject) -> None:
    """By the document alone, as a generated client would read it."""
    document = await served(subject, "meta.openapi")
    answer = await subject.owner.call("queue.list", path={"session_id": "no-such-session"})
    (schema,) = _response_schemas(document, "/api/sessions/{session_id}/queue", "get", "404")
    checker = Draft202012Validator({**schema, "components": document["components"]})
    assert list(checker.iter_errors(answer.json)) == []
    assert list(checker.iter_errors({"detail": "Session not found"})) != []


def _response_schemas(document: dict[str, Any], path: str, method: str, status: str) -> Iterator[dict[str, Any]]:
    for content in document["paths"][path][method]["responses"][status]["content"].values():
        yield content["schema"]


async def test_the_asyncapi_document_names_every_frame(subject: Subject) -> None:
    document = await served(subject, "meta.asyncapi")
    assert document["asyncapi"].startswith("3.")
    messages = document["components"]["messages"]
    expected = {f"client.{name}" for name in CLIENT} | {f"server.{name}" for name in SERVER}
    assert messages.keys() == document["channels"]["ws"]["messages"].keys() == expected
    for message in messages.values():
        checker = Draft202012Validator({**message["payload"], "components": document["components"]})
        for example in message["examples"]:
            assert list(checker.iter_errors(example["payload"])) == [], message["name"]


@pytest.mark.parametrize("operation_id", ["meta.openapi", "meta.asyncapi"])
async def test_every_reference_of_a_document_leads_somewhere(operation_id: str, subject: Subject) -> None:
    document = await served(subject, operation_id)
    references = set(_references(document))
    assert references
    for reference in references:
        assert reference.startswith("#/"), reference
        target: Any = document
        for step in reference[2:].split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for child in value.values():
            yield from _references(child)
    elif isinstance(value, list):
        for child in value:
            yield from _references(child)


class _Page(HTMLParser):
    """What a page would load, and the text it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[tuple[str, str]] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [(tag, value or "") for name, value in attrs if name in ("src", "srcset", "action", "data")]
        self.loads += [(tag, value or "") for name, value in attrs if name == "href" and tag in ("link", "base")]

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_page_shows_everything_and_loads_nothing(subject: Subject) -> None:
    answer = await subject.anyone.call("meta.docs")
    page = _Page()
    page.feed(answer.reply.text)
    assert page.loads == []
    assert not page.tags & {"script", "iframe", "object", "embed", "img"}
    assert "@import" not in answer.reply.text
    assert "url(" not in answer.reply.text
    for operation_id, call in BY_ID.items():
        assert operation_id in page.text
        assert call.path in page.text
    assert all(name in page.text for name in (*CLIENT, *SERVER))


@pytest.mark.req("HEALTH-01", "HEALTH-02", "HEALTH-03", "HEALTH-04")
async def test_health_answers_anyone_under_any_name(subject: Subject) -> None:
    first = await subject.anyone.ok("health.get")
    assert first["status"] == "ok"
    assert await subject.anyone.with_(host="elsewhere.example").ok("health.get") == first
    assert await subject.anyone.with_(host="").ok("health.get") == first
