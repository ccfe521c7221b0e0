"""What a real agent's turn asks, answered at a real terminal and from a second client."""

import pytest

from nerve.client.plain import open_client
from nerve.contract.generated.frames_server import InteractionFrame
from tests.cli.terminals import Seat, begun, play, prompts
from tests.soak.scale import only_whole

pytestmark = pytest.mark.slow

ASK = "- ask: [{question: Which colour?, header: colour, options: [{label: Red}, {label: Blue}]}]"


@pytest.mark.req("WS-21")
def test_a_question_is_answered_at_the_terminal(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        play(program, ASK, '- say: "It says: ${result}"')
        program.see("  2  Blue")
        prompts(program, "? ›")
        program.type("2\r")
        program.see("✓ Blue")
        prompts(program)
        assert "Blue" in program.screen.split("It says:")[-1]


@pytest.mark.soak
@only_whole
def test_a_question_that_a_second_client_answers_is_withdrawn(seat: Seat) -> None:
    house = seat.house
    with seat.chat() as program, open_client(house.instance.address, house.token) as client:
        begun(program)
        with client.follow(seat.session_id) as live:
            play(program, ASK, "- say: Thank you.")
            prompts(program, "? ›")
            asked = next(event for event in live if isinstance(event, InteractionFrame))
            live.answer(asked.interaction_id, {"answers": {"Which colour?": "Red"}})
            program.see("answered elsewhere")
            program.see("\nThank you.")


@pytest.mark.req("WS-22", "WS-24")
@pytest.mark.soak
@only_whole
def test_a_plan_is_sent_back_revised_and_approved_as_edited(seat: Seat) -> None:
    editor = seat.house.instance.root / "editor"
    editor.write_text('#!/bin/sh\nread -r line < /dev/tty\necho "$line" >> "$1"\n')
    editor.chmod(0o700)
    revise = '- {plan: "# First plan", revise: [{say: "I see.\\n"}, {plan: "# Second plan"}]}'
    with seat.chat(EDITOR=str(editor)) as program:
        begun(program)
        play(program, revise, '- say: "It says: ${result}"')
        program.see("# First plan\n\n? Is this plan good?")
        program.type("Count twice.\r")
        program.see("# Second plan\n\n? Is this plan good?")
        program.type("2\r")
        program.see(lambda _: program.echoes())
        program.type("and a third step\r")
        program.see("✓ approved, as you have edited it")
        prompts(program)
        assert "and a third step" in program.screen.split("It says:")[-1]
        assert not program.echoes()


@pytest.mark.soak
@only_whole
def test_a_form_is_filled_in_and_corrected_on_the_way(seat: Seat) -> None:
    form = (
        "- form: {title: About you, questions: ["
        "{id: name, label: Name, kind: text, question: What are you called?, required: true}, "
        "{id: tools, label: Tools, kind: multi, question: Which do you use?, options: [{label: ruff}, {label: mypy}]}]}"
    )
    with seat.chat() as program:
        begun(program)
        play(program, form, '- say: "It says: ${form.name} with ${form.tools}."')
        program.see("About you\n\n? [Name, 1 of 2] What are you called?")
        program.type("\r")
        program.see("✗ this one has to be answered")
        program.type("Adah\r")
        program.see("[Tools, 2 of 2] Which do you use?")
        program.type("/back\r")
        program.see(lambda screen: screen.count("What are you called?") == 2)
        program.type("Ada\r")
        program.see("✓ Ada\n")
        program.type("1, 2\r")
        prompts(program)
        assert program.screen.split("It says:")[-1].startswith(" Ada with ")
        assert "ruff" in program.screen.split("It says:")[-1]
        assert "mypy" in program.screen.split("It says:")[-1]


@pytest.mark.soak
@only_whole
def test_one_approval_is_denied_with_words_and_the_next_allowed(seat: Seat) -> None:
    first, second = (f"- {{approve: command, input: {{command: {command}}}}}" for command in ("rm -r build", "ls"))
    with seat.chat() as program:
        begun(program)
        play(program, first, '- say: "It says: ${result}\\n"', second, "- say: Listed.")
        program.see("command: rm -r build\n\n? May the agent run this command?")
        program.type("Not before lunch.\r")
        program.see("command: ls\n\n? May the agent run this command?")
        assert "Not before lunch." in program.screen.split("It says:")[-1]
        program.type("1\r")
        program.see("✓ allowed")
        program.see("\nListed.")
        prompts(program)


@pytest.mark.soak
@only_whole
def test_an_interrupt_stops_the_turn_that_asks(seat: Seat) -> None:
    with seat.chat() as program:
        begun(program)
        play(program, "- {approve: command, input: {command: make}}", "- say: never")
        prompts(program, "? ›")
        program.interrupt()
        program.see("■ stopped")
        prompts(program)
