"""Which path names which operation: literals before parameters, percent-decoding once, 404 for everything else."""

from typing import Any
from urllib.parse import quote

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from nerve.asgi.router import Router, decode_segment
from nerve.contract.route import AuthMode
from tests.asgi.stage import Stage, default_endpoints, endpoint, open_house

ROUTER: Router[Stage] = Router(default_endpoints(), AuthMode.LOCAL)


def found(path: str) -> tuple[str, tuple[str, ...]] | None:
    match = ROUTER.find(path.encode("latin-1"))
    return None if match is None else (match[0].operations["GET"].endpoint.route.path, match[1])


THING, PART = "/api/things/{thing_id}", "/api/things/{thing_id}/parts/{part_id}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/health", ("/health", ())),
        ("/%68ealth", ("/health", ())),
        ("/api/things/archived", ("/api/things/archived", ())),
        ("/api/things/archive%64", ("/api/things/archived", ())),
        ("/api/things/Archived", (THING, ("Archived",))),
        ("/api/things/archived/parts/1", (PART, ("archived", "1"))),  # back from the literal that leads nowhere
        ("/api/things/a%2Fb", (THING, ("a/b",))),
        ("/api/things/a%2fparts%2fb", (THING, ("a/parts/b",))),
        ("/api/things/%252F", (THING, ("%2F",))),
        ("/api/things/%00", (THING, ("\x00",))),
        ("/api/things/a+b", (THING, ("a+b",))),
        ("/api/things/..", (THING, ("..",))),
        ("/api/things/%2e%2e", (THING, ("..",))),
        ("/api/things/%C3%A9", (THING, ("é",))),
        ("/api/things/a;b=c", (THING, ("a;b=c",))),
        ("/api/things/%FF", None),
        ("/api/things/\xff", None),
        ("/api/things/%C3", None),
        ("/api/things/%ED%A0%80", None),  # a surrogate
        ("/api/things/%", None),
        ("/api/things/%4", None),
        ("/api/things/%zz", None),
        ("/api/things/", None),
        ("/api/things//parts/1", None),
        ("/api/things/1/parts/", None),
        ("/api/things/1/parts", None),
        ("/api/things/1/parts/2/3", None),
        ("/api/things/1/parts/2/", None),
        ("/health/", None),
        ("//health", None),
        ("/", None),
        ("", None),
        ("*", None),
        ("/api/../health", None),
        ("/API/things", None),
        ("/api%2Fthings", None),
        ("/ws", None),
    ],
)
@pytest.mark.req("GEN-02", "GEN-05")
def test_paths(path: str, expected: tuple[str, tuple[str, ...]] | None) -> None:
    assert found(path) == expected


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])), st.text(min_size=1, max_size=20))
@pytest.mark.req("GEN-05")
def test_what_was_encoded_arrives_as_it_was(thing: str, part: str) -> None:
    if thing != "archived":
        assert found(f"/api/things/{quote(thing, safe='')}") == (THING, (thing,))
    assert found(f"/api/things/{quote(thing, safe='')}/parts/{quote(part, safe='')}") == (PART, (thing, part))


@given(st.binary())
def test_a_segment_is_decoded_or_names_nothing(raw: bytes) -> None:
    decoded = decode_segment(raw)
    assert decoded is None or decoded.encode() == raw or b"%" in raw


@given(st.lists(st.sampled_from([b"", b"api", b"things", b"x", b"%2F", b"..", b"parts", b"archived", b"%"])))
@pytest.mark.req("GEN-05")
def test_no_path_breaks_the_router(segments: list[bytes]) -> None:
    match = ROUTER.find(b"/" + b"/".join(segments))
    assert match is None or all(match[1])


def test_two_endpoints_for_one_place_never_start() -> None:
    with pytest.raises(ValueError, match="two endpoints"):
        open_house(endpoint("GET", "/a/{x}"), endpoint("GET", "/a/{y}"))


@pytest.mark.req("GEN-01", "GEN-02", "GEN-08", "AUTH-27")
async def test_what_is_not_there_is_not_found() -> None:
    for path in ("/api/nowhere", "/api/things/", "/ws", "/", "/api/things/%FF", "/api/things/x%"):
        reply = await open_house().client.with_(token=None).get(path)
        assert (reply.status, reply.json) == (404, {"detail": "Not Found"})
    login: dict[str, Any] = {"json": {"id": "x"}}
    assert (await open_house().client.post("/api/login", **login)).status == 200
    assert (await open_house(auth_mode=AuthMode.EXTERNAL).client.post("/api/login", **login)).status == 404


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/health", "GET, HEAD, OPTIONS"),
        ("PUT", "/api/things", "GET, POST, HEAD, OPTIONS"),
        ("HEAD", "/api/login", "POST, OPTIONS"),
        ("PATCH", "/api/things/archived", "GET, HEAD, OPTIONS"),
        ("get", "/api/things", "GET, POST, HEAD, OPTIONS"),
        ("TRACE", "/api/things/x", "DELETE, GET, PATCH, HEAD, OPTIONS"),
    ],
)
@pytest.mark.req("GEN-07", "GEN-01")
async def test_a_wrong_method_is_told_which_are_right(method: str, path: str, allow: str) -> None:
    house = open_house()
    reply = await house.client.with_(token=None).request(method, path)
    assert (reply.status, reply.headers["allow"]) == (405, allow)
    if method != "HEAD":
        assert reply.json == {"detail": "Method Not Allowed"}


async def test_head_is_get_without_a_body() -> None:
    client = open_house().client
    for path in ("/api/things", "/health", "/api/nowhere"):
        got, asked = await client.get(path), await client.head(path)
        assert asked.status == got.status
        assert asked.body == b""
        assert {k: v for k, v in asked.headers.items() if k != "x-request-id"} == {
            k: v for k, v in got.headers.items() if k != "x-request-id"
        }


@frozen(kw_only=True)
class PartQuery:
    thing_id: str
    part_id: str
    word: str
    limit: int


async def test_path_and_query_arrive_as_one_model() -> None:
    house = open_house(endpoint("GET", "/api/things/{thing_id}/parts/{part_id}", params=PartQuery))
    await house.client.get("/api/things/a%2Fb/parts/%25?word=x&word=caf%C3%A9+y&limit=07&token=alice&other=1")
    assert house.stage.last[1] == PartQuery(thing_id="a/b", part_id="%", word="café y", limit=7)
