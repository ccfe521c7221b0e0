"""Replies: kinds, headers, error bodies, the request barrier, CORS, and what happens when the client leaves."""

import re
from typing import Any

import pytest
import trio
import trio.testing
from attrs import frozen
from trio.testing import MockClock

from nerve.contract.generated.errors import ErrorKind
from nerve.contract.route import AuthPolicy, Document, Reply, ReplyKind, Work
from nerve.errors import ErrorCode, NerveError
from tests.asgi.stage import Stage, Thing, endpoint, open_house, returning

CODE = ErrorCode.QUEUE_ENTRY_NOT_FOUND


@pytest.mark.parametrize(
    ("result", "status", "body"),
    [
        (Thing(id="a"), 200, b'{"id":"a","note":"none"}'),
        (Reply(Thing(id="a"), 201), 201, b'{"id":"a","note":"none"}'),
        (Reply(Thing(id="\u00e9")), 200, '{"id":"\u00e9","note":"none"}'.encode()),
        (Reply(None, 204), 204, b""),
    ],
)
@pytest.mark.req("GEN-08")
async def test_json_replies(result: Any, status: int, body: bytes) -> None:
    house = open_house(endpoint("GET", "/a", returning(result), replies={200: Thing, 201: Thing, 204: type(None)}))
    reply = await house.client.get("/a")
    assert (reply.status, reply.body) == (status, body)
    assert reply.headers.get("content-type") == (None if status == 204 else "application/json")
    assert reply.headers.get("content-length") == (None if status == 204 else str(len(body)))
    assert reply.messages == 2


@pytest.mark.parametrize("path", ["/health", "/api/things", "/api/nowhere", "/api/things?limit=x"])
async def test_every_reply_carries_the_security_headers(path: str) -> None:
    headers = (await open_house().client.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-request-id"] == "req_1"


async def test_documents_are_sent_as_they_are_and_pages_are_locked_down() -> None:
    page, document = Document(b"<p>hi", "text/html; charset=utf-8"), Document(b"{ }", "application/json")
    house = open_house(
        endpoint("GET", "/docs", returning(page), kind=ReplyKind.HTML, auth=AuthPolicy.OPEN),
        endpoint("GET", "/doc.json", returning(document), kind=ReplyKind.DOCUMENT),
    )
    shown, data = await house.client.get("/docs"), await house.client.get("/doc.json")
    assert (shown.body, shown.headers["content-type"]) == (b"<p>hi", "text/html; charset=utf-8")
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
    assert (data.body, data.headers["content-type"]) == (b"{ }", "application/json")
    assert "content-security-policy" not in data.headers


async def test_a_handler_adds_headers() -> None:
    house = open_house(endpoint("GET", "/a", returning(Reply(Thing(id="a"), headers=(("ETag", '"7"'),)))))
    assert (await house.client.get("/a")).headers["etag"] == '"7"'


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ErrorKind.CODE, {"detail": {"code": CODE, "message": "No such entry in the queue."}}),
        (ErrorKind.DETAIL, {"detail": "No such entry in the queue."}),
        (ErrorKind.REASON, {"detail": {"reason": CODE, "message": "No such entry in the queue."}}),
        (ErrorKind.FIELD, {"detail": "No such entry in the queue.", "field": "queue_id"}),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.req("GEN-01")
async def test_an_error_has_the_form_that_its_operation_states(kind: ErrorKind, body: Any, wrapped: bool) -> None:
    error: Exception = NerveError(CODE, field="queue_id")
    if wrapped:
        error = ExceptionGroup("", [ExceptionGroup("", [error])])
    house = open_house(endpoint("GET", "/a", returning(error), errors={CODE: kind}))
    reply = await house.client.get("/a")
    assert (reply.status, reply.json) == (404, body)
    assert house.undeclared == []


async def test_a_refusal_may_say_when_to_come_back() -> None:
    reply = await open_house().client.with_(token="early").get("/api/things")
    assert (reply.status, reply.headers["retry-after"]) == (503, "2")


