"""The Host and Origin rules and what a proxy may say, as plain functions and through the door."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.asgi import HttpPolicy
from nerve.asgi.hosts import HostRule, OriginRule, parse_authority, parse_origin
from nerve.asgi.proxies import TrustedProxies
from tests.asgi.stage import open_house
from tests.asgi_client import Refused


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost", "localhost", None),
        ("LOCALHOST:8900", "localhost", 8900),
        ("nerve.example.org.", "nerve.example.org", None),
        ("nerve.example.org.:80", "nerve.example.org", 80),
        ("127.0.0.1:", "127.0.0.1", None),
        ("[::1]:8900", "::1", 8900),
        ("[0:0:0:0:0:0:0:1]", "::1", None),
        ("under_score", "under_score", None),
    ],
)
def test_an_authority_has_one_spelling(text: str, host: str, port: int | None) -> None:
    authority = parse_authority(text)
    assert authority is not None
    assert (authority.host, authority.port) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "a..b", ".a", "a b", "a,b", "user@host", "host:port", "host:99999", "host:1:2", "h/p"),
        *("::1", "[::1", "[1.2.3.4]", "[fe80::1%25eth0]", "h\x00st", "h\u00f6s.t", "a" * 300),
    ],
)
def test_anything_else_is_no_authority(text: str) -> None:
    assert parse_authority(text) is None


@pytest.mark.parametrize(
    ("bind", "host", "status"),
    [
        ("127.0.0.1", "127.0.0.1:8900", 200),
        ("127.0.0.1", "localhost", 200),
        ("127.0.0.1", "LocalHost.:1234", 200),
        ("127.0.0.1", "127.9.9.9", 200),
        ("127.0.0.1", "[::1]:8900", 200),
        ("::1", "[::1]:8900", 200),
        ("localhost", "127.0.0.1", 200),
        ("127.0.0.1", "[::ffff:127.0.0.1]", 200),
        ("127.0.0.1", "extra.example.org", 200),
        ("127.0.0.1", "EXTRA.example.org:443", 200),
        ("127.0.0.1", "10.0.0.7", 421),
        ("127.0.0.1", "0.0.0.0:8900", 421),
        ("127.0.0.1", "box", 421),
        ("127.0.0.1", "evil.example.org", 421),
        ("127.0.0.1", "localhost.evil.example.org", 421),
        ("127.0.0.1", "127.0.0.1.evil.example.org", 421),
        ("127.0.0.1", "2130706433", 421),
        ("127.0.0.1", "127.1", 421),
        ("127.0.0.1", "user@localhost", 421),
        ("127.0.0.1", "localhost, evil.example.org", 421),
        ("127.0.0.1", "localhost:port", 421),
        ("0.0.0.0", "10.0.0.7:8900", 200),
        ("0.0.0.0", "[2001:db8::1]", 200),
        ("0.0.0.0", "Box.LAN", 200),
        ("0.0.0.0", "localhost", 200),
        ("0.0.0.0", "extra.example.org", 200),
        ("0.0.0.0", "evil.example.org", 421),
        ("nerve.lan", "nerve.lan:8900", 200),
        ("nerve.lan", "other.lan", 421),
    ],
)
async def test_only_known_hosts_are_answered(bind: str, host: str, status: int) -> None:
    house = open_house(bind_host=bind, allowed_hosts=("extra.example.org",), machine_names=("box", "box.lan"))
    reply = await house.client.get("/api/things", headers={"host": host})
    assert reply.status == status
    if status == 421:
        assert "gateway.allowed_hosts" in reply.json["detail"]
        assert not house.admission.seen


@pytest.mark.req("HEALTH-01", "GEN-01")
async def test_a_missing_or_second_host_is_misdirected_but_health_answers_for_any() -> None:
    client = open_house().client
    twice = [(b"host", b"evil.example.org")]
    assert (await client.with_(host="").get("/api/things")).status == 421
    assert (await client.get("/api/things", raw_headers=twice)).status == 421
    assert (await client.get("/nowhere", headers={"host": "evil.example.org"})).status == 421
    for reply in (
        await client.with_(host="", token=None).get("/health"),
        await client.get("/health", raw_headers=twice),
        await client.get("/health", headers={"host": "evil.example.org"}),
    ):
        assert reply.status == 200


async def test_a_long_host_is_not_echoed_whole() -> None:
    reply = await open_house().client.get("/api/things", headers={"host": "x" * 5000})
    assert reply.status == 421
    assert len(reply.json["detail"]) < 300


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost:8900/api/things", 200),
        ("HTTP://127.0.0.1/api/things", 200),
        ("http://localhost", 404),
        ("http://evil.example.org/api/things", 421),
        ("http://user:pw@localhost/api/things", 421),
        ("http:///api/things", 421),
        ("ftp://localhost/api/things", 404),
        ("*", 404),
        ("api/things", 404),
    ],
)
async def test_an_absolute_target_speaks_for_the_host(target: str, status: int) -> None:
    assert (await open_house().client.get(target)).status == status


def test_malformed_settings_are_refused_at_once() -> None:
    for policy, entry in (
        (HttpPolicy(allowed_hosts=("a b",)), "a b"),
        (HttpPolicy(bind_host="0.0.0.0", machine_names=("a b",)), "a b"),
        (HttpPolicy(allowed_origins=("null",)), "null"),
        (HttpPolicy(trusted_proxies=("10.0.0.0/99",)), "10.0.0.0/99"),
    ):
        with pytest.raises(ValueError, match=re.escape(entry)):
            open_house(policy=policy)


# --- origins ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://Localhost:8900", ("http", "localhost", 8900)),
        ("https://a.example.org", ("https", "a.example.org", 443)),
        ("http://a.example.org:80", ("http", "a.example.org", 80)),
        ("http://[::1]:5173", ("http", "::1", 5173)),
        ("tauri://localhost", ("tauri", "localhost", None)),
    ],
)
def test_origins_are_compared_by_scheme_host_and_port(text: str, expected: tuple[str, str, int | None]) -> None:
    origin = parse_origin(text)
    assert origin is not None
    assert (origin.scheme, origin.host, origin.port) == expected


@pytest.mark.parametrize("text", ["null", "", "http://", "http://a/b", "http://a, http://b", "//a", "a", "http://u@a"])
def test_anything_else_is_no_origin(text: str) -> None:
    assert parse_origin(text) is None


ORIGINS = [
    (None, True),
    ("http://127.0.0.1:8900", True),
    ("HTTP://127.0.0.1:8900", True),
    ("https://app.example.org", True),
    ("http://localhost:8900", False),  # another host, by decision
    ("https://127.0.0.1:8900", False),
    ("http://127.0.0.1:8901", False),
    ("http://127.0.0.1", False),
    ("http://app.example.org", False),
    ("null", False),
    ("https://evil.example.org", False),
    ("http://127.0.0.1:8900, https://evil.example.org", False),
    ("http://127.0.0.1:8900.evil.example.org", False),
]


@pytest.mark.parametrize(("origin", "passes"), ORIGINS)
async def test_a_write_by_an_ambient_credential_needs_a_good_origin(origin: str | None, passes: bool) -> None:
    house = open_house(allowed_origins=("https://app.example.org",))
    headers = {} if origin is None else {"origin": origin}
    by_cookie = house.client.with_(token=None, headers=(("cookie", "nerve_token=alice"),))
    reply = await by_cookie.post("/api/things", json={"id": "x"}, headers=headers)
    assert reply.status == (200 if passes else 403)
    assert (await by_cookie.get("/api/things", headers=headers)).status == 200
    assert (await house.client.post("/api/things", json={"id": "x"}, headers=headers)).status == 200


@pytest.mark.parametrize(("origin", "passes"), ORIGINS)
@pytest.mark.parametrize("replies", [True, False])
async def test_every_socket_needs_a_good_origin(origin: str | None, passes: bool, replies: bool) -> None:
    house = open_house(allowed_origins=("https://app.example.org",))
    headers = {} if origin is None else {"origin": origin}
    if passes:
        async with house.client.websocket(headers=headers, refusal_replies=replies) as socket:
            await socket.expect_close(1000)
        return
    with pytest.raises(Refused) as refused:
        async with house.client.websocket(headers=headers, refusal_replies=replies):
            pass
    assert (refused.value.reply is not None) == replies
    assert refused.value.reply is None or refused.value.reply.status == 403
    assert not house.admission.seen


async def test_two_origin_headers_are_foreign() -> None:
    client = open_house().client.with_(token=None, headers=(("cookie", "nerve_token=alice"),))
    own = (b"origin", b"http://127.0.0.1:8900")
    assert (await client.delete("/api/things/x", raw_headers=[own])).status == 200
    assert (await client.delete("/api/things/x", raw_headers=[own, own])).status == 403


@given(st.text(max_size=60))
def test_no_text_is_a_host_or_an_origin_by_accident(text: str) -> None:
    authority, origin = parse_authority(text), parse_origin(text)
    rule = HostRule.of("127.0.0.1", (), ())
    if authority is not None and rule.accepts(authority):
        assert authority.host == "localhost" or authority.address is not None
    assert origin is None or not OriginRule.of(()).is_configured(text)


# --- proxies ------------------------------------------------------------------------------------------------------

PROXIES = TrustedProxies.of(["10.0.0.0/8", "::1"])


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "seen"),
    [
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),  # what the client wrote itself does not count
        ("10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "203.0.113.9" + ", 10.0.0.2" * 40, "10.0.0.2"),  # nobody has so many proxies
        ("10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("10.0.0.1", "[2001:db8::9]:4711", "2001:db8::9"),
        ("10.0.0.1", "2001:db8::9", "2001:db8::9"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9, garbage", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("::1", "203.0.113.9", "203.0.113.9"),
        ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("192.0.2.1", "203.0.113.9", "192.0.2.1"),
        ("", "203.0.113.9", ""),
        ("unix", "203.0.113.9", "unix"),
    ],
)
async def test_the_client_is_the_nearest_hop_that_is_not_trusted(peer: str, forwarded_for: str, seen: str) -> None:
    assert PROXIES.seen(peer, "http", {b"x-forwarded-for": forwarded_for.encode()}).peer == seen
    house = open_house(trusted_proxies=("10.0.0.0/8", "::1"))
    await house.client.with_(peer=peer).get("/api/things", headers={"x-forwarded-for": forwarded_for})
    assert house.stage.last[0].peer == seen
    assert house.admission.seen[0].peer == seen


@pytest.mark.parametrize("name", ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded"])
async def test_a_stranger_forwards_nothing(name: str) -> None:
    house = open_house(trusted_proxies=("10.0.0.1",))
    value = {"forwarded": "for=1.2.3.4;host=evil.example.org", "x-forwarded-proto": "https"}.get(name, "1.2.3.4")
    own = {"origin": "http://127.0.0.1:8900", name: value}
    by_cookie = house.client.with_(token=None, headers=(("cookie", "nerve_token=alice"),))
    assert (await by_cookie.delete("/api/things/x", headers=own)).status == 200
    assert house.stage.last[0].peer == "127.0.0.1"


@pytest.mark.parametrize(
    ("forwarded", "origin", "status"),
    [
        ({"x-forwarded-host": "nerve.example.org", "x-forwarded-proto": "https"}, "https://nerve.example.org", 200),
        ({"x-forwarded-host": "nerve.example.org"}, "http://nerve.example.org", 200),
        ({"x-forwarded-host": "nerve.example.org"}, "https://nerve.example.org", 403),
        ({"x-forwarded-proto": "https"}, "https://127.0.0.1:8900", 200),
        ({"x-forwarded-proto": "gopher"}, "http://127.0.0.1:8900", 200),
        ({"x-forwarded-host": "evil.example.org"}, "http://evil.example.org", 421),
        ({"x-forwarded-host": "nerve.example.org, evil.example.org"}, "http://evil.example.org", 421),
        ({"x-forwarded-host": "nerve.example.org", "host": "evil.example.org"}, "http://nerve.example.org", 421),
    ],
)
async def test_a_trusted_proxy_says_what_the_own_origin_is(forwarded: dict[str, str], origin: str, status: int) -> None:
    house = open_house(trusted_proxies=("10.0.0.1",), allowed_hosts=("nerve.example.org",))
    client = house.client.with_(peer="10.0.0.1", token=None, headers=(("cookie", "nerve_token=alice"),))
    assert (await client.delete("/api/things/x", headers={**forwarded, "origin": origin})).status == status
