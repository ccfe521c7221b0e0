"""The order of decisions, and who may do what.  Each request is wrong in everything that comes later as well."""

from typing import Any

import pytest

from nerve.contract.route import AuthMode, AuthPolicy, NoBody, Reply, Work
from nerve.errors import ErrorCode, NerveError
from tests.asgi.stage import NewThing, Page, Thing, endpoint, open_house, returning

BAD_BODY: dict[str, Any] = {"content": b"x" * 200, "headers": {"content-type": "text/plain"}}
COOKIE = ("cookie", "nerve_token=alice")
FOREIGN = ("origin", "https://evil.example.org")


def steps() -> list[tuple[int, dict[str, Any]]]:
    """(status, what is right) where each entry adds one thing that is right."""
    small = {"content": b"{}", "headers": {"content-type": "text/plain"}}
    return [
        (421, {"host": "evil.example.org", "path": "/nowhere", "method": "PUT", "token": "nobody", **BAD_BODY}),
        (404, {"path": "/nowhere", "method": "PUT", "token": "nobody", **BAD_BODY}),
        (405, {"method": "PUT", "token": "nobody", **BAD_BODY}),
        (401, {"token": "nobody", **BAD_BODY}),
        (503, {"token": "early", **BAD_BODY}),
        (403, {"token": "machine", **BAD_BODY}),
        (413, {"token": "alice", **BAD_BODY}),
        (415, {"token": "alice", **small}),
        (422, {"token": "alice", "content": b"{}", "headers": {"content-type": "application/json"}}),
        (409, {"token": "alice", "json": {"id": "x"}}),
    ]


@pytest.mark.parametrize(
    ("status", "request_"), steps(), ids=lambda value: str(value) if isinstance(value, int) else ""
)
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.req("GEN-01", "GEN-08")
async def test_the_order_of_decisions(status: int, request_: dict[str, Any], chunked: bool) -> None:
    refusing = returning(NerveError(ErrorCode.USERNAME_TAKEN))
    house = open_house(
        endpoint(
            "POST", "/api/place", refusing, body=NewThing, auth=AuthPolicy.PERSON, codes=(ErrorCode.USERNAME_TAKEN,)
        ),
        max_body_bytes=100,
    )
    options = dict(request_)
    client = house.client.with_(token=options.pop("token"), host=options.pop("host", "localhost"))
    if chunked and "content" in options:
        options["content"] = [options["content"][:50], options["content"][50:]]
    reply = await client.request(options.pop("method", "POST"), options.pop("path", "/api/place"), **options)
    assert reply.status == status
    assert "detail" in reply.json
    assert len(house.stage.calls) == (1 if status == 409 else 0)
    assert not house.undeclared


@pytest.mark.parametrize(
    ("carried", "seen"),
    [
        ({"headers": {"authorization": "Bearer alice"}}, "alice"),
        ({"headers": {"authorization": "bearer   alice "}}, "alice"),
        ({"headers": {"authorization": "BEARER alice"}}, "alice"),
        ({"headers": {"cookie": "a=b; nerve_token=alice; c=d"}}, "alice"),
        ({"headers": {"cookie": 'nerve_token="alice"'}}, "alice"),
        ({"headers": {"cookie": "nerve_token=alice; nerve_token=other"}}, "alice"),
        ({"raw_headers": [(b"cookie", b"a=b"), (b"cookie", b"nerve_token=alice")]}, "alice"),
        ({"query": {"token": "alice"}}, "alice"),
        ({"query": "token=nobody&token=alice"}, "alice"),
        ({"headers": {"authorization": "Bearer nobody", "cookie": "nerve_token=alice"}}, None),
        ({"headers": {"cookie": "nerve_token=nobody"}, "query": {"token": "alice"}}, None),
        ({"headers": {"authorization": "Basic YTpi", "cookie": "nerve_token=alice"}}, "alice"),
        ({"headers": {"authorization": "Bearer ", "cookie": "nerve_token=alice"}}, "alice"),
        ({"headers": {"cookie": "nerve_token="}, "query": {"token": "alice"}}, "alice"),
        ({"headers": {"authorization": "alice"}}, None),
        ({"headers": {"authorization": "Bearer alice, Bearer alice"}}, None),
        ({"headers": {"cookie": "xnerve_token=alice"}}, None),
        ({"headers": {"x-nerve-actor-context": "alice"}}, None),
        ({"raw_headers": [(b"authorization", b"Bearer \xff\xfe")]}, None),
        ({}, None),
    ],
)
@pytest.mark.req("AUTH-01", "AUTH-02", "AUTH-03", "AUTH-04")
async def test_credential_sources(carried: dict[str, Any], seen: str | None) -> None:
    house = open_house()
    reply = await house.client.with_(token=None).get("/api/things", **carried)
    assert reply.status == (401 if seen is None else 200)
    if seen is not None:
        assert house.stage.last[0].actor_id == "act_alice"


