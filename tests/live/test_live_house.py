"""The composition root: what opens, what refuses to, what takes the house down."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
import trio
from trio.testing import MockClock

from nerve.app import _machine_names, _survive, open_house
from nerve.config import ConfigError, Loaded, load
from nerve.effects import Effects
from nerve.identity.service import IdentityUnusable
from nerve.runtime.reception import NewMessage
from nerve.store import starts
from nerve.store.failures import StoreCorrupt
from nerve.store.inline import open_inline
from nerve.store.lock import HomeLocked
from tests.live.instance import Instance, eventually

LOOPBACK = "127.0.0.1"


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    return configured(tmp_path)


def configured(root: Path, **env: str) -> Loaded:
    given = {"NERVE_HOME": str(root / "home"), "NERVE_WORKSPACE": str(root / "workspace"), **env}
    return load(None, given, root)


@contextmanager
def database_of(loaded: Loaded) -> Iterator[apsw.Connection]:
    db = apsw.Connection(str(loaded.config.paths.database))
    try:
        yield db
    finally:
        db.close()


@pytest.mark.slow
@pytest.mark.req("HEALTH-04")
async def test_it_opens_on_empty_directories_with_main_in_it_and_closes_cleanly(loaded: Loaded) -> None:
    async with open_house(loaded, Effects(), LOOPBACK) as house:
        assert house.services.identity.status().login.value == "setup"
        submission = await house.supervisor.reception.submit("main", NewMessage("hello", "web", None))
        assert (await house.supervisor.reception.outcome(submission)).text.startswith(
            "I received your message: “hello”."
        )
        assert house.generation == house.services.generation
    with database_of(loaded) as db:
        assert not starts.last_was_unclean(db)
        assert db.execute("SELECT source, title FROM sessions WHERE id = 'main'").get == ("system", "Main")


@pytest.mark.slow
async def test_a_home_is_served_by_one_house_at_a_time(loaded: Loaded) -> None:
    async with open_house(loaded, Effects(), LOOPBACK):
        with pytest.raises(HomeLocked):
            async with open_house(loaded, Effects(), LOOPBACK):
                raise AssertionError("two at once")
    async with open_house(loaded, Effects(), LOOPBACK):
        pass


@pytest.mark.slow
async def test_a_task_that_falls_in_the_supervisor_takes_the_house_down(loaded: Loaded) -> None:
    async def fall() -> None:
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        async with open_house(loaded, Effects(), LOOPBACK) as house:
            house.supervisor._nursery.start_soon(fall)
            await trio.sleep_forever()
    with database_of(loaded) as db:
        assert starts.last_was_unclean(db)


@pytest.mark.slow
async def test_damage_that_is_found_after_an_unclean_end_takes_the_house_down(
    loaded: Loaded, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house(loaded, Effects(), LOOPBACK):
        pass
    with database_of(loaded) as db:
        db.execute("UPDATE daemon_starts SET ended_at = NULL")
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute(
            "INSERT INTO messages (session_id, role, content, created_at)"
            " VALUES ('ghost', 'user', 'boo', '2026-02-27T02:00:00.000Z')"
        )
    with trio.fail_after(10), pytest.RaisesGroup(StoreCorrupt, flatten_subgroups=True):
        async with open_house(loaded, Effects(), LOOPBACK):
            await trio.sleep_forever()
    assert "row 1 of messages refers to a missing row of sessions" in caplog.text


@pytest.mark.slow
async def test_after_a_clean_end_nothing_is_checked(loaded: Loaded, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nerve")
    for _ in range(2):
        async with open_house(loaded, Effects(), LOOPBACK):
            await trio.sleep(0.1)
    assert "did not end cleanly" not in caplog.text


@pytest.mark.slow
async def test_a_configured_password_counts_as_claimed_and_may_be_served_anywhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    hashed = "$2b$04$" + "." * 21 + "O" + "." * 31
    (home / "config.local.yaml").write_text(f"auth: {{password_hash: '{hashed}'}}\n")
    (home / "config.local.yaml").chmod(0o600)
    async with open_house(configured(tmp_path), Effects(), "0.0.0.0") as house:
        assert house.services.identity.status().login.value == "password"


async def test_external_mode_without_its_secret_is_refused(tmp_path: Path) -> None:
    with pytest.raises((IdentityUnusable, ConfigError)):
        async with open_house(configured(tmp_path, NERVE_AUTH_MODE="external"), Effects(), LOOPBACK):
            raise AssertionError("it opened")


async def test_living_for_a_minute_is_recorded(autojump_clock: MockClock) -> None:
    with open_inline() as database:
        effects = Effects()
        for generation in ("quick", "long", "now"):
            await database.write(starts.begin, generation, effects.now())
            if generation == "long":
                await _survive(database, generation)
        assert trio.current_time() >= starts.QUICK_SECONDS
        deaths = await database.read(starts.quick_deaths, "now")
        assert deaths == []


def test_this_machine_answers_to_its_own_names() -> None:
    names = _machine_names()
    assert all("." not in name or not name.startswith(".") for name in names)


@pytest.mark.slow
def test_a_waiting_chat_is_told_that_the_server_goes_down(instance: Instance) -> None:
    child = instance.foreground()
    token = instance.claim()
    answers: list[tuple[int, str]] = []

    def chat() -> None:
        play = "#!nerve-scenario\n- say: half\n- wait: 60\n"
        answer = instance.http("POST", "/api/chat", token, json={"message": play, "session_id": "main"})
        answers.append((answer.status_code, answer.json()["detail"]))

    waiting = threading.Thread(target=chat)
    waiting.start()
    eventually(lambda: instance.http("GET", "/api/sessions/main/status", token).json()["is_running"])
    child.send_signal(signal.SIGTERM)
    waiting.join(10)
    assert answers == [(502, "Interrupted by restart")]
    assert child.wait(9) == 0
