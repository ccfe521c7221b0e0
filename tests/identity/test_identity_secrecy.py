"""What must never be seen: passwords, hashes, the setup token, the signing secrets, tokens of others."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from attrs import evolve

from nerve.contract.caller import Credentials
from nerve.contract.route import AuthMode
from nerve.identity.bootstrap import Seed
from nerve.store.accounts import all_accounts
from tests.asgi_client import Reply, Request
from tests.identity.identity_house import GATEWAY_SECRET, LOCAL, PASSWORD, SECRET, START, House, Opening, seconds_now

NEW_PASSWORD, WRONG_PASSWORD, TOO_LONG = "battery-staple-new", "wrong-guess-xyzzy", "overlong-" * 9


class Bodies:
    """Keeps every reply, head and body, except the tokens that a reply is there to hand over."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def replied(self, request: Request, reply: Reply) -> None:
        self.seen.append(f"{reply.headers} {reply.text}")

    def of_socket(self, request: Request) -> Any:
        raise AssertionError("no test of identity opens a socket")

    def client_frame(self, text: str) -> None: ...

    def server_frame(self, text: str) -> None: ...


@pytest.mark.req("CLAIM-10", "ACCT-03")
async def test_no_secret_in_any_reply_or_log_line(
    house: House, caplog: pytest.LogCaptureFixture, opening: Opening
) -> None:
    caplog.set_level(logging.DEBUG)
    bodies = Bodies()
    house.client = house.client.with_(observers=(*house.client.observers, bodies))
    setup_token = await house.setup_token()
    assert setup_token is not None
    tokens = await use_everything(house, setup_token)
    hashes = [row.password_hash for row in await house.database.read(all_accounts)]
    await opening(evolve(LOCAL, jwt_secret=None))
    await opening(evolve(LOCAL, password_hash="junk-hash-in-config"))
    assert caplog.records, "logging must be on for this to prove anything"
    logged = "\n".join([caplog.text, *(repr(vars(record)) for record in caplog.records)])
    replied = "\n".join(bodies.seen)
    assert len(bodies.seen) > 15
    never = [setup_token, SECRET.decode(), PASSWORD, NEW_PASSWORD, WRONG_PASSWORD, TOO_LONG, "$2b$", "junk-hash"]
    for secret in [*never, *hashes]:
        assert secret
        assert secret not in replied
        assert secret not in logged
    for token in tokens:
        assert token not in logged


async def use_everything(house: House, setup_token: str) -> list[str]:
    """Each operation well and badly; the tokens that were handed out."""
    path = "/api/setup/claim"
    for body in (
        {"setup_token": setup_token + "x", "username": "alice", "password": PASSWORD},
        {"setup_token": setup_token, "username": "no name", "password": PASSWORD},
        {"setup_token": setup_token, "username": "alice", "password": TOO_LONG},
        {"setup_token": setup_token, "username": "alice", "password": PASSWORD, "passwordless": True},
        {"setup_token": setup_token, "username": "alice", "password": [PASSWORD]},
        {"setup_token": [setup_token], "username": WRONG_PASSWORD, "password": {PASSWORD: PASSWORD}},
    ):
        assert (await house.client.post(path, json=body)).status >= 400
    assert (await house.client.post(path, query={"setup_token": setup_token}, json={})).status == 422
    assert (await house.client.post(path, content=f'{{"{setup_token}"'.encode())).status in (415, 422)
    quiet = house.client.with_(observers=())
    body = {"setup_token": setup_token, "username": "alice", "password": PASSWORD}
    alice = house.client.with_(token=(await quiet.post(path, json=body)).json["token"])
    for word in (WRONG_PASSWORD, TOO_LONG):
        await house.login(word, username="alice")
        await house.login(PASSWORD, username=word)
        await alice.put("/api/accounts/me/password", json={"current_password": word, "new_password": NEW_PASSWORD})
        await alice.put("/api/accounts/me/password", json={"current_password": PASSWORD, "new_password": TOO_LONG})
    await alice.post("/api/accounts", json={"username": "bob", "password": NEW_PASSWORD})
    await alice.post("/api/accounts", json={"username": "bob", "password": NEW_PASSWORD})
    await alice.put("/api/accounts/me/password", json={"current_password": PASSWORD, "new_password": NEW_PASSWORD})
    for reading in ("/api/accounts", "/api/accounts/me", "/api/auth/me", "/api/auth/status", "/api/actors"):
        await alice.get(reading)
        await alice.get(reading, query={"token": WRONG_PASSWORD})
    bob = (await quiet.post("/api/auth/login", json={"username": "bob", "password": NEW_PASSWORD})).json["token"]
    await house.client.get("/api/auth/check", query={"token": bob})
    return [alice.token or "", bob]


@pytest.mark.req("CLAIM-10")
async def test_a_failing_write_tells_neither_client_nor_log(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """The traceback goes to the log; what was being written does not."""
    setup_token = await house.setup_token()
    trigger = "CREATE TRIGGER broken BEFORE UPDATE ON accounts BEGIN SELECT raise(ABORT, 'broken'); END"
    await house.database.write(lambda db: db.execute(trigger))
    reply = await house.claim()
    house.undeclared.clear()
    assert (reply.status, reply.json) == (500, {"detail": "Internal server error"})
    assert "broken" in caplog.text
    for secret in (str(setup_token), PASSWORD, "$2b$"):
        assert secret not in caplog.text


async def test_nothing_shows_its_secrets_by_accident(house: House) -> None:
    """What ends up in a traceback with locals, or in a debugging print."""
    await house.alice()
    directory = house.identity._registry.directory
    row = (await house.database.read(all_accounts))[0]
    shown = [
        repr(evolve(LOCAL, mode=AuthMode.EXTERNAL, password_hash="hash", external_secret=GATEWAY_SECRET)),
        repr(Seed("h", "a", "b", "the-token", START)),
        repr(Credentials(bearer="t1", cookie="t2", query="t3", actor_context="t4")),
        repr(directory),
        repr(row),
    ]
    for secret in (SECRET.decode(), GATEWAY_SECRET.decode(), "hash'", "the-token", "t1", "t2", "t3", "t4", "$2b$"):
        assert all(secret not in text for text in shown), secret


@pytest.mark.req("AUTH-42")
@pytest.mark.parametrize(
    "ask",
    [
        lambda house: house.client.with_(token="junk").get("/api/auth/check"),
        lambda house: house.with_token(typ="session", sub="acc_x", iat=seconds_now(), exp=0).get("/api/auth/check"),
        lambda house: house.client.get("/api/auth/check"),
    ],
)
async def test_every_401_says_the_same(house: House, ask: Callable[[House], Awaitable[Reply]]) -> None:
    await house.claim()
    reply = await ask(house)
    assert (reply.status, reply.json) == (401, {"detail": "Not authenticated"})
