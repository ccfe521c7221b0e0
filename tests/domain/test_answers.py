"""The rules of an answer: what is kept, what is dropped, what is no answer at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.contract.generated.entities import InteractionType
from nerve.domain.answers import DECLINED, BadAnswer, accepted, refusal

COLOUR = {
    "question": "Which colour?",
    "header": "colour",
    "options": [{"label": "Red", "description": ""}],
    "multiSelect": False,
}
TOOLS = {"question": "Which tools?", "header": "tools", "options": [], "multiSelect": True}


def question(kind: str, *labels: str, allow_other: bool = False, question_id: str = "q") -> dict[str, Any]:
    return {
        "id": question_id,
        "kind": kind,
        "label": "Label",
        "question": "Question?",
        "help": "",
        "placeholder": "",
        "required": True,
        "options": [{"label": label, "description": ""} for label in labels],
        "allow_other": allow_other,
        "default": None,
    }


def form(*questions: dict[str, Any]) -> dict[str, Any]:
    return {"title": "", "intro": "", "questions": list(questions)}


def filled(asked: dict[str, Any], value: Any) -> Any:
    """What remains of the answer to one question; None: it counts as skipped."""
    result = accepted(InteractionType.FORM, form(asked), {"answers": {"q": value}})
    assert result is not None
    assert result["answers"].keys() <= {"q"}
    return result["answers"].get("q")


def asked(value: Any) -> Any:
    result = accepted(InteractionType.QUESTION, {"questions": [COLOUR, TOOLS]}, {"answers": value})
    assert result is not None
    return result["answers"]


# --- questions ----------------------------------------------------------------------------------------------------


@pytest.mark.req("WS-21")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"colour": "Red"}, {"Which colour?": "Red"}),
        ({"Which colour?": " Red "}, {"Which colour?": "Red"}),
        ({"Which colour?": "Red", "colour": "Blue"}, {"Which colour?": "Red"}),
        ({"colour": "my own"}, {"Which colour?": "my own"}),
        ({"colour": ["Red"]}, {"Which colour?": "Red"}),
        ({"colour": ["Red", "Blue"]}, {}),
        ({"tools": "pytest"}, {"Which tools?": ["pytest"]}),
        ({"tools": ["pytest", " ", "ruff ", "pytest"]}, {"Which tools?": ["pytest", "ruff"]}),
        ({"colour": "  ", "tools": []}, {}),
        ({"colour": None, "unknown": "x"}, {}),
    ],
)
def test_answers_to_questions(given: dict[str, Any], kept: dict[str, Any]) -> None:
    assert asked(given) == kept


def test_questions_of_a_runtime_may_look_like_anything() -> None:
    odd = {"questions": [None, "x", {}, {"question": 5}, {"question": "Bare?"}]}
    assert accepted(InteractionType.QUESTION, odd, {"answers": {"Bare?": "yes"}}) == {"answers": {"Bare?": "yes"}}
    for without in ({}, {"questions": None}, {"questions": "x"}):
        assert accepted(InteractionType.QUESTION, without, {"answers": {"a": "b"}}) == {"answers": {}}


# --- forms --------------------------------------------------------------------------------------------------------


@pytest.mark.req("WS-25", "WS-26", "WS-27")
@pytest.mark.parametrize(
    ("asked", "value", "kept"),
    [
        (question("text"), "  words\n and more ", "words\n and more"),
        (question("text"), "x" * 4001, "x" * 4000),
        (question("text"), "x" * 3999 + " y", "x" * 3999),
        (question("text"), " \t\n", None),
        (question("text"), "", None),
        (question("text"), None, None),
        (question("text"), [], None),
        (question("text"), ["one"], "one"),
        (question("text"), ["one", "two"], None),
        (question("choice", "Red", "Blue"), "Red", "Red"),
        (question("choice", "Red", "Blue"), " Red ", "Red"),
        (question("choice", "Red", "Blue"), "red", None),
        (question("choice", "Red", "Blue"), "Green", None),
        (question("choice", "Red", "Blue", allow_other=True), " Green ", "Green"),
        (question("multi", "Red", "Blue"), ["Blue", "Green", "Red", "Blue"], ["Blue", "Red"]),
        (question("multi", "Red", "Blue"), ["Green"], None),
        (question("multi", "Red", "Blue", allow_other=True), ["Blue", "Green "], ["Blue", "Green"]),
        (question("multi", "Red", "Blue"), "Red", ["Red"]),
        (question("list"), [" a ", "", "b", "a"], ["a", "b"]),
        (question("list"), ["x" * 5000], ["x" * 4000]),
        (question("list"), ["  ", None], None),
        (question("repos"), ["a/b", "https://github.com/a/b", "a", "a/b/c", "o-r.g/n_a.me"], ["a/b", "o-r.g/n_a.me"]),
        (question("repos"), ["a/..", "../b", "./b", "a/.", "a b/c", "a/", "/b", "\u00e4/b"], None),
        (question("url"), " https://example.org/a?b#c ", "https://example.org/a?b#c"),
        (question("url"), "http://localhost:8080", "http://localhost:8080"),
        (question("url"), "HTTPS://example.org", "HTTPS://example.org"),
        (question("url"), "ftp://example.org", None),
        (question("url"), "example.org", None),
        (question("url"), "https://", None),
        (question("url"), "https:///path", None),
        (question("url"), "https://exa mple.org", None),
        (question("url"), "https://example.org:port", None),
        (question("url"), "https://[::1", None),
        (question("url"), "javascript:alert(1)", None),
    ],
)
def test_values_of_forms(asked: dict[str, Any], value: Any, kept: Any) -> None:
    assert filled(asked, value) == kept


def test_answers_come_in_the_order_of_the_form_and_unknown_ids_are_dropped() -> None:
    asked = form(question("text", question_id="b"), question("list", question_id="a"), question("url", question_id="c"))
    result = accepted(InteractionType.FORM, asked, {"answers": {"a": ["1"], "b": "2", "z": "3"}})
    assert result is not None
    assert list(result["answers"].items()) == [("b", "2"), ("a", ["1"])]


TEXTS = st.text(max_size=20) | st.sampled_from(["Red", "Blue", " Red", "a/b", "https://x.org", "x" * 4100, "", " "])
KINDS = st.sampled_from(["choice", "multi", "text", "list", "repos", "url"])


@pytest.mark.req("WS-25", "WS-26", "WS-27")
@given(KINDS, st.booleans(), TEXTS | st.lists(TEXTS, max_size=8) | st.none())
def test_whatever_is_sent_the_agent_gets_clean_values(kind: str, allow_other: bool, value: Any) -> None:
    asked = question(kind, "Red", "Blue", allow_other=allow_other)
    kept = filled(asked, value)
    sent = value if isinstance(value, list) else [value or ""]
    if kept is None:
        said = [text for text in sent if text and text.strip()]
        assert kind != "list" or not said
        assert kind != "text" or len({text.strip()[:4000] for text in said}) != 1
        return
    assert isinstance(kept, list) == (kind in ("multi", "list", "repos"))
    items = kept if isinstance(kept, list) else [kept]
    assert len(items) == len(set(items)) > 0
    for item in items:
        assert item == item.strip() != ""
        assert len(item) <= 4000
        assert any(item == text.strip()[:4000].rstrip() for text in sent)
        if kind in ("choice", "multi") and not allow_other:
            assert item in ("Red", "Blue")
    # What has been cleaned is clean: cleaning it again changes nothing.
    assert filled(asked, kept) == kept


@given(st.lists(st.sampled_from(["Red", "Blue"]), unique=True, min_size=1))
def test_options_that_were_chosen_are_kept_as_they_are(chosen: list[str]) -> None:
    assert filled(question("multi", "Red", "Blue"), chosen) == chosen


# --- plans, approvals, refusals -----------------------------------------------------------------------------------


@pytest.mark.req("WS-23", "WS-24")
@pytest.mark.parametrize(
    ("result", "kept"),
    [(None, None), ({}, None), ({"plan": " # Mine\n"}, {"plan": " # Mine\n"}), ({"plan": "p", "x": 1}, {"plan": "p"})],
)
def test_a_plan_is_approved_as_it_is_or_as_it_was_edited(result: Any, kept: Any) -> None:
    assert accepted(InteractionType.PLAN_EXIT, {"plan": "p"}, result) == kept


@pytest.mark.parametrize(
    "kind", [InteractionType.COMMAND_APPROVAL, InteractionType.FILE_APPROVAL, InteractionType.PERMISSION_APPROVAL]
)
@pytest.mark.parametrize("result", [None, {}, {"anything": [1]}])
def test_any_result_approves(kind: InteractionType, result: Any) -> None:
    assert accepted(kind, {}, result) is None


@pytest.mark.parametrize("kind", [InteractionType.QUESTION, InteractionType.FORM])
@pytest.mark.parametrize(
    "result", [None, {}, {"answers": None}, {"answers": ["Red"]}, {"answers": {"q": 5}}, {"answers": {"q": ["a", 5]}}]
)
def test_what_holds_no_answers_is_no_answer(kind: InteractionType, result: Any) -> None:
    with pytest.raises(BadAnswer):
        accepted(kind, form(question("text")), result)


@pytest.mark.parametrize("plan", [None, 5, ["p"], "", "  \n"])
def test_an_edited_plan_is_a_text_with_something_in_it(plan: Any) -> None:
    with pytest.raises(BadAnswer):
        accepted(InteractionType.PLAN_EXIT, {"plan": "p"}, {"plan": plan})


@pytest.mark.req("WS-22")
@pytest.mark.parametrize(
    ("message", "told"), [(" No,\nnot that. ", " No,\nnot that. "), ("", DECLINED), ("  ", DECLINED), (None, DECLINED)]
)
def test_a_refusal_in_the_persons_words(message: str | None, told: str) -> None:
    assert refusal(message) == told
