"""The referee itself: it lets what spec/ promises pass, and nothing else."""

import json
from typing import Any

import pytest

from tests.asgi_wire import Reply, Request
from tests.contract.spec_reader import ERRORS, SERVER
from tests.spec_client import SpecObserver, SpecViolation, judge
from tests.spec_frames import FUTURE, LOGGED, SocketReferee, event_complaints
from tests.spec_replies import BY_ID, Documented

HEADERS = {
    "content-type": "application/json",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-request-id": "req_1",
}
CHECK = Request("GET", "/api/auth/check")
QUEUE = Request("GET", "/api/sessions/main/queue")
LOGIN = Request("POST", "/api/auth/login")
GOOD = {"authenticated": True}


def reply(status: int, body: Any, headers: dict[str, str | None] | None = None) -> Reply:
    merged = {name: value for name, value in {**HEADERS, **(headers or {})}.items() if value is not None}
    raw = tuple((name.encode(), value.encode()) for name, value in merged.items())
    return Reply(status, raw, body if isinstance(body, bytes) else json.dumps(body).encode())


def test_a_promised_success_is_named() -> None:
    assert judge("local", CHECK, reply(200, GOOD)) == Documented("auth.check", 200)


@pytest.mark.parametrize("name", ["unauthenticated", "identity_not_ready", "internal", "wrong_host"])
def test_a_promised_error_is_named(name: str) -> None:
    declared = ERRORS[name]
    body = {"detail": declared["message"].replace("{host}", "elsewhere")}
    headers = {"retry-after": "2"} if "retry_after" in declared else {}
    told = judge("local", CHECK, reply(declared["status"], body, dict(headers)))
    assert told == Documented("auth.check", declared["status"], name)


@pytest.mark.parametrize(
    ("request_", "bad"),
    [
        (CHECK, reply(201, GOOD)),
        (CHECK, reply(200, {})),
        (CHECK, reply(200, {"authenticated": True, "more": 1})),
        (CHECK, reply(200, {"authenticated": False})),
        (CHECK, reply(200, GOOD, {"content-type": "text/plain"})),
        (CHECK, reply(200, GOOD, {"retry-after": "2"})),
        (CHECK, reply(401, {"detail": "not authenticated"})),
        (CHECK, reply(401, {"detail": "Not authenticated", "more": 1})),
        (CHECK, reply(401, {"detail": "Not authenticated"}, {"retry-after": "2"})),
        (CHECK, reply(401, b"Not authenticated")),
        (CHECK, reply(403, {"detail": "This needs a signed-in person."})),
        (CHECK, reply(404, {"detail": "Session not found"})),
        (CHECK, reply(503, {"detail": "Authentication is not ready"})),
        (CHECK, reply(503, {"detail": "Authentication is not ready"}, {"retry-after": "soon"})),
        (CHECK, reply(503, {"detail": "The disk is full; nothing was written."}, {"retry-after": "30"})),
        (QUEUE, reply(404, {"detail": "Session not found"})),
        (QUEUE, reply(404, {"detail": {"code": "session_not_found"}})),
        (QUEUE, reply(404, {"detail": {"code": "not_owner", "message": "Session not found"}})),
        (LOGIN, reply(422, {"detail": []})),
        (LOGIN, reply(422, {"detail": [{"type": "missing", "loc": ["body"], "msg": "x", "input": {}}]})),
        (LOGIN, reply(422, {"detail": "The request does not fit its schema."})),
        (Request("GET", "/api/nothing"), reply(404, {"detail": "Nothing here"})),
        (Request("GET", "/api/nothing"), reply(200, {})),
        (Request("PUT", "/api/auth/check"), reply(405, {"detail": "Method Not Allowed"})),
        (Request("PUT", "/api/auth/check"), reply(405, {"detail": "Method Not Allowed"}, {"allow": "GET"})),
        (Request("OPTIONS", "/api/auth/check"), reply(204, b"", {"allow": "GET, OPTIONS"})),
        (Request("HEAD", "/api/auth/check"), reply(404, b"")),
    ],
)
def test_what_is_not_promised_is_refused(request_: Request, bad: Reply) -> None:
    with pytest.raises(SpecViolation):
        judge("local", request_, bad)


@pytest.mark.parametrize("header", [{"x-request-id": None}, {"cache-control": "public"}, {"x-frame-options": None}])
def test_our_own_headers_are_missed_of_ours_only(header: dict[str, str | None]) -> None:
    SpecObserver(ours=False).replied(CHECK, reply(200, GOOD, header))
    with pytest.raises(SpecViolation):
        SpecObserver().replied(CHECK, reply(200, GOOD, header))
    SpecObserver().replied(CHECK, reply(200, GOOD))