@frozen(kw_only=True)
class Unwritable:
    id: Any


@pytest.mark.parametrize(
    "result",
    [
        ZeroDivisionError("secret-detail"),
        NerveError(ErrorCode.USERNAME_TAKEN),  # not declared by the operation
        NerveError(ErrorCode.NOT_FOUND),  # the app's own, not a handler's
        ExceptionGroup("", [NerveError(CODE), ValueError("secret-detail")]),
        Reply(Thing(id="a"), 299),
        Reply(Thing(id="a"), headers=(("x-a", "b\r\nset-cookie: c"),)),
        Reply(Thing(id="a"), headers=(("x-é", "b"),)),
        Document(b"", "text/plain"),
        Unwritable(id=object()),
        Unwritable(id="\ud800"),
    ],
    ids=lambda reply: re.sub(r" at 0x[0-9a-f]+", "", repr(reply)),  # the same in every process
)
@pytest.mark.req("GEN-01", "GEN-08")
async def test_our_mistake_is_told_as_internal_and_nothing_else(result: Any, caplog: pytest.LogCaptureFixture) -> None:
    house = open_house(endpoint("GET", "/a", returning(result), codes=(CODE,)))
    reply = await house.client.get("/a")
    assert (reply.status, reply.json) == (500, {"detail": "Internal server error"})
    assert [name for name, _ in house.undeclared] == ["test.get"]
    assert len([record for record in caplog.records if record.name == "nerve.asgi"]) == 1


async def test_a_failing_admission_is_internal_too() -> None:
    house = open_house()

    async def admit(credentials: Any) -> Any:
        raise RuntimeError("no table")

    house.admission.admit = admit  # type: ignore[method-assign]
    assert (await house.client.get("/api/things")).status == 500
    assert [name for name, _ in house.undeclared] == ["test.get"]


# --- CORS ---------------------------------------------------------------------------------------------------------

APP_ORIGIN = "https://app.example.org"


@pytest.mark.req("AUTH-14")
async def test_the_token_header_is_exposed_on_every_reply() -> None:
    for house in (open_house(), open_house(allowed_origins=(APP_ORIGIN,))):
        for path in ("/api/things", "/api/nowhere", "/health"):
            exposed = (await house.client.get(path)).headers["access-control-expose-headers"]
            assert {"X-Nerve-Token", "X-Request-Id", "Retry-After"} == set(exposed.split(", "))


@pytest.mark.parametrize("path", ["/api/things", "/api/nowhere", "/api/things?limit=x"])
async def test_a_configured_origin_may_read_replies_and_errors(path: str) -> None:
    client = open_house(allowed_origins=(APP_ORIGIN, "http://localhost:5173")).client
    headers = (await client.get(path, headers={"origin": APP_ORIGIN})).headers
    assert headers["access-control-allow-origin"] == APP_ORIGIN
    assert headers["access-control-allow-credentials"] == "true"
    assert headers["vary"] == "Origin"
    for origin in ("https://evil.example.org", "null", "http://127.0.0.1:8900"):
        headers = (await client.get(path, headers={"origin": origin})).headers
        assert "access-control-allow-origin" not in headers
        assert headers["vary"] == "Origin"


async def test_preflight_for_configured_origins() -> None:
    client = open_house(allowed_origins=(APP_ORIGIN,)).client.with_(token=None)
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    reply = await client.options("/api/things", headers={"origin": APP_ORIGIN, **asking})
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == APP_ORIGIN
    assert "POST" in reply.headers["access-control-allow-methods"].split(", ")
    assert "Authorization" in reply.headers["access-control-allow-headers"].split(", ")
    assert "Content-Type" in reply.headers["access-control-allow-headers"].split(", ")
    foreign = await client.options("/api/things", headers={"origin": "https://evil.example.org", **asking})
    assert not [name for name in foreign.headers if name.startswith("access-control-allow")]