@pytest.mark.req("AUTH-10")
async def test_external_mode_reads_the_actor_context_as_an_ambient_credential() -> None:
    house = open_house(auth_mode=AuthMode.EXTERNAL)
    client = house.client.with_(token=None, headers=(("x-nerve-actor-context", "alice"),))
    assert (await client.get("/api/things")).status == 200
    assert (await client.delete("/api/things/x")).status == 200
    assert (await client.delete("/api/things/x", headers=dict([FOREIGN]))).status == 403


async def test_an_open_operation_looks_at_no_credential() -> None:
    house = open_house()
    reply = await house.client.with_(token="nobody").post("/api/login", json={"id": "x"}, headers=dict([FOREIGN]))
    assert reply.status == 200
    assert house.admission.seen == []
    assert house.stage.last[0].actor_id is None


async def test_a_refusal_of_its_own_for_machines() -> None:
    house = open_house(
        endpoint(
            "GET",
            "/api/people",
            auth=AuthPolicy.PERSON,
            refusal=ErrorCode.ACCOUNTS_NEED_PERSON,
            codes=(ErrorCode.ACCOUNTS_NEED_PERSON,),
        )
    )
    reply = await house.client.with_(token="machine").get("/api/people")
    assert (reply.status, reply.json) == (403, {"detail": "Accounts are managed by a signed-in person."})


@pytest.mark.parametrize("work", [Work.READ, Work.CHECK])
async def test_only_writes_ask_for_the_origin(work: Work) -> None:
    house = open_house(endpoint("POST", "/api/place", work=work))
    client = house.client.with_(token=None, headers=(COOKIE, FOREIGN))
    assert (await client.post("/api/place")).status == 200


@pytest.mark.req("AUTH-11", "AUTH-13")
async def test_a_refreshed_token_comes_with_success_only() -> None:
    taken = NerveError(ErrorCode.USERNAME_TAKEN)
    house = open_house(
        endpoint("GET", "/api/good"),
        endpoint("GET", "/api/bad", returning(taken), codes=(ErrorCode.USERNAME_TAKEN,)),
        endpoint("GET", "/api/no", returning(Reply(Thing(id="a"), 409)), replies={200: Thing, 409: Thing}),
        endpoint("GET", "/api/numbers", params=Page),
        endpoint("GET", "/health", auth=AuthPolicy.OPEN),
    )
    client = house.client.with_(token="worn")
    assert (await client.get("/api/good")).headers["x-nerve-token"] == "fresh"
    for path in ("/api/bad", "/api/no", "/api/numbers?limit=x", "/health"):
        assert "x-nerve-token" not in (await client.get(path)).headers
    assert "x-nerve-token" not in (await house.client.get("/api/good")).headers


async def test_the_caller_carries_peer_and_request_id() -> None:
    house = open_house()
    for path in ("/api/things", "/health"):
        await house.client.with_(peer="203.0.113.5").get(path, headers={"x-request-id": "mine-1"})
        caller = house.stage.last[0]
        assert (caller.peer, caller.request_id) == ("203.0.113.5", "mine-1")


@pytest.mark.parametrize("wish", ["", "a b", "x" * 65, "a\tb", "é", "a,b", "<x>"])
async def test_an_odd_request_id_is_replaced(wish: str) -> None:
    reply = await open_house().client.get("/health", headers={"x-request-id": wish})
    assert reply.headers["x-request-id"] == "req_1"


async def test_no_body_is_expected_where_none_is_taken() -> None:
    assert NoBody() == NoBody()
    house = open_house()
    reply = await house.client.delete("/api/things/x", content=b"not json", headers={"content-type": "text/plain"})
    assert reply.status == 200
    assert house.stage.last[2] == NoBody()