def test_a_target_may_be_too_long() -> None:
    refusal = reply(414, {"detail": "too long"})
    assert judge("local", Request("GET", "/api/sessions/" + "x" * 8000), refusal) is None
    for request in (CHECK, Request("GET", "/api/sessions/" + "x" * 7000)):
        with pytest.raises(SpecViolation):
            judge("local", request, refusal)


def test_external_mode_has_no_accounts() -> None:
    request = Request("GET", "/api/accounts")
    missing = reply(404, {"detail": "Not Found"})
    assert judge("external", request, missing) is None
    with pytest.raises(SpecViolation):
        judge("local", request, missing)
    assert "external" not in BY_ID["accounts.list"].nerve["modes"]


# --- frames -------------------------------------------------------------------------------------------------------


def example(kind: str, **changes: Any) -> str:
    payload = SERVER[kind]["examples"][0]["payload"]
    return json.dumps({key: value for key, value in {**payload, **changes}.items() if value is not ...})


def bound(*frames: str) -> SocketReferee:
    referee = SocketReferee()
    for frame in (switched(), status(), *frames):
        referee.server_frame(frame)
    return referee


def switched(session_id: str = "main") -> str:
    return example("session_switched", session_id=session_id)


def status(**changes: Any) -> str:
    return example("session_status", **{"buffered_events": ..., "is_running": False, **changes})


def test_a_conversation_as_promised_passes() -> None:
    referee = bound(
        example("token", seq=7),
        example("session_running"),
        example("token", seq=9),
        example("gap", from_seq=10, to_seq=20),
        example("done", seq=21),
        example("gap", from_seq=5, to_seq=21, reset=True),
        example("token", seq=5),
        switched("other"),
        status(session_id="other"),
        example("token", session_id="other", seq=1),
        example("error", session_id="other", error="bad_frame", seq=...),
    )
    assert len(referee.seen) == 13


@pytest.mark.parametrize(
    "frames",
    [
        ["{}"],
        ['{"type": "nonsense"}'],
        [example("token", seq=...)],
        [example("token", seq=0)],
        [example("token", content=None)],
        [example("token", colour="red")],
        [example("pong", seq=1)],
        [example("token", seq=7), example("token", seq=7)],
        [example("token", seq=7), example("thinking", seq=6)],
        [example("token", session_id="other", seq=7)],
        [example("token", seq=7), example("gap", from_seq=7, to_seq=9)],
        [example("gap", from_seq=9, to_seq=8)],
        [example("gap", from_seq=1, to_seq=9), example("token", seq=9)],
        [example("gap", session_id="other", from_seq=1, to_seq=9)],
        [status()],
        [switched(), example("token", seq=1)],
        [switched(), status(session_id="other")],
        [switched(), example("session_status", is_running=False)],
        [switched(), example("session_status", last_seq=6)],
        [switched(), status(is_running=True, last_seq=7, buffered_events=[{"type": "pong"}])],
        [switched(), example("session_status"), example("token", seq=7)],
        [example("interaction", seq=7), example("token", seq=8), example("interaction", seq=7)],
        [switched(), status(last_seq=9), example("token", seq=10), example("interaction", seq=7)],
        [switched(), status(last_seq=9), example("interaction", seq=7), example("interaction", seq=7)],
        *[[example(kind)] for kind in sorted(FUTURE)],
    ],
)
def test_frames_that_are_not_promised_are_refused(frames: list[str]) -> None:
    bound()
    with pytest.raises(SpecViolation):
        bound(*frames)


def test_a_number_stands_on_logged_frames_only() -> None:
    for kind in SERVER.keys() - LOGGED - FUTURE:
        with pytest.raises(SpecViolation):
            bound(example(kind, seq=8))


# --- event streams ------------------------------------------------------------------------------------------------


def event(data: str, number: int | None = None) -> str:
    return f"data: {data}\n\n" if number is None else f"id: {number}\ndata: {data}\n\n"


def test_a_stream_as_promised_passes() -> None:
    assert event_complaints("") == []
    text = event(example("token", seq=7), 7) + ":\n\n" + event(example("gap", from_seq=8, to_seq=9))
    assert event_complaints(text + event(example("done", seq=10), 10)) == []


@pytest.mark.parametrize(
    "text",
    [
        event(example("token", seq=7)),
        event(example("token", seq=7), 8),
        event(example("token", seq=...), 7),
        event(example("token", seq=7), 7) * 2,
        event(example("gap"), 7),
        event(example("pong")),
        event(example("session_running")),
        event(example("token", seq=7, colour="red"), 7),
        "event: token\n" + event(example("token", seq=7), 7),
        event(example("token", seq=7), 7).rstrip("\n"),
    ],
)
def test_streams_that_are_not_promised_are_refused(text: str) -> None:
    assert event_complaints(text) != []
