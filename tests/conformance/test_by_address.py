"""How the suite gets into a server at an address: whom it refuses, and in which order it plays."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from tests.asgi_wire import Reply, Request
from tests.conformance.by_address import Given, Server, Unfit, add_options, checked_url, complaint_of, in_order, sampled
from tests.conformance.conftest import local
from tests.conformance.remote_subject import Traces
from tests.conformance.subject import Local
from tests.remote_wire import Address, RemoteWire

pytestmark = local(Local.CODE)

STATUS = "GET /api/auth/status"
SIGN_IN = "POST /api/auth/login"
CLAIM = "POST /api/setup/claim"
ME = "GET /api/accounts/me"
CREATE = "POST /api/sessions"
DELETE = "DELETE /api/sessions/s1"

PASSWORD_STATUS = {"mode": "local", "auth_required": True, "login": "password"}
SETUP_STATUS = {**PASSWORD_STATUS, "login": "setup"}
GOOD: Mapping[str, tuple[int, Any]] = {
    STATUS: (200, PASSWORD_STATUS),
    SIGN_IN: (200, {"token": "t1"}),
    CLAIM: (200, {"token": "t1"}),
    ME: (200, {"username": "alice", "has_password": True}),
    CREATE: (200, {"id": "s1", "backend": "scripted"}),
    DELETE: (200, {"deleted": True}),
}


@contextmanager
def canned(answers: Mapping[str, tuple[int, Any]]) -> Iterator[tuple[str, list[tuple[str, str, Any]]]]:
    """A server that says these things: its address, and what it was asked: line, Authorization, body."""
    asked: list[tuple[str, str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            line = f"{self.command} {self.path}"
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append((line, self.headers.get("authorization", ""), json.loads(body or b"null")))
            status, said = answers.get(line, (404, {"detail": "Not Found"}))
            content = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *args: Any) -> None:
            """Silence."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{served.server_port}", asked
        finally:
            served.shutdown()
            thread.join(5)


@pytest.mark.parametrize(
    ("spoilt", "given", "complaint"),
    [
        ({}, {}, "give --username and --password, or --token"),
        ({}, {"username": "alice"}, "give --username and --password, or --token"),
        ({STATUS: (200, SETUP_STATUS)}, {"token": "t1"}, "nobody has claimed it: give --setup-token"),
        ({STATUS: (200, {**PASSWORD_STATUS, "login": "none"})}, {"token": "t1"}, "open to anyone"),
        ({STATUS: (200, {**PASSWORD_STATUS, "mode": "external"})}, {"token": "t1"}, "no accounts of its own"),
        ({STATUS: (200, b"<html>")}, {"token": "t1"}, "is this the right address?"),
        ({STATUS: (404, {"detail": "Not Found"})}, {"token": "t1"}, "GET /api/auth/status answers 404"),
        ({SIGN_IN: (401, {"detail": "no"})}, {"username": "a", "password": "b"}, "POST /api/auth/login answers 401"),
        ({ME: (401, {"detail": "no"})}, {"token": "t1"}, "GET /api/accounts/me answers 401"),
        ({ME: (200, {"username": None, "has_password": True})}, {"token": "t1"}, "needs a username and a password"),
        ({ME: (200, {"username": "a", "has_password": False})}, {"token": "t1"}, "needs a username and a password"),
        ({CREATE: (200, {"id": "s1", "backend": "claude"})}, {"token": "t1"}, "answered by 'claude'"),
    ],
)
def test_a_server_that_does_not_fit_is_told_so(
    spoilt: Mapping[str, tuple[int, Any]], given: dict[str, str], complaint: str
) -> None:
    with canned({**GOOD, **spoilt}) as (url, _), pytest.raises(Unfit, match=complaint.replace("?", r"\?")):
        Server.met(Given(url, **given))


def test_nothing_is_left_of_looking_at_a_server_with_another_runtime() -> None:
    with canned({**GOOD, CREATE: (200, {"id": "s1", "backend": "claude"})}) as (url, asked), pytest.raises(Unfit):
        Server.met(Given(url, token="t1"))
    assert [line for line, _, _ in asked] == [STATUS, ME, CREATE, DELETE]


def test_somebody_signs_in_once() -> None:
    with canned(GOOD) as (url, asked):
        server = Server.met(Given(url, username="alice", password="pw"))
        assert (server.claimed, server.owner(), server.owner()) == (True, "t1", "t1")
    assert [line for line, _, _ in asked] == [STATUS, SIGN_IN, ME, CREATE, DELETE]
    assert asked[1][2] == {"username": "alice", "password": "pw"}
    assert {credential for _, credential, _ in asked[2:]} == {"Bearer t1"}


def test_an_unclaimed_server_is_claimed_when_it_has_to_be() -> None:
    with canned({**GOOD, STATUS: (200, SETUP_STATUS)}) as (url, asked):
        server = Server.met(Given(url, setup_token="st"))
        assert (server.claimed, len(asked)) == (False, 1)
        assert (server.owner(), server.claimed) == ("t1", True)
    assert asked[1][0] == CLAIM
    assert asked[1][2] == {
        "username": "alice",
        "password": "correct horse",
        "display_name": "Alice",
        "setup_token": "st",
    }


def test_a_claim_that_a_scenario_made_is_not_made_again() -> None:
    with canned({**GOOD, STATUS: (200, SETUP_STATUS)}) as (url, asked):
        server = Server.met(Given(url, setup_token="st"))
        Traces(server).replied(Request("POST", "/api/setup/claim"), Reply(200, (), b'{"token": "t2"}'))
        assert server.owner() == "t2"
    assert CLAIM not in [line for line, _, _ in asked]


