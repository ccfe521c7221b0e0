"""Records `nerve chat` at work: a real daemon, a real terminal, a stop, a cut line, a question, an agent.

    python -m tools.record_chat

Writes docs/chat.txt (what the terminal showed), docs/chat.svg (the same in colour) and docs/chat.cast (the bytes as
they came, for asciinema).  Plays of the scripted runtime stand for a model; everything else is as in daily use.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from itertools import groupby
from pathlib import Path

from attrs import define, field

from nerve.client.plain import open_client
from tools.line import Line, line_to
from tools.pty_program import PtyProgram, on_pty
from tools.terminal import Cell, Terminal

DOCS = Path(__file__).resolve().parent.parent / "docs"
NERVE = [sys.executable, "-m", "nerve"]
COLUMNS, HEIGHT = 84, 30
KEY_SECONDS = 0.04

SCENARIOS = {
    "1-tests.yaml": r"""
match: tests pass
steps:
  - think: Better to run them than to guess.
    pace: 0.05
  - say: "I run them. "
    pace: 0.06
  - tool: Bash
    input: {command: pytest -q}
    output: ["....F...............\n", "FAILED test_clock.py::test_midnight\n", "1 failed, 211 passed in 1.80s\n"]
    result: ""
    is_error: true
    seconds: 1.5
  - say: "One does not: midnight is counted twice. "
    pace: 0.06
  - write: clock.py
    content: "def hour(seconds):\n    return seconds // 3600 % 24\n"
  - tool: Bash
    input: {command: pytest -q}
    output: ["....................\n", "212 passed in 1.74s\n"]
    result: 212 passed
    seconds: 1
  - say: Now they all do.
    pace: 0.06
  - usage: {input_tokens: 5120, output_tokens: 240, cost_usd: 0.02, max_context_tokens: 200000}
""",
    "2-long.yaml": """
match: history of clocks
steps:
  - say: >-
      The first clocks were shadows and water. A shadow tells the hour as long as the sun shines, water as long as
      somebody fills the basin; both were read by people who had to stand beside them, and none of them
      counted midnight at all, because nobody was awake to read them, and so on, and so on, and so on.
    pace: 0.08
""",
    "3-story.yaml": """
match: story
steps:
  - say: >-
      Once upon a time a message was on its way to a terminal when somebody pulled the plug. Nothing of it was lost:
      the server had written down every word before it said it, each with its number, and the client came back, said
      the last number that it had, and was told the rest.
    pace: 0.11
""",
    "4-after.yaml": """
match: thank
steps:
  - say: You are welcome. One thing remains.
    pace: 0.05
  - ask:
      - question: When shall the bells ring at night?
        header: Bells
        options:
          - {label: Never, description: people sleep}
          - {label: At midnight, description: once is enough}
          - {label: Every hour}
  - say: Then that is how it will be.
    pace: 0.05
""",
    "5-behind.yaml": """
match: background
steps:
  - agent: striker
    description: Count the strikes
    background: true
    steps:
      - {tool: Bash, input: {command: grep -c strike clock.log}, result: "156", seconds: 1.5}
      - {say: Twelve hours make seventy-eight strikes., pace: 0.05}
      - {wait: 4}
    result: 78 strikes in twelve hours.
  - {shell: tests, command: pytest --looponfail, output: ["212 passed\\n"], seconds: 3600}
  - say: Both are at work.
    pace: 0.05
on_settled:
  - say: The strikes are counted, seventy-eight in twelve hours.
    pace: 0.05
