"""What a form may hold, how it is normalised, and how its answers are told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.domain.forms import BadForm, normalised, told
from nerve.tools.registry import documented, misfit
from tests.spec_replies import validator

TEXT = {"id": "a", "kind": "text", "label": "Name", "question": "What is it called?"}
CHOICE = {**TEXT, "id": "c", "kind": "choice", "options": [{"label": "Red"}, {"label": "Blue"}]}


def form(*questions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"questions": list(questions), **more}


@pytest.mark.req("WS-68")
def test_every_key_is_there() -> None:
    assert normalised(form(TEXT)) == {
        "title": "",
        "intro": "",
        "questions": [
            {
                "id": "a",
                "kind": "text",
                "label": "Name",
                "question": "What is it called?",
                "help": "",
                "placeholder": "",
                "required": False,
                "options": [],
                "allow_other": False,
                "default": None,
            }
        ],
    }


@pytest.mark.req("WS-68")
def test_texts_are_trimmed_and_ids_are_not() -> None:
    question = {
        **CHOICE,
        "id": " c ",
        "label": " Which\ncolour ",
        "question": " Q? ",
        "help": None,
        "required": True,
        "allow_other": True,
        "options": [{"label": " Red ", "description": " warm "}, {"label": "Blue", "more": 1}],
        "default": " Green ",
        "unknown": 1,
    }
    found = normalised(form(question, title=" T ", intro=" *I* "))
    assert (found["title"], found["intro"]) == ("T", "*I*")
    assert found["questions"] == [
        {
            "id": " c ",
            "kind": "choice",
            "label": "Which colour",
            "question": "Q?",
            "help": "",
            "placeholder": "",
            "required": True,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": ""}],
            "allow_other": True,
            "default": "Green",
        }
    ]


def test_only_choice_and_multi_have_options() -> None:
    question = {**CHOICE, "kind": "url", "allow_other": True}
    (found,) = normalised(form(question))["questions"]
    assert (found["options"], found["allow_other"]) == ([], False)


@pytest.mark.parametrize(
    ("kind", "default", "kept"),
    [
        ("text", "x", "x"),
        ("text", " ", None),
        ("text", [], None),
        ("list", ["a", " a ", "", "b"], ["a", "b"]),
        ("list", "a", ["a"]),
        ("multi", ["Blue"], ["Blue"]),
        ("choice", "Red", "Red"),
    ],
)
def test_defaults(kind: str, default: Any, kept: Any) -> None:
    (found,) = normalised(form({**CHOICE, "kind": kind, "default": default}))["questions"]
    assert found["default"] == kept


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        ({**TEXT, "id": " "}, "questions[0] (' '): id must not be blank."),
        ({**TEXT, "label": "\n"}, "questions[0] ('a'): label must not be blank."),
        ({**TEXT, "question": " "}, "questions[0] ('a'): question must not be blank."),
        ({**CHOICE, "options": []}, "questions[0] ('c'): options: choice and multi need 2 to 8."),
        ({**CHOICE, "options": None}, "questions[0] ('c'): options: choice and multi need 2 to 8."),
        (
            {**CHOICE, "options": [{"label": "Red"}, {"label": " Red"}]},
            "questions[0] ('c'): options: the label 'Red' is there twice.",
        ),
        (
            {**CHOICE, "options": [{"label": "Red"}, {"label": " "}]},
            "questions[0] ('c'): options: label must not be blank.",
        ),
        ({**CHOICE, "default": "Green"}, "questions[0] ('c'): default: 'Green' is none of the options."),
        ({**TEXT, "default": ["a"]}, "questions[0] ('a'): default: text takes one text, not a list."),
    ],
)
def test_what_a_form_may_not_hold(question: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadForm) as caught:
        normalised(form(question))
    assert str(caught.value) == complaint


def test_ids_are_unique() -> None:
    with pytest.raises(BadForm, match=r"questions\[1\]\.id 'a' is there twice"):
        normalised(form(TEXT, TEXT))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "questions is missing."),
        (form(), "questions must not be empty."),
        (form(*[{**TEXT, "id": str(n)} for n in range(7)]), "questions must have at most 6 entries."),
        (form({**TEXT, "kind": "date"}), "questions[0].kind must be choice or multi or text or list or repos or url."),
        (form({**TEXT, "label": "x" * 41}), "questions[0].label must be at most 40 characters long."),
        (form(TEXT, {"id": "b", "kind": "text", "label": "B"}), "questions[1].question is missing."),
        (form(TEXT, intro="x" * 1501), "intro must be at most 1500 characters long."),
        (
            form({**CHOICE, "options": [{"label": str(n)} for n in range(9)]}),
            "questions[0].options must have at most 8 entries.",
        ),
        (form({**CHOICE, "options": [{"label": "x"}, {"label": 1}]}), "questions[0].options[1].label must be text."),
        ({"questions": {}}, "questions must be a list."),
    ],
)
def test_what_does_not_fit_the_schema_is_named(given: dict[str, Any], complaint: str) -> None:
    assert misfit(documented()["ask_form"], given) == complaint


SHORT = st.text(max_size=6)
QUESTIONS = st.fixed_dictionaries(
    {
        "id": SHORT,
        "kind": st.sampled_from(["choice", "multi", "text", "list", "repos", "url", "other"]),
        "label": SHORT,
        "question": SHORT,
    },
    optional={
        "options": st.lists(st.fixed_dictionaries({"label": SHORT}), max_size=4) | st.none(),
        "allow_other": st.booleans(),
        "default": st.none() | SHORT | st.lists(SHORT, max_size=3),
        "required": st.booleans(),
    },
)


@pytest.mark.req("WS-68")
@given(st.lists(QUESTIONS, max_size=3), st.none() | SHORT)
def test_what_is_asked_is_a_form_of_the_contract(questions: list[dict[str, Any]], title: str | None) -> None:
    given_form = form(*questions, title=title)
    if misfit(documented()["ask_form"], given_form) is not None:
        return
    try:
        found = normalised(given_form)
    except BadForm:
        return
    validator({"$ref": "#/components/schemas/Form"}).validate(found)
    assert normalised(found) == found


def test_how_answers_are_told() -> None:
    asked = normalised(form(TEXT, CHOICE, {**TEXT, "id": "l", "kind": "list", "label": "Files"}))
    text = told(asked, {"a": "one\ntwo\r\nthree", "l": ["x", "ÿ"]})
    assert text == (
        "The person answered the form.\n"
        "Name: one\n  two\n  three\n"
        "Name: (skipped)\n"
        "Files: x, ÿ\n"
        "\n"
        '{"answers": {"a": "one\\ntwo\\r\\nthree", "l": ["x", "ÿ"]}, "skipped": ["c"]}'
    )
