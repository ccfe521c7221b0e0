"""Request bodies: their bounds, their type, what a 422 says, and what happens to those that nobody wants."""

from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from nerve.asgi.body import is_json
from nerve.contract.route import AuthPolicy
from tests.asgi.stage import NewThing, Options, Page, endpoint, open_house

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"', "",
     "application/problem+json", "application/json; profile=x", "application/json;", "  application/json  "],
)  # fmt: skip
def test_json_types(content_type: str) -> None:
    assert is_json(content_type.encode())


@pytest.mark.parametrize(
    "content_type",
    ["text/json", "text/plain", "application/jsonx", "application/x-www-form-urlencoded", "json", "application/xml",
     "application/json; charset=latin-1", "application/json, application/json", "a b+json", "multipart/form-data"],
)  # fmt: skip
def test_other_types(content_type: str) -> None:
    assert not is_json(content_type.encode())


@given(st.binary(max_size=80))
def test_no_content_type_breaks_the_rule(raw: bytes) -> None:
    assert is_json(raw) in (True, False)


async def test_an_absent_type_is_read_as_json() -> None:
    house = open_house()
    assert (await house.client.post("/api/things", content=b'{"id": "x", "later": [1]}')).status == 200
    assert house.stage.last[2] == NewThing(id="x")


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (b"{", [("json_invalid", ["body"])]),
        (b"\xff", [("json_invalid", ["body"])]),
        (b"[" * 100 + b"]" * 100, [("json_too_deep", ["body"])]),
        (b"[]", [("dict_type", ["body"])]),
        (b"null", [("dict_type", ["body"])]),
        (b"", [("missing", ["body"])]),
        (b"{}", [("missing", ["body", "id"])]),
        (b'{"id": 5, "note": null}', [("string_type", ["body", "id"]), ("string_type", ["body", "note"])]),
    ],
)
@pytest.mark.req("GEN-01", "GEN-03", "GEN-04")
async def test_a_bad_body_is_explained_without_repeating_it(content: bytes, problems: list[Any]) -> None:
    reply = await open_house().client.post("/api/things", content=content, headers=JSON)
    assert reply.status == 422
    assert [(p["type"], p["loc"]) for p in reply.json["detail"]] == problems
    assert all(set(p) == {"type", "loc", "msg"} for p in reply.json["detail"])


@pytest.mark.req("GEN-06")
async def test_parameters_and_body_are_explained_together() -> None:
    house = open_house(endpoint("POST", "/api/place", params=Page, body=NewThing))
    reply = await house.client.post("/api/place?limit=many&token=alice", json={"note": "n"})
    assert [p["loc"] for p in reply.json["detail"]] == [["query", "limit"], ["body", "id"]]


@pytest.mark.parametrize(
    "query", ["limit=-1", "limit=999999999999999999999", "limit=", "limit=1e3", "limit=%00", "limit"]
)
@pytest.mark.req("GEN-06")
async def test_odd_paging_values_are_the_clients_mistake_at_most(query: str) -> None:
    assert (await open_house().client.get(f"/api/things?{query}")).status in (200, 422)


async def test_an_optional_body_may_be_missing() -> None:
    house = open_house()
    assert (await house.client.patch("/api/things/x")).status == 200
    assert house.stage.last[2] == Options(loud=False)
    assert (await house.client.patch("/api/things/x", json={"loud": True})).status == 200
    assert house.stage.last[2] == Options(loud=True)
    assert (await house.client.patch("/api/things/x", json=[])).status == 422


# --- size ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("excess", [0, 1])
@pytest.mark.parametrize("shape", ["declared", "one chunk", "many chunks"])
async def test_the_bound_is_exact_however_the_body_comes(excess: int, shape: str) -> None:
    whole = b'{"id": "' + b"x" * (50 + excess) + b'"}'
    house = open_house(max_body_bytes=len(whole) - excess)
    parts = {"declared": whole, "one chunk": [whole], "many chunks": [bytes([b]) for b in whole]}
    reply = await house.client.post("/api/things", content=parts[shape])
    assert reply.status == (413 if excess else 200)
    if excess:
        assert reply.json == {"detail": f"The request body is larger than {len(whole) - 1} bytes."}


@pytest.mark.parametrize(("auth", "status"), [(AuthPolicy.OPEN, 413), (AuthPolicy.ANY, 422)])
@pytest.mark.parametrize("declared", [True, False])
async def test_whoever_is_not_signed_in_may_send_little(auth: AuthPolicy, status: int, declared: bool) -> None:
    handler = endpoint("POST", "/api/things", auth=auth, body=NewThing)
    house = open_house(handler, max_open_body_bytes=100)
    whole = b'{"id": "' + b"x" * 91 + b'"}'
    assert len(whole) == 101
    reply = await house.client.post("/api/things", content=whole if declared else [whole])
    assert reply.status == status
    reply = await house.client.post("/api/things", content=whole[1:] if declared else [whole[1:]])
    assert reply.status == 422, "it was read"