""",
}


@define(eq=False)
class Recording:
    """Remarks stand beside the row that the cursor was in when they were made."""

    program: PtyProgram
    remarks: dict[int, str] = field(factory=dict)
    _began: float = field(factory=time.monotonic)
    _cast: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.program.on_output = self._take

    def _take(self, at: float, data: bytes) -> None:
        self._cast.append(json.dumps([round(at - self._began, 3), "o", data.decode("utf-8", "replace")]))

    def type(self, text: str) -> None:
        for character in text:
            self.program.type(character)
            self.program.watch(KEY_SECONDS)
        self.program.watch(0.3)
        self.program.type("\r")

    def remark(self, text: str) -> None:
        self.remarks[max(0, self.program.terminal.row - 1)] = text

    @property
    def cast(self) -> str:
        head = json.dumps({"version": 2, "width": COLUMNS, "height": HEIGHT, "title": "nerve chat"})
        return "\n".join([head, *self._cast]) + "\n"


def perform(program: PtyProgram, line: Line) -> Recording:
    recording = Recording(program)
    program.see("/help tells")
    program.watch(1)
    recording.type("Do the tests pass?")
    program.see("of the context")
    program.watch(1)
    recording.type("Tell me the history of clocks, please.")
    program.see("water as")
    recording.remark("<- ^C is pressed")
    program.interrupt()
    program.see("stopped")
    program.watch(1)
    recording.type("Then a story.")
    program.see("terminal when")
    recording.remark("<- the connection is cut")
    line.cut(and_keep_down=True)
    program.see("connecting again")
    program.watch(0.6)
    line.mend()
    program.see("connected again")
    recording.type("I thank you.")
    program.see("waits: I thank you.")
    program.see("Every hour")
    program.watch(1)
    recording.type("2")
    program.see("how it will be.")
    program.watch(1)
    recording.type("Count the strikes in the background.")
    program.see("Both are at work.")
    program.see("shell tests has started")
    recording.type("/watch striker")
    program.see("seventy-eight in twelve hours.")
    program.watch(1)
    recording.type("/stop tests")
    program.see("shell tests was stopped")
    program.watch(1)
    recording.type("/quit")
    program.ended()
    return recording


@contextmanager
def daemon(root: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """A claimed Nerve of its own: its address, a token, and the environment of its commands."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "NERVE_HOME": str(root / "home"),
        "NERVE_WORKSPACE": str(root / "work"),
    }
    (root / "home").mkdir(mode=0o700)
    (root / "home" / "config.yaml").write_text("agent: {backend: scripted}\n")
    (root / "work" / "scenarios").mkdir(parents=True)
    for name, text in SCENARIOS.items():
        (root / "work" / "scenarios" / name).write_text(text)
    subprocess.run([*NERVE, "start", "--port", "0"], env=env, check=True, stdout=subprocess.DEVNULL)
    try:
        shown = subprocess.run([*NERVE, "status", "--json"], env=env, check=True, capture_output=True, text=True)
        status = json.loads(shown.stdout)
        with open_client(status["address"]) as client:
            client.claim(status["setup_token"], "ada", "an example", display_name="Ada")
            assert client.token is not None
            yield status["address"], client.token, env
    finally:
        subprocess.run([*NERVE, "stop"], env=env, check=True, stdout=subprocess.DEVNULL)


# --- what is written ----------------------------------------------------------------------------------------------


def as_text(terminal: Terminal, remarks: dict[int, str]) -> str:
    lines = ["$ nerve chat"]
    for number, row in enumerate(terminal.text().split("\n")):
        lines.append(f"{row:<{COLUMNS}}{remarks[number]}" if number in remarks else row)
    return "\n".join(lines) + "\n"


CHARACTER, ROW, MARGIN = 8.4, 18, 16
COLOURS = {"31": "#f7768e", "32": "#9ece6a", "36": "#7dcfff"}


def as_svg(terminal: Terminal, remarks: dict[int, str]) -> str:
    rows: list[list[Cell]] = [[Cell(character) for character in "$ nerve chat"], *terminal.rows]
    while rows and not any(cell.character.strip() for cell in rows[-1]):
        rows.pop()
    wide = round((COLUMNS + 26) * CHARACTER + 2 * MARGIN)
    high = len(rows) * ROW + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">',
        "<title>nerve chat: a turn with tools, a stop, a line that is cut, a question, an agent</title>",
        f'<rect width="{wide}" height="{high}" rx="8" fill="#16161e"/>',
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="#c0caf5"'
        ' style="white-space: pre">',
    ]
    for number, row in enumerate(rows):
        top = MARGIN + (number + 1) * ROW - 4
        for column, text, style in _runs(row):
            left = MARGIN + column * CHARACTER
            lines.append(f'<text x="{left:.1f}" y="{top}"{_attributes(style)}>{escape(text)}</text>')
        if (remark := remarks.get(number - 1)) is not None:
            left = MARGIN + COLUMNS * CHARACTER
            lines.append(f'<text x="{left:.1f}" y="{top}" fill="#e0af68" font-style="italic">{escape(remark)}</text>')
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def _runs(row: list[Cell]) -> Iterator[tuple[int, str, str]]:
    """Neighbouring cells of one style: where they begin, and their text."""
    begin = 0
    for style, cells in groupby(row, key=lambda cell: cell.style):
        text = "".join(cell.character or "\0" for cell in cells)
        if text.strip():
            yield begin + len(text) - len(text.lstrip()), text.strip().replace("\0", ""), style
        begin += len(text)


def _attributes(style: str) -> str:
    codes = style.split(";") if style else []
    found = [f' fill="{COLOURS[code]}"' for code in codes if code in COLOURS]
    found += [' opacity="0.6"'] * ("2" in codes) + [' font-weight="bold"'] * ("1" in codes)
    return "".join(found + [' font-style="italic"'] * ("3" in codes))


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        with daemon(root) as (address, token, env), line_to(address) as line:
            words = [*NERVE, "chat", "--url", line.address]
            with on_pty(words, {**env, "NERVE_TOKEN": token}, columns=COLUMNS, height=HEIGHT) as program:
                recording = perform(program, line)
    DOCS.mkdir(exist_ok=True)
    terminal, remarks = recording.program.terminal, recording.remarks
    # The files of the play lie in a directory that is gone; the name of it tells nobody anything.
    shown = (str(root / "work"), "~/nerve-workspace")
    (DOCS / "chat.txt").write_text(as_text(terminal, remarks).replace(*shown), encoding="utf-8")
    (DOCS / "chat.svg").write_text(as_svg(terminal, remarks).replace(*shown), encoding="utf-8")
    (DOCS / "chat.cast").write_text(recording.cast.replace(*shown), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