async def test_an_options_request_that_is_no_preflight_says_nothing_of_methods_across_origins() -> None:
    reply = await open_house(allowed_origins=(APP_ORIGIN,)).client.options(
        "/api/things", headers={"origin": APP_ORIGIN}
    )
    assert reply.headers["access-control-allow-origin"] == APP_ORIGIN
    assert "access-control-allow-methods" not in reply.headers


async def test_plain_options_names_the_methods() -> None:
    client = open_house().client.with_(token=None)
    reply = await client.options("/api/things")
    assert (reply.status, reply.headers["allow"]) == (204, "GET, POST, HEAD, OPTIONS")
    assert (await client.options("/api/nowhere")).status == 404
    assert (await client.options("/api/things", headers={"host": "evil.example.org"})).status == 421


# --- leaving ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [Work.READ, Work.CHECK, Work.WRITE])
@pytest.mark.parametrize("takes_body", [False, True])
@pytest.mark.parametrize("silent", [False, True])
async def test_a_write_runs_to_its_end_and_everything_else_ends_with_its_client(
    work: Work, takes_body: bool, silent: bool, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    begun, ends = trio.Event(), []

    async def handler(stage: Stage, caller: Any, params: Any, body: Any) -> Thing:
        begun.set()
        try:
            await trio.sleep(3)
            ends.append("done")
        except trio.Cancelled:
            ends.append("cancelled")
            raise
        return Thing(id="a")

    changes: dict[str, Any] = {"body": Thing} if takes_body else {}
    house = open_house(endpoint("POST", "/a", handler, work=work, **changes))
    options: dict[str, Any] = {"json": {"id": "a"}} if takes_body else {}
    with caplog.at_level("INFO", "nerve.access"):
        async with house.client.with_(silent_when_gone=silent).open("POST", "/a", **options) as exchange:
            await begun.wait()
            exchange.disconnect()
            await exchange.ended.wait()
    assert ends == ["done" if work is Work.WRITE else "cancelled"]
    assert trio.current_time() == (3 if work is Work.WRITE else 0)
    seen = " 200 " if silent and work is Work.WRITE else " 499 "  # as far as the app can know
    assert seen in caplog.messages[-1]
    assert house.undeclared == []


@pytest.mark.parametrize("work", [Work.READ, Work.WRITE])
async def test_both_can_be_cancelled_from_outside(work: Work, autojump_clock: MockClock) -> None:
    async def handler(stage: Stage, caller: Any, params: Any, body: Any) -> Thing:
        await trio.sleep_forever()
        raise AssertionError

    house = open_house(endpoint("POST", "/a", handler, work=work))
    with trio.move_on_after(1) as shutdown:
        await house.client.post("/a")
    assert shutdown.cancelled_caught


@pytest.mark.req("GEN-11")
async def test_requests_do_not_wait_for_each_other(autojump_clock: MockClock) -> None:
    async def handler(stage: Stage, caller: Any, params: Any, body: Any) -> Thing:
        await trio.sleep(1)
        return Thing(id=caller.request_id)

    house, seen = open_house(endpoint("GET", "/a", handler)), []

    async def ask(number: int) -> None:
        reply = await house.client.get("/a", headers={"x-request-id": f"n{number}"})
        seen.append((reply.json["id"], reply.headers["x-request-id"]))

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(ask, number)
    assert trio.current_time() == 1
    assert sorted(seen) == sorted((f"n{number}", f"n{number}") for number in range(50))


async def test_a_surplus_after_the_request_neither_cancels_nor_floods(autojump_clock: MockClock) -> None:
    async def handler(stage: Stage, caller: Any, params: Any, body: Any) -> Thing:
        await trio.sleep(5)
        return Thing(id="a")

    house = open_house(endpoint("GET", "/a", handler), max_body_bytes=1000)
    async with house.client.open("GET", "/a", content=[b"x" * 600] * 200) as exchange:
        reply = await exchange.reply()
    assert (reply.status, reply.headers["connection"]) == (200, "close")
