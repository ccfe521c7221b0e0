"""Agents and tasks in the background at a real terminal: told, watched, looked at, stopped.  Part of `make soak`."""

import re

import pytest

from tests.cli.terminals import Seat, begun, play, prompts
from tests.soak.scale import only_whole

pytestmark = [pytest.mark.slow, pytest.mark.soak, only_whole]

# The agent waits for a person, so that it ends when the test has seen what it wants to see.
AGENT = (
    "- {agent: builder, background: true, description: Build it, result: All is built., "
    "steps: [{tool: Bash, input: {command: make}, result: ok}, {ask: [{question: Go on?}]}, {say: Nearly done.}]}"
)
SHELL = "- {shell: tests, command: pytest -q, output: [one], seconds: 3600}"


def test_an_agent_is_watched_while_it_works_and_a_shell_is_stopped(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        play(program, AGENT, SHELL, "- say: They work.")
        program.see("agent builder has started: Build it")
        program.see("shell tests has started: pytest -q")
        program.see("builder asks:")
        prompts(program, "&2 ? ›")
        program.type("/later\r/agents\r")
        program.see(re.compile(r"builder +agent +running").search)
        program.type("/watch builder\r")
        program.see("watching builder")
        program.see("builder │ ● Bash  make")
        program.type("/answer\r")
        program.type("yes\r")
        program.see("builder │ Nearly done.")
        program.see("the agent goes on by itself: builder has completed")
        prompts(program, "&1 ›")
        program.type("/agents builder\r")
        program.see("All is built.")
        program.type("/stop tests\r")
        program.see("■ shell tests was stopped")
        prompts(program)
        program.type("/stop tests\r")
        program.see("shell tests had ended already")


def test_an_interrupt_stops_the_turn_and_not_what_works_in_the_background(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        play(program, SHELL, "- say: It works.", "- wait: 3600")
        program.see("\nIt works.")
        prompts(program, "&1 … ›")
        program.interrupt()
        program.see("■ stopped")
        prompts(program, "&1 ›")
        program.type("/stop all\r")
        program.see("■ shell tests was stopped")
        prompts(program)
