"""What the tests of `nerve chat` share: a claimed server, and programs at its terminals."""

import re
from contextlib import AbstractContextManager

from attrs import frozen

from tests.live.instance import PROGRAM, Instance
from tools.pty_program import PtyProgram, on_pty

PASSWORD = "correct horse"
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
SLOW_WORDS = [f"word{number}" for number in range(40)]
SLOW = f"#!nerve-scenario\n- say: {' '.join(SLOW_WORDS)}\n  pace: 0.08"
# A turn that nobody waits for: it ends because it is stopped.
ENDLESS_WORDS = [*SLOW_WORDS, *(f"more{number}" for number in range(1000)), "never"]
ENDLESS = f"#!nerve-scenario\n- say: {' '.join(ENDLESS_WORDS)}\n  pace: 0.08"


@frozen
class House:
    """A claimed server with one account, shared by the tests that leave it as it is."""

    instance: Instance
    token: str

    def new_session(self) -> str:
        made = self.instance.http("POST", "/api/sessions", self.token, json={"title": "A place to talk"})
        return str(made.json()["id"])

    def roles(self, session_id: str) -> list[str]:
        rows = self.instance.http("GET", f"/api/sessions/{session_id}/messages", self.token).json()["messages"]
        return [row["role"] for row in rows]


@frozen
class Seat:
    """A terminal of somebody who is signed in, and a session of its own."""

    house: House
    session_id: str

    def chat(self, *words: str, **env: str) -> AbstractContextManager[PtyProgram]:
        return nerve(
            self.house.instance, "chat", "--session", self.session_id, *words, NERVE_TOKEN=self.house.token, **env
        )


def nerve(instance: Instance, *words: str, columns: int = 100, **env: str) -> AbstractContextManager[PtyProgram]:
    return on_pty([*PROGRAM, *words], {**instance.env, **env}, columns=columns, cwd=instance.root)


def say(program: PtyProgram, text: str) -> None:
    program.type(f"{PASTE}{text}{PASTED}\r")


def begun(program: PtyProgram) -> None:
    """The chat waits for keys, and signals are its own."""
    program.see("/help tells")
    prompts(program)


def prompts(program: PtyProgram, prompt: str = "›") -> None:
    """The last row is this prompt, with nothing typed at it; ``›`` alone: no turn runs."""
    program.see(lambda screen: screen.splitlines()[-1:] == [prompt])


def running(program: PtyProgram) -> None:
    """The answer has begun (the message itself holds all of its words in one line)."""
    program.see(lambda screen: re.search(rf"^{SLOW_WORDS[0]} {SLOW_WORDS[1]}", screen, re.MULTILINE) is not None)


def play(program: PtyProgram, *steps: str) -> None:
    say(program, "\n".join(["#!nerve-scenario", *steps]))
