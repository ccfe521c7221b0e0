"""What a turn may become, how its end is marked, and the small rules of titles and the queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.domain import titles
from nerve.domain.queue import CANCELLABLE_SOURCES, PREVIEW, may_cancel, preview
from nerve.domain.turns import RUNTIME_DIED, TurnState, mark, session_status


@pytest.mark.parametrize(
    ("state", "reason", "text", "status"),
    [
        (TurnState.COMPLETED, None, None, "active"),
        (TurnState.STOPPED, None, "[Stopped by user]", "stopped"),
        (TurnState.INTERRUPTED, None, "[Interrupted by restart]", "active"),
        (TurnState.FAILED, "it broke", "Agent error: it broke", "error"),
        (TurnState.FAILED, None, f"Agent error: {RUNTIME_DIED}", "error"),
    ],
)
def test_how_an_end_is_marked(state: TurnState, reason: str | None, text: str | None, status: str) -> None:
    assert mark(state, reason) == text
    assert session_status(state) == status


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("  two\n words\t", "two words"),
        ("", ""),
        (" \n ", ""),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 40 + "..."),
        ("a" * 38 + " bcd", "a" * 38 + "..."),
        ("a" * 39 + " b", "a" * 39 + "..."),
        ("a" * 40 + " b", "a" * 40 + "..."),
        ("one two three four five six seven eight nine ten", "one two three four five six seven eight..."),
    ],
)
def test_a_title_is_the_first_words(text: str, title: str) -> None:
    assert titles.first_words(text) == title


@given(st.text())
def test_a_title_is_short_and_one_line(text: str) -> None:
    title = titles.first_words(text)
    assert len(title) <= titles.LONGEST + len("...")
    assert title == " ".join(title.split())
    assert " ".join(text.split()).startswith(title.removesuffix("..."))


@given(st.text())
@pytest.mark.req("AGENT-17")
def test_a_preview_is_the_beginning_in_one_line(text: str) -> None:
    shown = preview(text)
    assert len(shown) <= PREVIEW
    assert "\n" not in shown
    assert " ".join(text.split()).startswith(shown.rstrip())


def test_a_preview_has_120_characters() -> None:
    assert preview("word\n" * 100) == ("word " * 100)[:120]


@pytest.mark.req("AGENT-77")
@given(
    st.sampled_from(["web", "api", "telegram", "slack", "cron"]),
    st.none() | st.sampled_from("ab"),
    st.sampled_from("ab"),
)
def test_only_ones_own_typed_message_may_be_cancelled(source: str, owner: str | None, caller: str) -> None:
    assert may_cancel(owner, source, caller) == (source in CANCELLABLE_SOURCES and owner == caller)


def test_nobody_owns_what_nobody_sent() -> None:
    assert not may_cancel(None, "web", None)