def test_what_is_made_is_noticed_and_nothing_else() -> None:
    traces = Traces(Server(Given("http://x"), None))  # type: ignore[arg-type]
    for method, path, status, body in (
        ("POST", "/api/sessions", 200, b'{"id": "s1"}'),
        ("POST", "/api/accounts", 200, b'{"id": "a1"}'),
        ("POST", "/api/sessions/fork", 200, b'{"id": "f1"}'),
        ("POST", "/api/sessions", 400, b'{"id": "s2"}'),
        ("GET", "/api/sessions", 200, b'{"id": "s3"}'),
        ("POST", "/api/sessions/s4/stop", 200, b'{"id": "s4"}'),
        ("POST", "/api/sessions", 200, b"no JSON"),
        ("POST", "/api/sessions", 200, b'{"id": 7}'),
        ("POST", "/api/sessions", 200, b"[]"),
    ):
        traces.replied(Request(method, path), Reply(status, (), body))
    for frame in (
        {"type": "session_forked", "fork_id": "f2"},
        {"type": "session_forked", "fork_id": 7},
        {"type": "token", "content": "session_forked", "fork_id": "f3"},
    ):
        traces.server_frame(json.dumps(frame))
    traces.server_frame("session_forked, and no JSON")
    assert (traces.sessions, traces.accounts) == (["s1", "f1", "f2"], ["a1"])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8900",
        "ftp://x",
        "http://",
        "http://x/api",
        "http://x?y",
        "http://x#y",
        "http://a@x",
        "http://x:y",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(pytest.UsageError):
        checked_url(url)


def test_what_can_not_be_taken_away_again_is_told() -> None:
    taken: dict[str, tuple[int, Any]] = {
        "DELETE /api/sessions/s2": (200, {}),
        "POST /api/accounts/a1/disable": (200, {}),
    }
    with canned({**taken, "DELETE /api/sessions/s1": (500, {})}) as (url, asked):
        server = Server(Given(url), Address(url))

        async def wipe() -> None:
            async with server.address.http() as http:
                await Traces(server, ["s1", "s2"], ["a1", "gone"]).wipe(RemoteWire(server.address, http, token="t1"))

        trio.run(wipe)
    assert (server.kept, server.disabled) == (["session s1"], 2)
    assert {credential for _, credential, _ in asked} == {"Bearer t1"}
    assert [line.rpartition("/api/")[2] for line, _, _ in asked] == [
        "sessions/s1",
        "sessions/s2",
        "accounts/a1/disable",
        "accounts/gone/disable",
    ]


def test_an_address_is_scheme_host_and_port() -> None:
    for url in ("http://127.0.0.1:8900", "https://nerve.example", "http://[::1]:8900"):
        assert checked_url(url) == checked_url(url + "/") == url


# --- the order ----------------------------------------------------------------------------------------------------


@define(eq=False)
class Item:
    """As much of a pytest.Item as the order looks at."""

    name: str
    marks: set[str] = field(factory=set)

    def get_closest_marker(self, name: str) -> bool:
        return name in self.marks


def test_the_claim_comes_after_its_refusals_and_before_the_rest() -> None:
    items: list[Any] = [
        Item("slow", {"wrong_passwords"}),
        Item("plain"),
        Item("claim", {"claims"}),
        Item("refusal", {"unclaimed"}),
        Item("claim again", {"claims"}),
        Item("refusal again", {"unclaimed"}),
    ]
    ordered: list[Any] = in_order(items)
    assert [i.name for i in ordered] == ["refusal", "refusal again", "claim", "claim again", "plain", "slow"]


def test_a_sample_has_the_claim() -> None:
    items: list[Any] = [Item(str(number)) for number in range(7)] + [Item("claim", {"claims"})]
    assert [i.name for i in sampled(items, 3)] == ["0", "3", "6", "claim"]
    assert sampled(items, 1) == items


# --- what is told -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("traceback", "complaint"),
    [
        ("E   AssertionError: assert 1 == 2", "AssertionError: assert 1 == 2"),
        ("    | tests.spec_frames.SpecViolation: GET / answered 200\n    +----", "SpecViolation: GET / answered 200"),
        ("E   trio.TooSlowError\n\nsomewhere.py:1: TooSlowError", "TooSlowError"),
        ("KeyError: 'a'\nDuring handling of it:\nValueError: b", "ValueError: b"),
        ("http://x: it is gone", "http://x: it is gone"),
        ("", ""),
    ],
)
def test_a_failure_has_one_line_that_says_what_was_wrong(traceback: str, complaint: str) -> None:
    assert complaint_of(traceback) == complaint


PAGE = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")


def test_the_page_has_every_option() -> None:
    parser = pytest.Parser(_ispytest=True)
    add_options(parser)
    (group,) = (group for group in parser._groups if group.name == "conformance")
    options = {name for option in group.options for name in option.names()}
    table = {name for line in PAGE.splitlines() if line.startswith("| `-") for name in re.findall(r"--[a-z-]+", line)}
    assert options == table - {"--tb"}


def test_the_page_has_every_reason_for_a_local_scenario() -> None:
    assert set(re.findall(r"`local\((\w+)\)`", PAGE)) == {why.name for why in Local}


def test_the_page_has_every_module_of_scenarios() -> None:
    there = {path.stem for path in Path(__file__).parent.glob("test_conformance_*.py")}
    assert set(re.findall(r"`(test_conformance_\w+)`", PAGE)) == there - {"test_conformance_storm"}
    assert "`..._storm`" in PAGE
