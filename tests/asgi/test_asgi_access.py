"""The access log: one line each, and nothing in it that opens a door or forges a line."""

import logging
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.asgi.stage import open_house
from tests.asgi_client import Refused

LINE = re.compile(r"[!-~]+ [!-~]* \d{3,4} \d+\.\dms \d+B [A-Za-z0-9._-]{1,64} [!-~]+ [!-~]+")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "nerve.access")
    return caplog


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.name == "nerve.access"]


async def test_one_line_for_each_request(log: pytest.LogCaptureFixture) -> None:
    ticks = iter([10.0, 10.0125, 20.0, 20.5])
    house = open_house(clock=lambda: next(ticks))
    await house.client.with_(peer="203.0.113.5").get("/api/things?word=private")
    await house.client.get("/api/nowhere", headers={"x-request-id": "mine"})
    assert lines(log) == [
        "GET /api/things 200 12.5ms 25B req_1 203.0.113.5 act_alice",
        "GET /api/nowhere 404 500.0ms 22B mine 127.0.0.1 -",
    ]


async def test_a_socket_is_logged_with_its_close_code(log: pytest.LogCaptureFixture) -> None:
    house = open_house()
    async with house.client.websocket() as socket:
        await socket.expect_close(1000)
    async with house.client.with_(token="nobody").websocket() as socket:
        await socket.expect_close(4001)
    with pytest.raises(Refused):
        async with house.client.websocket("/elsewhere"):
            pass
    assert [line.split()[:3] + line.split()[-1:] for line in lines(log)] == [
        ["WEBSOCKET", "/ws", "1000", "act_alice"],
        ["WEBSOCKET", "/ws", "4001", "-"],
        ["WEBSOCKET", "/elsewhere", "404", "-"],
    ]


@pytest.mark.parametrize("token", ["s3cr3t-token", "alice"])
async def test_no_credential_is_ever_logged(token: str, log: pytest.LogCaptureFixture) -> None:
    log.set_level(logging.DEBUG)
    house = open_house()
    nobody = house.client.with_(token=None)
    for path in ("/api/things", "/api/nowhere", "/api/things?limit=x"):
        await nobody.get(path, headers={"authorization": f"Bearer {token}", "cookie": f"nerve_token={token}"})
        await nobody.get(path + ("&" if "?" in path else "?") + f"token={token}")
        await nobody.get(path, headers={"x-nerve-actor-context": token, "x-request-id": f"<{token}>"})
    await nobody.get(f"http://user:{token}@localhost/api/things")
    async with nobody.websocket(query={"token": token}) as socket:
        await socket.expect_close()
    assert len(lines(log)) == 11
    assert token not in log.text.replace("act_alice", "")
    assert token not in repr(house.admission.seen)


async def test_a_line_has_a_bounded_length(log: pytest.LogCaptureFixture) -> None:
    await open_house().client.get("/" + "x" * 10_000)
    (line,) = lines(log)
    assert len(line) < 700


async def test_a_line_cannot_be_forged(log: pytest.LogCaptureFixture) -> None:
    house = open_house()
    await house.client.with_(peer="x y\nz").request("GE T\r\n", "/api/nowhere")
    (line,) = lines(log)
    assert line.startswith(r"GE\x20T\x0d\x0a /api/nowhere 404 ")
    assert r" x\x20y\x0az " in line


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(path=st.binary(max_size=600), query=st.binary(max_size=60), name=st.binary(max_size=12), value=st.binary())
@pytest.mark.req("GEN-05", "GEN-06")
def test_junk_is_answered_and_logged_in_one_plain_line(
    log: pytest.LogCaptureFixture, path: bytes, query: bytes, name: bytes, value: bytes
) -> None:
    import trio

    async def run() -> None:
        house = open_house()
        log.clear()
        reply = await raw_get(house.client.app, path, query, [(b"host", b"localhost"), (name.lower(), value)])
        assert 200 <= reply < 500
        assert house.undeclared == []
        (line,) = lines(log)
        assert LINE.fullmatch(line), line

    trio.run(run)


async def raw_get(app: object, path: bytes, query: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    """The status for a request whose bytes no HTTP library would let through."""
    from tests.asgi_http import HttpExchange
    from tests.asgi_wire import Request

    request = Request("GET", "raw", query, tuple(headers))
    exchange = HttpExchange(request, (), 5)
    exchange.feed(b"", more=False)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": path.decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "client": None,
    }
    async with exchange.served_by(app, scope):  # type: ignore[arg-type]
        return (await exchange.reply()).status
