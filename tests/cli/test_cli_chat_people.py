"""Who is asked for what, and how often, against a server that is only its answers."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from attrs import define, field

from nerve.cli.chat_signin import ATTEMPTS, Given, sign_in
from nerve.cli.invocation import Failed
from nerve.client import ApiError, open_client
from nerve.contract.codec import encode_plain, parse_json
from nerve.contract.generated.errors import ErrorCode
from nerve.errors import NerveError, error_body

Answer = Callable[[dict[str, Any]], Any]


@define
class Person:
    """Answers from a list; ``asked`` is what was asked."""

    answers: list[Any]
    asked: list[str] = field(factory=list)
    told: list[str] = field(factory=list)

    def yes(self, question: str) -> bool:
        return bool(self._answer(question))

    def text(self, label: str, default: str | None = None) -> str:
        answer = self._answer(label)
        return str(default if answer == "" else answer)

    def secret(self, label: str, *, twice: bool = False) -> str:
        return str(self._answer(label))

    def tell(self, text: str) -> None:
        self.told.append(text)

    def _answer(self, question: str) -> Any:
        self.asked.append(question.split(" ")[0])
        return self.answers.pop(0)


@define
class Door:
    """A server's sign-in: how it is signed in to, and what it says to each try."""

    login: str
    tries: list[ErrorCode | None]
    mode: str = "local"
    bodies: list[dict[str, Any]] = field(factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/auth/status":
            status = {"mode": self.mode, "auth_required": self.login != "none", "login": self.login}
            return httpx.Response(200, content=encode_plain(status))
        if request.content:
            self.bodies.append(parse_json(request.content))
        code = self.tries.pop(0)
        if code is not None:
            answer = error_body(NerveError(code))
            return httpx.Response(answer.status, content=encode_plain(answer.body))
        token = {"authenticated": True} if request.url.path == "/api/auth/check" else {"token": "fresh"}
        return httpx.Response(200, content=encode_plain(token))


async def enter(door: Door, person: Person | None, given: Given | None = None, own: str | None = None) -> str | None:
    async with open_client("http://house", transport=httpx.MockTransport(door)) as client:
        await sign_in(client, given or Given(), person, lambda: own)
        return client.token


async def test_a_passwordless_house_asks_for_nothing() -> None:
    door = Door("none", [None])
    assert await enter(door, None) == "fresh"
    assert door.bodies == [{"password": "", "username": None}]


@pytest.mark.parametrize(
    ("login", "asked"), [("password", ["Password"]), ("username_password", ["Username", "Password"])]
)
async def test_only_what_is_needed_is_asked_for(login: str, asked: list[str]) -> None:
    person = Person(["ada", "pw"][-len(asked) :])
    assert await enter(Door(login, [None]), person) == "fresh"
    assert person.asked == asked


async def test_a_wrong_password_is_asked_for_again_a_few_times() -> None:
    person = Person(["a", "b", "c"])
    with pytest.raises(Failed, match="Invalid username or password"):
        await enter(Door("password", [ErrorCode.BAD_CREDENTIALS] * 9), person)
    assert len(person.asked) == ATTEMPTS
    assert await enter(Door("password", [ErrorCode.BAD_CREDENTIALS, None]), Person(["a", "b"])) == "fresh"


async def test_what_a_better_password_does_not_help_is_told_at_once() -> None:
    person = Person(["a", "b", "c"])
    with pytest.raises(Failed, match="Too many passwords"):
        await enter(Door("password", [ErrorCode.LOGIN_BUSY] * 9), person)
    assert len(person.asked) == 1


async def test_a_password_of_the_environment_is_tried_once() -> None:
    with pytest.raises(Failed):
        await enter(Door("password", [ErrorCode.BAD_CREDENTIALS] * 9), Person([]), Given(password="x"))
    door = Door("username_password", [None])
    await enter(door, None, Given(username="ada", password="x"))
    assert door.bodies == [{"password": "x", "username": "ada"}]


@pytest.mark.parametrize(
    ("login", "given", "need"),
    [
        ("password", Given(), "NERVE_PASSWORD"),
        ("username_password", Given(password="x"), "NERVE_USERNAME"),
        ("setup", Given(password="x"), "nerve status"),
    ],
)
async def test_where_nobody_can_be_asked_it_says_what_to_set(login: str, given: Given, need: str) -> None:
    with pytest.raises(Failed, match=need):
        await enter(Door(login, []), None, given)


async def test_a_token_is_used_as_it_is_or_not_at_all() -> None:
    assert await enter(Door("setup", [None]), None, Given(token="mine")) == "mine"
    with pytest.raises(Failed, match="NERVE_TOKEN"):
        await enter(Door("none", [ErrorCode.UNAUTHENTICATED]), Person([]), Given(token="old"))
    with pytest.raises(ApiError):
        await enter(Door("none", [ErrorCode.IDENTITY_NOT_READY]), None, Given(token="mine"))


async def test_where_a_gateway_signs_people_in_there_is_nothing_to_ask() -> None:
    with pytest.raises(Failed, match="gateway"):
        await enter(Door("username_password", [], mode="external"), Person([]))


async def test_the_own_house_is_claimed_without_its_token_being_typed() -> None:
    door, person = Door("setup", [None]), Person([True, "", "secret"])
    assert await enter(door, person, own="setup-token") == "fresh"
    assert person.asked == ["Nobody", "Your", "A"]
    assert door.bodies[0]["setup_token"] == "setup-token"
    assert (door.bodies[0]["username"], door.bodies[0]["password"]) == ("owner", "secret")


async def test_what_the_claim_refuses_is_asked_for_again() -> None:
    tries = [ErrorCode.WRONG_SETUP_TOKEN, ErrorCode.BAD_USERNAME, None]
    person = Person([True, "bad", "ada", "pw", "token", "not a name", "pw", "token", "ada", "pw"])
    assert await enter(Door("setup", tries), person) == "fresh"
    assert len(person.told) == 3
    with pytest.raises(Failed, match="complete already"):
        await enter(Door("setup", [ErrorCode.SETUP_COMPLETE]), Person([True, "token", "ada", "pw"]))


async def test_who_does_not_want_it_does_not_get_it() -> None:
    with pytest.raises(Failed, match="unclaimed"):
        await enter(Door("setup", []), Person([False]), own="setup-token")


def test_the_environment_says_who_is_here() -> None:
    assert Given.from_environment({"NERVE_TOKEN": "", "NERVE_USERNAME": "ada"}) == Given(username="ada")
    assert "secret" not in repr(Given.from_environment({"NERVE_TOKEN": "secret", "NERVE_PASSWORD": "secret"}))