async def test_the_bound_holds_for_a_body_in_one_undeclared_message() -> None:
    house = open_house(max_body_bytes=20)
    for content, status in ((b'{"id": "%s"}' % (b"x" * 10), 200), (b'{"id": "%s"}' % (b"x" * 11), 413)):
        async with house.client.open("POST", "/api/things", end_body=False) as exchange:
            exchange.feed(content, more=False)
            assert (await exchange.reply()).status == status


async def test_a_declared_excess_is_refused_before_a_byte_of_it_is_read(autojump_clock: MockClock) -> None:
    house = open_house(max_body_bytes=1000)
    declared = {"content-length": str(2_000_000)}
    async with house.client.open("POST", "/api/things", headers=declared, end_body=False) as exchange:
        await exchange.answered.wait()
        assert trio.current_time() < 0.1
        reply = await exchange.reply()
    assert (reply.status, reply.headers["connection"]) == (413, "close")


async def test_a_refused_upload_is_read_for_a_while_so_that_its_reply_arrives(autojump_clock: MockClock) -> None:
    house = open_house(max_body_bytes=100_000)
    async with house.client.open("POST", "/api/nowhere", end_body=False) as exchange:
        for _ in range(3):
            await exchange.send_body(b"x" * 40_000)
        await exchange.answered.wait()
        assert not exchange.ended.is_set()
        await exchange.send_body(b"", more=False)
        assert exchange.ended.is_set()
        assert (await exchange.reply()).headers["connection"] == "close"


async def test_an_upload_that_never_ends_does_not_hold_the_server(autojump_clock: MockClock) -> None:
    house = open_house(max_body_bytes=100_000)
    async with house.client.open("POST", "/api/nowhere", end_body=False) as exchange:
        reply = await exchange.reply()
        assert (reply.status, reply.headers["connection"]) == (404, "close")
        assert trio.current_time() < 5


@pytest.mark.parametrize("path", ["/api/nowhere", "/api/things/x"])
async def test_a_small_unwanted_body_costs_the_connection_nothing(path: str) -> None:
    house = open_house()
    for content in (b"x" * 60_000, [b"x" * 20_000] * 3):
        reply = await house.client.delete(path, content=content)
        assert reply.status in (200, 404)
        assert "connection" not in reply.headers


async def test_a_large_unwanted_body_closes_the_connection(autojump_clock: MockClock) -> None:
    reply = await open_house().client.delete("/api/things/x", content=b"x" * 70_000)
    assert (reply.status, reply.headers["connection"]) == (200, "close")


# --- time ---------------------------------------------------------------------------------------------------------


async def test_a_body_has_its_time(autojump_clock: MockClock) -> None:
    house = open_house(body_seconds=7)
    async with house.client.open("POST", "/api/things", end_body=False) as exchange:
        for byte in b'{"id": "x"':
            await trio.sleep(0.5)
            exchange.feed(bytes([byte]), more=True)
        assert not exchange.answered.is_set()
        reply = await exchange.reply()
    assert (reply.status, reply.headers["connection"]) == (422, "close")
    assert [p["type"] for p in reply.json["detail"]] == ["body_timeout"]
    assert trio.current_time() == pytest.approx(7)


async def test_a_client_that_leaves_in_mid_body_is_answered_nothing(caplog: pytest.LogCaptureFixture) -> None:
    house = open_house()
    with caplog.at_level("INFO", "nerve.access"):
        async with house.client.open("POST", "/api/things", end_body=False) as exchange:
            await exchange.send_body(b'{"id"')
            exchange.disconnect()
            await exchange.ended.wait()
            assert not exchange.answered.is_set()
    assert house.stage.calls == []
    assert house.undeclared == []
    assert " 499 " in caplog.messages[-1]


@given(st.binary(max_size=200), st.sampled_from(["application/json", "text/plain", "", "application/json;charset=x"]))
@pytest.mark.req("GEN-03", "GEN-04")
def test_no_body_is_our_mistake(content: bytes, content_type: str) -> None:
    async def run() -> None:
        house = open_house()
        reply = await house.client.post("/api/things", content=content, headers={"content-type": content_type})
        assert reply.status in (200, 415, 422)
        assert house.undeclared == []

    trio.run(run)
