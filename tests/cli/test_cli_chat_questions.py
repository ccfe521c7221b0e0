"""What an agent asks, as text; and what a line says to it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.cli.chat_asking import Approval, Asking, Edit, Next, Outcome, Plan, Questions, Reply, asking_of, refusal
from nerve.cli.chat_questions import MAX_CHARACTERS, Wrong, read, shown
from nerve.cli.chat_text import Symbols
from nerve.contract.generated.entities import FormOption, FormQuestion, FormQuestionKind
from nerve.contract.generated.frames_server import InteractionFrame
from tests.client.frames import COLOURS, asked

KINDS = {kind.value: kind for kind in FormQuestionKind}


def question(kind: str, *labels: str, **changed: Any) -> FormQuestion:
    given = {
        "id": "q",
        "kind": KINDS[kind],
        "label": "Label",
        "question": "Which?",
        "help": "",
        "placeholder": "",
        "required": True,
        "options": [FormOption(label=label, description="") for label in labels],
        "allow_other": False,
        "default": None,
    }
    return FormQuestion(**{**given, **changed})


TOOLS = ("pytest", "ruff", "mypy")


@pytest.mark.parametrize(
    ("asks", "line", "value"),
    [
        (question("choice", *TOOLS), "2", "ruff"),
        (question("choice", *TOOLS), " RUFF ", "ruff"),
        (question("choice", *TOOLS, allow_other=True), "something of my own, really", "something of my own, really"),
        (question("choice", "2", "3", "4"), "2", "2"),
        (question("choice", "2", "3", "4"), "b", "3"),
        (question("choice", *TOOLS, default="mypy"), "", "mypy"),
        (question("choice", *TOOLS, required=False), "  ", None),
        (question("multi", *TOOLS), "1,3", ["pytest", "mypy"]),
        (question("multi", *TOOLS), "3 1", ["mypy", "pytest"]),
        (question("multi", *TOOLS), "1, 1, Pytest", ["pytest"]),
        (question("multi", *TOOLS, allow_other=True), "1, black and isort", ["pytest", "black and isort"]),
        (question("multi", "a, b", "c"), "a, b", ["a, b"]),
        (question("multi", *TOOLS, default=["ruff"]), "", ["ruff"]),
        (question("text"), " free words, of two\nrows ", "free words, of two\nrows"),
        (question("list"), "one, two,, one", ["one", "two"]),
        (question("list"), "one, and more\ntwo\n", ["one, and more", "two"]),
        (question("repos"), "ada/clock bob/bell-tower,ada/x.y", ["ada/clock", "bob/bell-tower", "ada/x.y"]),
        (question("url"), "https://example.org/a?b=c", "https://example.org/a?b=c"),
        (question("list", required=False, default=[]), "", None),
    ],
)
def test_a_line_is_read_as_the_question_wants_it(asks: FormQuestion, line: str, value: Any) -> None:
    assert read(asks, line) == value


@pytest.mark.parametrize(
    ("asks", "line"),
    [
        (question("choice", *TOOLS), "4"),
        (question("choice", *TOOLS, allow_other=True), "4"),
        (question("choice", *TOOLS), "black"),
        (question("choice", *TOOLS), ""),
        (question("multi", *TOOLS), "1, black"),
        (question("text"), " "),
        (question("text"), "x" * (MAX_CHARACTERS + 1)),
        (question("repos"), "ada"),
        (question("repos"), "ada/clock, ada/"),
        (question("url"), "ftp://example.org"),
        (question("url"), "http://"),
        (question("url"), "https://a b"),
        (question("url"), "https://[::1"),
    ],
)
def test_what_a_server_would_leave_out_is_a_mistake(asks: FormQuestion, line: str) -> None:
    assert isinstance(read(asks, line), Wrong)


@given(st.sampled_from(sorted(KINDS)), st.booleans(), st.text(max_size=60))
def test_every_line_is_an_answer_or_a_mistake(kind: str, required: bool, line: str) -> None:
    labels = TOOLS if kind in ("choice", "multi") else ()
    value = read(question(kind, *labels, required=required), line)
    if isinstance(value, list):
        assert value
        assert all(item and item == item.strip() for item in value)
        assert len(set(value)) == len(value)
    elif isinstance(value, str):
        assert value == value.strip() != ""
    else:
        assert isinstance(value, Wrong) or not required


def test_a_question_is_shown_with_its_options_and_what_may_be_typed() -> None:
    options = [FormOption(label="Red", description="Warm\x1b[2J"), FormOption(label="Blue", description="")]
    asks = question("choice", options=options, help="For the roof.", allow_other=True, default="Blue")
    assert shown(asks, Symbols()) == (
        "Which?\nFor the roof.\n  1  Red  Warm\n  2  Blue\n(a number or your own words; Enter: Blue)"
    )
    assert "a  2\n  b  3" in shown(question("choice", "2", "3"), Symbols())
    assert shown(question("text", placeholder="a name", required=False), Symbols()).endswith(
        "(a name; Enter leaves it out)"
    )


# --- dialogues ----------------------------------------------------------------------------------------------------


def of(kind: str, **given: Any) -> Asking:
    frame = asked(2, kind=kind, tool_input=given)
    assert isinstance(frame, InteractionFrame)
    found = asking_of(frame)
    assert found is not None
    return found


def says(dialogue: Asking, *lines: str) -> Outcome:
    outcomes = [dialogue.take(line) for line in lines]
    assert all(isinstance(outcome, Next) for outcome in outcomes[:-1]), outcomes
    return outcomes[-1]


def form(**changed: Any) -> dict[str, Any]:
    plain = {"help": "", "placeholder": "", "required": True, "options": [], "allow_other": False, "default": None}
    rows: list[dict[str, Any]] = [
        {"id": "name", "kind": "text", "label": "Name", "question": "Who are you?"},
        {"id": "city", "kind": "text", "label": "City", "question": "Where?", "required": False},
        {"id": "tools", "kind": "list", "label": "Tools", "question": "Which tools?", "default": ["ruff"]},
    ]
    return {"title": "About you", "intro": "A few *words*.", "questions": [{**plain, **row} for row in rows], **changed}


def test_a_question_of_a_runtime_is_answered_by_its_words() -> None:
    asks = of("question", questions=[COLOURS])
    assert asks.text(Symbols()).startswith("[colour] Which colour?\n  1  Red  Warm\n  2  Blue  Cool\n")
    assert says(asks, "2") == Reply("Blue", {"answers": {"Which colour?": "Blue"}})
    own = of("question", questions=[COLOURS])
    assert says(own, "green") == Reply("green", {"answers": {"Which colour?": "green"}})


def test_several_choices_are_a_list_and_two_questions_alike_go_by_their_headers() -> None:
    several = {**COLOURS, "multiSelect": True}
    asks = of("question", questions=[COLOURS, {**several, "header": "and more"}, {"question": "Why?"}])
    outcome = says(asks, "1", "1, 2, green", "because")
    assert isinstance(outcome, Reply)
    assert outcome.result == {
        "answers": {"Which colour?": "Red", "and more": ["Red", "Blue", "green"], "Why?": "because"}
    }


def test_a_form_is_one_question_after_another() -> None:
    asks = of("form", **form())
    assert isinstance(asks, Questions)
    assert asks.preamble() == "About you\nA few *words*."
    assert asks.text(Symbols()).startswith("[Name, 1 of 3] Who are you?")
    assert isinstance(asks.take(""), Wrong)
    assert isinstance(asks.skip(), Wrong)
    assert isinstance(asks.back(), Wrong)
    assert says(asks, "Ada", "London") == Next("London")
    assert asks.back() == Next()
    assert asks.skip() == Next("left out")
    assert says(asks, "") == Reply("ruff", {"answers": {"name": "Ada", "tools": ["ruff"]}})


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("1", Reply("approved")),
        ("Yes", Reply("approved")),
        ("2", Edit("# Plan")),
        ("no", refusal("")),
        ("Keep the old table.", Reply("changes asked for", denied=True, message="Keep the old table.")),
    ],
)
def test_a_plan_is_approved_edited_or_sent_back(line: str, outcome: Outcome) -> None:
    assert of("plan_exit", plan="# Plan", planFilePath="/x").take(line) == outcome


def test_an_edited_plan_is_approved_as_it_is_then() -> None:
    plan = of("plan_exit", plan="# Plan\n")
    assert isinstance(plan, Plan)
    assert plan.preamble() == "# Plan"
    assert plan.edited("# Better\n") == Reply("approved, as you have edited it", {"plan": "# Better\n"})
    assert isinstance(plan.edited("# Plan\n"), Wrong)
    assert isinstance(plan.edited(" \n"), Wrong)
    assert isinstance(plan.take(""), Wrong)


@pytest.mark.parametrize("kind", ["command_approval", "file_approval", "permission_approval"])
@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("1", Reply("allowed", {})),
        ("y", Reply("allowed", {})),
        ("2", Reply("denied", denied=True)),
        ("Not on a Friday.", Reply("denied", denied=True, message="Not on a Friday.")),
    ],
)
def test_an_approval_is_allowed_or_denied(kind: str, line: str, outcome: Outcome) -> None:
    asks = of(kind, command="make \x1b[2Jdeploy", cwd="/srv", env={"A": 1})
    assert isinstance(asks, Approval)
    assert asks.preamble() == 'command: make deploy\ncwd: /srv\nenv: {"A": 1}'
    assert isinstance(asks.take(" "), Wrong)
    assert asks.take(line) == outcome


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("question", {}),
        ("question", {"questions": "x"}),
        ("question", {"questions": [1, {}]}),
        ("form", {}),
        ("form", {**form(), "questions": []}),
    ],
)
def test_what_this_version_does_not_know_is_no_dialogue(kind: str, given: dict[str, Any]) -> None:
    frame = asked(2, kind=kind, tool_input=given)
    assert isinstance(frame, InteractionFrame)
    assert asking_of(frame) is None
