"""What the tests need a real second process for.  It says on stdout how far it is and obeys lines on stdin."""

import os
import resource
import sys
from pathlib import Path

import apsw
import trio

from nerve.errors import NerveError
from nerve.store.connection import connect
from nerve.store.lock import HomeLocked, home_lock
from nerve.store.migrate import open_store
from nerve.store.rows import insert, scalar
from nerve.store.threads import open_database


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def add(db: apsw.Connection, key: str, value: str = "") -> None:
    insert(db, "instance", key=key, value=value)


def hold_write_lock(path: str) -> None:
    db = connect(path)
    db.execute("BEGIN IMMEDIATE")
    say("held")
    sys.stdin.readline()
    db.execute("COMMIT")
    say("released")


def hold_home(home: str) -> None:
    try:
        with home_lock(Path(home)):
            say(f"held {os.getpid()}")
            sys.stdin.readline()
        say("released")
    except HomeLocked as exc:
        say(f"locked by {exc.pid}")


def open_fresh(path: str) -> None:
    say("ready")
    sys.stdin.readline()
    open_store(path).close()
    say("opened")


async def write_until_killed(path: str) -> None:
    """Twenty writers; a key is said once its row is acknowledged."""

    async def write(writer: int) -> None:
        for n in range(100_000):
            await database.write(add, f"{writer}-{n}", "x" * 500)
            say(f"{writer}-{n}")

    async with open_database(path) as database, trio.open_nursery() as nursery:
        for writer in range(20):
            nursery.start_soon(write, writer)


async def fill_the_disk(path: str) -> None:
    """Writes until no file may grow any more, reads meanwhile, then gets its space back."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with open_database(path) as database:
        await database.write(add, "before")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        written = 0
        try:
            while True:
                await database.write(add, f"full-{written}", "x" * 5_000)
                written += 1
        except NerveError as exc:
            say(exc.code.value)
        say(str(written))
        say(str(await database.read(scalar, "SELECT count(*) FROM instance") - 1))
        say(str(await database.read_large(scalar, "SELECT count(*) FROM instance") - 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await database.write(add, "after", "x" * 5_000)
        say(str(await database.read(scalar, "SELECT count(*) FROM instance") - 2))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hold-write-lock", path]:
            hold_write_lock(path)
        case ["hold-home", home]:
            hold_home(home)
        case ["open-fresh", path]:
            open_fresh(path)
        case ["write", path]:
            trio.run(write_until_killed, path)
        case ["fill", path]:
            trio.run(fill_the_disk, path)
