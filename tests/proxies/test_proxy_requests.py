"""Requests through nginx and Caddy: whole bodies both ways, and who is asking, by which name, from where."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.proxies.behind import (
    CLIENT,
    FOREIGN,
    KINDS,
    NAME,
    Kind,
    Nerve,
    Site,
    nerve_with,
    replaced,
    running,
    settings,
)
from tests.soak.scale import only_whole
from tests.spec_client import judged

pytestmark = pytest.mark.slow

MAX_BODY_BYTES = 10 * 1024 * 1024
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
_numbers = count(1)


def new_id() -> str:
    return f"proxied-{next(_numbers)}"


# --- requests and bodies ----------------------------------------------------------------------------------------------


def test_a_person_signs_in_asks_who_they_are_and_chats(site: Site) -> None:
    with site.proxy.client() as client:
        login = judged(client.post("/api/auth/login", json={"username": "owner", "password": "correct horse"}))
        assert login.status_code == 200
        client.headers["authorization"] = f"Bearer {login.json()['token']}"
        assert judged(client.get("/api/auth/me")).json()["account"]["username"] == "owner"
        answer = judged(client.post("/api/chat", json={"message": "Hello, who are you?"}))
        assert answer.json()["response"].startswith("I received your message")
        assert judged(client.post("/api/auth/login", json={"password": "wrong"})).status_code == 401


def test_caddy_speaks_http2_and_nerve_need_not(site: Site) -> None:
    with site.client(http2=True) as client:
        answer = judged(client.get("/api/auth/me"))
    assert answer.status_code == 200
    assert (answer.http_version == "HTTP/2") == (site.proxy.kind == "caddy")


def body_of(size: int) -> bytes:
    """A chat message with an unknown member that makes it this long."""
    head = b'{"message": "Hello", "padding": "'
    return head + b"x" * (size - len(head) - 2) + b'"}'


def pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 65536):
        yield body[start : start + 65536]


@pytest.mark.parametrize("chunked", [False, True], ids=["sized", "chunked"])
def test_bodies_pass_up_to_the_limit_and_nerve_refuses_what_is_above(site: Site, chunked: bool) -> None:
    with site.client() as client:
        client.headers["content-type"] = "application/json"
        for size, status in ((MAX_BODY_BYTES, 200), (MAX_BODY_BYTES + 1, 413)):
            body = body_of(size)
            assert len(body) == size
            answer = judged(client.post("/api/chat", content=pieces(body) if chunked else body))
            assert answer.status_code == status
        assert "10485760" in answer.json()["detail"]


@pytest.mark.soak
@only_whole
def test_a_body_far_above_the_limit_is_refused_by_whoever_sees_it_first(site: Site) -> None:
    with site.client() as client:
        answer = client.post("/api/chat", content=body_of(12 * 1024 * 1024))
        assert answer.status_code == 413
        assert ("html" in answer.headers["content-type"]) == (site.proxy.kind == "nginx")
        assert judged(client.get("/api/auth/me")).status_code == 200


def test_paths_and_queries_arrive_as_they_were_sent(site: Site) -> None:
    with site.client() as client:
        for path, status in (("/api/sessions/a%2Fb", 404), ("/api//sessions", 404), ("/api/sessions/%ff", 404)):
            request_id = new_id()
            answer = judged(client.get(path, headers={"x-request-id": request_id}))
            assert (answer.status_code, answer.headers["x-request-id"]) == (status, request_id)
            assert site.logged(request_id, 1)[0].split()[4] == path
        assert judged(client.get("/api/sessions/main/messages?limit=1&before_id=1")).json()["messages"] == []


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unnamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nerve]:
    config = settings("allowed_hosts")
    with nerve_with(config, tmp_path_factory.mktemp("unnamed") / "nerve") as nerve:
        yield nerve


def test_a_name_that_is_not_allowed_is_told_the_key_that_allows_it(kind: Kind, unnamed: Nerve, tmp_path: Path) -> None:
    with running(kind, tmp_path / "proxy", unnamed.upstream) as proxy, Site(unnamed, proxy).client() as client:
        refused = judged(client.get("/api/auth/me"))
        assert refused.status_code == 421
        assert NAME in refused.json()["detail"]
        assert "gateway.allowed_hosts" in refused.json()["detail"]
        assert upgraded(client, None) == 421
        assert judged(client.get("/health")).status_code == 200


def test_any_name_may_ask_for_health(configured: Nerve, tmp_path: Path) -> None:
    """nginx gives its only server whatever has no other; Caddy never passes a name on that it doesn't know."""
    with running(KINDS["nginx"], tmp_path / "proxy", configured.upstream) as proxy, proxy.client() as client:
        for host in ("evil.example.org", "10.1.2.3:99", f"{NAME}.evil.example.org"):
            assert judged(client.get("/health", headers={"host": host})).status_code == 200
            assert judged(client.get("/api/auth/status", headers={"host": host})).status_code == 421


