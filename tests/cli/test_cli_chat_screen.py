"""Text above a prompt, told by a terminal in memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nerve.cli.chat_screen import Prompt, Screen
from nerve.cli.chat_text import Piece, Symbols, Tone, clean, one_line, width
from tools.terminal import Terminal

COLUMNS = 24


class Tty(Terminal):
    """As the kernel does it: a line feed also goes back to the first column."""

    def feed(self, text: str) -> None:
        super().feed(text.replace("\n", "\r\n"))


def terminal(columns: int = COLUMNS) -> Terminal:
    return Tty(columns, 10)


def screen(columns: int = COLUMNS, *, colour: bool = True) -> Screen:
    return Screen(lambda: columns, colour)


def test_text_streams_in_above_the_prompt() -> None:
    seen, drawn = terminal(), screen()
    for step in (
        drawn.edit(Prompt("> ", "typed", 5)),
        drawn.show([Piece("one ")]),
        drawn.show([Piece("two\n")]),
        drawn.show([Piece("three")]),
    ):
        seen.feed(step)
    assert seen.text() == "one two\nthree\n> typed"
    assert (seen.row, seen.column) == (2, 7)
    seen.feed(drawn.edit(None))
    assert seen.text() == "one two\nthree"
    seen.feed(drawn.show([Piece("!")]))
    assert seen.text() == "one two\nthree!"


def test_words_go_to_the_next_row_whole() -> None:
    seen, drawn = terminal(12), screen(12)
    seen.feed(drawn.edit(Prompt("> ")))
    for word in ["alpha ", "beta ", "gamma ", "incomprehensibilities ", "x"]:
        seen.feed(drawn.show([Piece(word)]))
    assert seen.text().splitlines() == ["alpha beta", "gamma incom", "prehensibil", "ities x", ">"]


def test_a_space_at_the_edge_makes_no_row_of_its_own() -> None:
    seen, drawn = terminal(12), screen(12)
    for piece in ["elevenchars", " ", "\n", "elevenchars", " ", "x"]:
        seen.feed(drawn.show([Piece(piece)]))
    assert seen.text().splitlines() == ["elevenchars", "elevenchars", "x"]


def test_a_long_line_shows_the_part_around_the_cursor() -> None:
    seen, drawn = terminal(12), screen(12)
    text = "abcdefghijklmnopqrstuvwxyz"
    for cursor, row, column in [(0, "> abcdefghi", 2), (26, "> stuvwxyz", 10), (12, "> efghijklm", 10)]:
        seen.feed(drawn.edit(Prompt("> ", text, cursor)))
        assert (seen.text(), seen.column) == (row, column)


def test_wide_characters_take_two_columns_and_line_ends_are_marked() -> None:
    assert [width(text) for text in ("ab", "日本", "e\u0301", "›●", "😀")] == [2, 4, 1, 2, 2]
    seen, drawn = terminal(), screen()
    seen.feed(drawn.edit(Prompt("> ", "a\nb\tc", 6)))
    assert seen.text() == "> a⏎b    c"


def test_after_a_resize_the_prompt_is_drawn_anew() -> None:
    columns = [20]
    drawn = Screen(lambda: columns[0])
    seen = terminal(20)
    seen.feed(drawn.show([Piece("some text\n")]) + drawn.edit(Prompt("> ", "x" * 30, 30)))
    columns[0] = seen.columns = 10
    seen.feed(drawn.redraw())
    assert seen.text().splitlines()[-1] == "> xxxxxx"


def test_without_colour_there_are_no_colours() -> None:
    assert "\x1b[1m" in screen().show([Piece("a", Tone.PERSON)])
    assert "m" not in screen(colour=False).show([Piece("a", Tone.BAD)])


TEXTS = st.text(st.sampled_from("ab  \n日é"), max_size=20)
STEPS = st.lists(st.one_of(TEXTS.map(lambda text: [Piece(text)]), st.tuples(TEXTS, st.integers(0, 20))), max_size=12)


@settings(max_examples=200, deadline=None)
@given(STEPS, st.integers(12, 40))
def test_a_prompt_never_leaves_a_trace_in_the_text(steps: list[object], columns: int) -> None:
    with_prompt, without = Tty(columns, 1000), Tty(columns, 1000)
    edited, plain = screen(columns), screen(columns)
    with_prompt.feed(edited.edit(Prompt("> ")))
    for step in steps:
        if isinstance(step, tuple):
            text = step[0].replace("\n", "")
            with_prompt.feed(edited.edit(Prompt("> ", text, min(step[1], len(text)))))
        else:
            assert isinstance(step, list)
            with_prompt.feed(edited.show(step))
            without.feed(plain.show(step))
    with_prompt.feed(edited.edit(None))
    assert with_prompt.text() == without.text()
    assert max((width("".join(cell.character for cell in row)) for row in without.rows), default=0) < columns


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_cleaned_text_has_nothing_that_a_terminal_obeys(text: str) -> None:
    cleaned = clean(text)
    assert not [c for c in cleaned if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "cut"), [("a  b\n c", "a b c"), ("x" * 20, "x" * 9 + "…"), ("\x1b[31mred\x1b[0m", "red"), ("", "")]
)
def test_one_line_is_one_line(text: str, cut: str) -> None:
    assert one_line(text, 10, Symbols()) == cut
