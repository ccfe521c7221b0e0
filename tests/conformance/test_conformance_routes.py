"""What is decided before an operation is reached, for each path: unknown routes, wrong methods, HEAD, OPTIONS."""

from collections.abc import Iterator

import pytest

from tests.conformance.conftest import Opening, local, starting_marks, succeeding
from tests.conformance.recipes import Request, bare, start_of, valid
from tests.conformance.subject import Local, Start, Subject
from tests.spec_replies import BY_ID, find, modes_of, resources

STANDARD = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
STRANGE = {"TRACE", "PROPFIND", "get", "BREW", "_"}
GETS = [operation_id for operation_id, call in BY_ID.items() if call.method == "get"]
STARTS = {"local": Start.CLAIMED, "external": Start.EXTERNAL}
each_mode = pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=starting_marks(start)) for mode, start in STARTS.items()]
)


def filled(template: str) -> str:
    return "/".join("main" if segment.startswith("{") else segment for segment in template.split("/"))


# The observer holds every answer against spec/: here a 405 has exactly the documented methods in Allow.
@pytest.mark.slow
@pytest.mark.req("GEN-01", "GEN-07")
@each_mode
async def test_a_wrong_method_is_405_and_names_the_right_ones(mode: str, opening: Opening) -> None:
    async with opening(STARTS[mode]) as subject:
        for resource in resources(mode):
            for method in (STANDARD | STRANGE) - resource.allow:
                for client in (subject.anyone, subject.owner):
                    answer = await client.send(method, filled(resource.template))
                    assert answer.status == 405, (method, resource.template)


def strays(template: str) -> Iterator[str]:
    path = filled(template)
    yield path + "/"
    yield "/" + path
    yield path.replace("/api/", "/API/")
    yield path.replace("/api/", "/api//")
    yield "/" + path[1:].replace("/", "%2F")
    yield path + "/more/than/there/is"
    yield path + "%"
    yield path + "%zz"
    yield path + "/%ff"


@pytest.mark.slow
@pytest.mark.req("GEN-01", "GEN-02")
async def test_an_unknown_route_is_404(subject: Subject) -> None:
    known = [stray for resource in resources("local") for stray in strays(resource.template)]
    unknown = [path for path in {"/", "/api", "/api/nothing", "/index.html", *known} if find("local", path) is None]
    assert len(unknown) > 100
    for path in unknown:
        for client in (subject.anyone, subject.owner):
            assert (await client.send("GET", path)).status == 404, path
        assert (await subject.owner.send("POST", path, json={})).status == 404, path


@local(Local.ALONE)
@pytest.mark.req("GEN-02")
@pytest.mark.parametrize("operation_id", [i for i, call in BY_ID.items() if modes_of(call) == ("local",)])
async def test_what_external_mode_has_not_is_404(operation_id: str, opening: Opening) -> None:
    async with opening(Start.EXTERNAL) as subject:
        call = BY_ID[operation_id]
        answer = await subject.owner.send(call.method.upper(), filled(call.path), json={})
        assert (answer.status, answer.json) == (404, {"detail": "Not Found"})


@pytest.mark.parametrize("operation_id", GETS)
async def test_head_is_a_get_without_its_body(operation_id: str, subject: Subject) -> None:
    request = await valid(subject, operation_id)
    for each in (request, request.by(token="garbage"), request.by(host="elsewhere.example")):
        got = await each.send()
        head = await each.client.send("HEAD", _path(each), query=each.query)
        assert (head.status, head.reply.body) == (got.status, b"")
        changing = {"x-request-id", "date", "transfer-encoding"}  # the last is of the connection, and no body is coming
        assert {n: v for n, v in head.reply.headers.items() if n not in changing} == {
            n: v for n, v in got.reply.headers.items() if n not in changing
        }


def _path(request: Request) -> str:
    path = BY_ID[request.operation_id].path
    for name, value in request.path.items():
        path = path.replace(f"{{{name}}}", value)
    return path


