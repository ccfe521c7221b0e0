"""Requests and answers without a network: every operation, every documented error."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest

from nerve.client.errors import ApiError, Unreachable
from nerve.client.exchange import reply_of, request_of
from nerve.contract import codec
from nerve.contract.generated.auth import AUTH_LOGIN, Login
from nerve.contract.generated.errors import ERRORS, ErrorCode, ErrorKind
from nerve.contract.generated.health import HEALTH_GET
from nerve.contract.generated.queue import QUEUE_CANCEL, QueueCancelParams
from nerve.contract.generated.routes import ROUTES
from nerve.contract.generated.sessions import (
    SESSIONS_ARCHIVE,
    SESSIONS_CREATE,
    SESSIONS_GET,
    SESSIONS_LIST,
    SESSIONS_MESSAGES,
    SessionsArchiveParams,
    SessionsGetParams,
    SessionsListParams,
    SessionsMessagesParams,
)
from nerve.contract.route import NoBody, ReplyKind, Route
from nerve.contract.rules import Problem
from nerve.errors import NerveError, error_body

AnyRoute = Route[Any, Any, Any]

DECLARED = [(route, code) for route in ROUTES for code in route.errors]


def named(value: object) -> str:
    return value.operation_id if isinstance(value, Route) else str(value)


@pytest.mark.parametrize(
    ("route", "params", "target"),
    [
        (SESSIONS_GET, SessionsGetParams(session_id="a b/ü?"), "/api/sessions/a%20b%2F%C3%BC%3F"),
        (SESSIONS_LIST, SessionsListParams(), "/api/sessions"),
        (SESSIONS_LIST, None, "/api/sessions"),
        (SESSIONS_LIST, SessionsListParams(offset=50), "/api/sessions?offset=50"),
        (SESSIONS_ARCHIVE, SessionsArchiveParams(session_id="x", force=True), "/api/sessions/x/archive?force=true"),
        (SESSIONS_ARCHIVE, SessionsArchiveParams(session_id="x"), "/api/sessions/x/archive"),
        (
            SESSIONS_MESSAGES,
            SessionsMessagesParams(session_id="x", limit=5, before_id=7),
            "/api/sessions/x/messages?limit=5&before_id=7",
        ),
        (QUEUE_CANCEL, QueueCancelParams(session_id="x", queue_id="q_1"), "/api/sessions/x/queue/q_1"),
    ],
    ids=named,
)
def test_parameters_go_where_the_operation_has_them(route: AnyRoute, params: Any, target: str) -> None:
    assert request_of(route, params, None, None).target == target


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_a_request_can_be_made_for_every_operation(route: AnyRoute) -> None:
    values = {
        attribute.name: "17" if attribute.type is str else 17
        for attribute in attrs.fields(route.params)
        if attribute.default is attrs.NOTHING
    }
    params = route.params(**values)
    # What a body holds is the codec's affair; here any object of the right kind will do.
    body = NoBody() if route.body is NoBody else Login(password="x")
    if route.kind is ReplyKind.EVENT_STREAM:
        with pytest.raises(TypeError):
            request_of(route, params, body, "secret")
        return
    request = request_of(route, params, body, "secret")
    assert request.method == route.method
    assert "{" not in request.target
    assert request.headers["authorization"] == "Bearer secret"
    assert (request.content is None) == (route.body is NoBody)


def test_what_an_operation_needs_is_asked_for() -> None:
    with pytest.raises(TypeError, match="session_id"):
        request_of(SESSIONS_GET, None, None, None)
    with pytest.raises(TypeError, match="body"):
        request_of(AUTH_LOGIN, None, None, None)
    assert request_of(SESSIONS_CREATE, None, None, None).content is None


def test_a_token_is_never_part_of_the_target_and_not_sent_when_there_is_none() -> None:
    request = request_of(HEALTH_GET, None, None, "secret")
    assert "secret" not in request.target
    assert request_of(HEALTH_GET, None, None, None).headers == {}


def test_the_reply_is_the_model() -> None:
    found = reply_of(HEALTH_GET, 200, {}, b'{"status":"ok","version":"0.1.0","generation":"00"}')
    assert (found.status, found.generation) == ("ok", "00")


@pytest.mark.parametrize(("route", "code"), DECLARED, ids=named)
def test_every_documented_error_is_told_by_its_name(route: AnyRoute, code: ErrorCode) -> None:
    details = {"problems": (Problem("missing", ("body", "x"), "This field is required."),), "field": "x"}
    answer = error_body(NerveError(code, host="evil.example", limit=17, backend="b", **details), route.errors[code])
    headers = {name.lower(): value for name, value in answer.headers}
    with pytest.raises(ApiError) as raised:
        reply_of(route, answer.status, headers, codec.encode_plain(answer.body))
    error = raised.value
    assert (error.status, error.code) == (answer.status, code)
    assert error.body == answer.body
    assert error.message
    assert error.retry_after == (None if ERRORS[code].retry_after is None else float(headers["retry-after"]))


@pytest.mark.parametrize(("route", "code"), [pair for pair in DECLARED if ERRORS[pair[1]].varies], ids=named)
def test_a_sentence_that_varies_is_recognised_by_what_is_left(route: AnyRoute, code: ErrorCode) -> None:
    answer = error_body(NerveError(code, message="something nobody has written down"), route.errors[code])
    with pytest.raises(ApiError) as raised:
        reply_of(route, answer.status, {}, codec.encode_plain(answer.body))
    assert raised.value.code is code
    assert raised.value.message == "something nobody has written down"


def test_every_problem_of_a_refused_body_is_in_the_message() -> None:
    problems = (Problem("missing", ("body", "a"), "No."), Problem("x", ("body", "b", 0), "Never."))
    answer = error_body(NerveError(ErrorCode.INVALID_REQUEST, problems=problems), ErrorKind.VALIDATION)
    with pytest.raises(ApiError, match=r"a: No\.; b\.0: Never\."):
        reply_of(AUTH_LOGIN, answer.status, {}, codec.encode_plain(answer.body))


@pytest.mark.parametrize(
    ("status", "content", "message"),
    [
        (502, b"<html>Bad gateway</html>", "HTTP 502"),
        (404, b'{"detail": "no such thing in this version"}', "no such thing in this version"),
        (418, b'{"detail": {"code": "teapot", "message": "short and stout"}}', "short and stout"),
        (500, b'{"detail": 17}', "HTTP 500"),
        (500, b"[]", "HTTP 500"),
        (302, b"", "HTTP 302"),
    ],
)
def test_what_this_version_does_not_know_has_no_name_but_its_words(status: int, content: bytes, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        reply_of(SESSIONS_GET, status, {}, content)
    assert (raised.value.code, raised.value.message) == (None, message)


def test_an_answer_that_is_none_is_no_model() -> None:
    for content in (b"", b"<html>", b'{"status": "ok"}', b"[]"):
        with pytest.raises(Unreachable):
            reply_of(HEALTH_GET, 200, {}, content)


def test_targets_are_read_back_as_they_were_meant() -> None:
    target = request_of(SESSIONS_MESSAGES, SessionsMessagesParams(session_id="x&y=1", limit=3), None, None).target
    parts = urlsplit(target)
    assert parse_qs(parts.query) == {"limit": ["3"]}
    assert parts.path == "/api/sessions/x%26y%3D1/messages"