# --- origins ----------------------------------------------------------------------------------------------------------


def upgraded(client: httpx.Client, origin: str | None, **headers: str) -> int:
    """The status of an upgrade that asks from there."""
    headers |= {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    headers |= {"sec-websocket-key": KEY} | ({} if origin is None else {"origin": origin})
    with client.stream("GET", "/ws", headers=headers) as answer:
        return answer.status_code


def written(client: httpx.Client, origin: str | None, **headers: str) -> int:
    headers |= {} if origin is None else {"origin": origin}
    return judged(client.post("/api/sessions", json={}, headers=headers)).status_code


def foreign_to(site: Site) -> list[str]:
    port = site.proxy.port
    return [
        FOREIGN,
        "null",
        f"http://{NAME}:{port}",
        f"https://{NAME}",
        f"https://{NAME}:{port + 1}",
        f"https://127.0.0.1:{port}",
        f"https://{NAME}.evil.example.org:{port}",
        f"http://{site.nerve.upstream}",
    ]


def test_the_public_page_may_act_and_no_other(site: Site) -> None:
    with site.by_cookie() as client:
        for origin in (site.proxy.origin, site.proxy.origin.upper().replace("HTTPS", "https"), None):
            assert written(client, origin) == 200
            assert upgraded(client, origin) == 101
        for origin in foreign_to(site):
            assert written(client, origin) == 403, origin
            assert upgraded(client, origin) == 403, origin
            assert judged(client.get("/api/auth/me", headers={"origin": origin})).status_code == 200
    with site.client() as client:
        assert written(client, FOREIGN) == 200  # a token that a page holds was given to it
        assert upgraded(client, FOREIGN) == 403


@pytest.mark.parametrize("ours", [True, False], ids=["own page", "foreign page"])
def test_what_a_client_forwards_itself_changes_nothing(site: Site, ours: bool) -> None:
    origin, status = (site.proxy.origin, 200) if ours else (FOREIGN, 403)
    forged = {
        "x-forwarded-host": "evil.example.org",
        "x-forwarded-proto": "https",
        "forwarded": "host=evil.example.org",
    }
    with site.by_cookie() as client:
        assert written(client, origin, **forged) == status
        assert written(client, origin, **{"x-forwarded-host": "localhost"}) == status
        assert written(client, origin, **{"x-forwarded-proto": "http"}) == status
        assert upgraded(client, origin, **forged) == (101 if ours else 403)


def test_behind_a_proxy_that_is_not_trusted_the_public_page_is_foreign(distrusted: Site) -> None:
    site = distrusted
    with site.by_cookie() as client:
        assert written(client, site.proxy.origin) == 403
        assert upgraded(client, site.proxy.origin) == 403
        assert written(client, None) == 200
        assert upgraded(client, None) == 101
        assert written(client, FOREIGN) == 403


# --- peers ------------------------------------------------------------------------------------------------------------

SPOOFED = [
    {},
    {"x-forwarded-for": "203.0.113.9"},
    {"x-forwarded-for": "203.0.113.9, 127.0.0.1"},
    {"x-real-ip": "1.2.3.4"},
]


@pytest.mark.parametrize("spoofed", SPOOFED, ids=json.dumps)
def test_the_log_names_the_client_whatever_it_says_of_itself(site: Site, spoofed: dict[str, str]) -> None:
    request_id = new_id()
    with site.client() as client:
        client.get("/api/auth/me", headers={**spoofed, "x-request-id": request_id})
        upgraded(client, None, **{**spoofed, "x-request-id": request_id})
    assert site.peers(request_id, 2) == [CLIENT] * 2


def test_the_peers_of_a_proxy_that_is_not_trusted_are_the_proxy(distrusted: Site) -> None:
    request_id = new_id()
    with distrusted.client() as client:
        for spoofed in SPOOFED:
            client.get("/api/auth/me", headers={**spoofed, "x-request-id": request_id})
    assert distrusted.peers(request_id, len(SPOOFED)) == ["127.0.0.1"] * len(SPOOFED)


def test_a_proxy_that_adds_to_the_list_gives_away_no_more(configured: Nerve, tmp_path: Path) -> None:
    """The usual setting in nginx's own examples: the client's words first, its address behind them."""

    def adding(site: str) -> str:
        return replaced(site, "X-Forwarded-For $remote_addr;", "X-Forwarded-For $proxy_add_x_forwarded_for;")

    with running(KINDS["nginx"], tmp_path / "proxy", configured.upstream, adding) as proxy:
        site, request_id = Site(configured, proxy), new_id()
        with site.client() as client:
            for spoofed in SPOOFED:
                client.get("/api/auth/me", headers={**spoofed, "x-request-id": request_id})
    assert site.peers(request_id, len(SPOOFED)) == [CLIENT] * len(SPOOFED)