@each_mode
async def test_options_tells_the_methods_to_anyone(mode: str, opening: Opening) -> None:
    async with opening(STARTS[mode]) as subject:
        for resource in resources(mode):
            answer = await subject.anyone.send("OPTIONS", filled(resource.template))
            assert answer.status == 204
            assert "access-control-allow-origin" not in answer.reply.headers


# --- unknown keys -------------------------------------------------------------------------------------------------

TAKING = [operation_id for operation_id, call in BY_ID.items() if call.takes == "application/json"]

EXTRA = {"of_a_newer_client": {"deep": [1, None, "x"]}, "": 0, "\u0000": "\u0000"}


# Whatever is the same twice without the keys has to be the same with them.
@pytest.mark.parametrize("operation_id", [succeeding(operation_id) for operation_id in TAKING])
async def test_unknown_keys_of_a_body_change_nothing(operation_id: str, opening: Opening) -> None:
    answers = []
    for extra in ({}, {}, EXTRA):
        async with opening(start_of(operation_id)) as subject:
            request = await valid(subject, operation_id)
            answers.append(await request.client.call(operation_id, {**request.body, **extra}, path=request.path))
    first, second, extended = answers
    assert [answer.code for answer in answers] == ["", "", ""]
    assert first.status == extended.status
    assert first.json.keys() == extended.json.keys()
    same = {key for key, value in first.json.items() if second.json[key] == value}
    assert {key: first.json[key] for key in same} == {key: extended.json[key] for key in same}


@pytest.mark.parametrize("operation_id", [succeeding(operation_id) for operation_id in BY_ID])
async def test_unknown_query_keys_change_nothing(operation_id: str, opening: Opening) -> None:
    async with opening(start_of(operation_id)) as subject:
        request = await valid(subject, operation_id)
        answer = await request.asking(**{"of_a_newer_client": "1", "": "\u0000"}).send()
        assert answer.code == ""
        assert answer.status == int(next(iter(BY_ID[operation_id].raw["responses"])))


# --- bodies where none is taken -----------------------------------------------------------------------------------


@pytest.mark.parametrize("operation_id", [i for i, call in BY_ID.items() if "requestBody" not in call.raw])
async def test_a_body_that_nobody_asked_for_is_dropped(operation_id: str, subject: Subject) -> None:
    request = await valid(subject, operation_id)
    answer = await request.raw(b"{ no JSON", "text/plain").send()
    assert answer.code == ""


@pytest.mark.req("GEN-03", "GEN-04")
@pytest.mark.parametrize("content", [b"{", b"[]", b"null", b'"x"', b"1", b"\xff", b"[" * 60_000, b'{"a": NaN}'])
@pytest.mark.parametrize("operation_id", TAKING)
async def test_a_body_that_is_no_json_object_is_422(operation_id: str, content: bytes, subject: Subject) -> None:
    answer = await bare(subject, operation_id).raw(content).send()
    assert answer.code == "invalid_request"
    assert all(problem["loc"][0] == "body" for problem in answer.json["detail"])


@pytest.mark.parametrize("operation_id", TAKING)
async def test_a_missing_body_is_422_where_one_is_needed(operation_id: str, subject: Subject) -> None:
    answer = await bare(subject, operation_id).with_options().send()
    if BY_ID[operation_id].raw["requestBody"]["required"]:
        assert answer.code == "invalid_request"
    else:
        assert answer.code != "invalid_request"


@pytest.mark.parametrize("operation_id", [succeeding(operation_id) for operation_id in TAKING])
async def test_a_body_without_a_type_is_read_as_json(operation_id: str, opening: Opening) -> None:
    async with opening(start_of(operation_id)) as subject:
        request = await valid(subject, operation_id)
        answer = await request.with_options(content=request.encoded()).send()
        assert answer.code == ""
