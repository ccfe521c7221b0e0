"""The line at the prompt, key by key; and what lines and interrupts mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerve.cli.chat_editor import MAX_CHARACTERS, CookedLines, Editor, Entered, Key, Typed
from nerve.cli.chat_input import HELP, Command, Interrupts, Mistaken, Name, Reaction, Say, parse

LEFT, RIGHT, UP, DOWN = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B"


def typed(editor: Editor, *keys: str) -> list[Typed]:
    return [event for key in keys for event in editor.feed(key.encode())]


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("hello", "hello|"),
        ("hallo" + LEFT * 4 + "\x1b[3~e", "he|llo"),
        ("ab" + LEFT + "\x7f", "|b"),
        ("ab" + LEFT * 5 + "x" + RIGHT * 9 + "y", "xaby|"),
        ("ab\x01x\x05y", "xaby|"),
        ("ab\x1b[Hx\x1b[Fy", "xaby|"),
        ("ab\x1bOHx\x1bOFy", "xaby|"),
        ("ab\x1b[1~x\x1b[4~y", "xaby|"),
        ("ab\x02\x02x\x06y", "xay|b"),
        ("one two\x17", "one |"),
        ("one two\x1b\x7f", "one |"),
        ("one two\x1bb\x1bbx\x1bfy", "xoney| two"),
        ("one two\x1b[1;5Dx", "one x|two"),
        ("one two" + LEFT * 3 + "\x0b", "one |"),
        ("one two" + LEFT * 3 + "\x15", "|two"),
        ("ab" + LEFT + "\x04", "a|"),
        ("a\x1b\rb", "a\nb|"),
        ("日本" + LEFT + "x", "日x|本"),
        ("a\x1b[99Xb\x1bZc\x1b\x1bd", "abcd|"),
        ("a\x00\x1f\x07b", "ab|"),
        ("\x7f\x17\x1b[3~", "|"),
    ],
)
def test_keys_do_what_they_do_everywhere(keys: str, line: str) -> None:
    editor = Editor()
    assert typed(editor, keys) == []
    assert editor.text[: editor.cursor] + "|" + editor.text[editor.cursor :] == line


def test_a_line_is_entered_and_gone() -> None:
    editor = Editor()
    assert typed(editor, "hello\rworld\n") == [Entered("hello"), Entered("world")]
    assert (editor.text, editor.cursor) == ("", 0)


def test_bytes_come_in_any_pieces() -> None:
    editor = Editor()
    for byte in "é日\x1b[D!\x1b[200~a\rb\x1b[201~".encode():
        assert list(editor.feed(bytes([byte]))) == []
    assert editor.text == "é!a\nb日"


def test_what_is_pasted_is_text_whatever_it_holds() -> None:
    editor = Editor()
    assert typed(editor, "\x1b[200~one\rtwo\n\x03\x04three\tx\x1b[201~") == []
    assert editor.text == "one\ntwo\nthree\tx"
    assert typed(editor, "\r") == [Entered("one\ntwo\nthree\tx")]


def test_what_is_too_long_is_refused_and_not_cut() -> None:
    editor = Editor()
    assert typed(editor, "before", "\x1b[200~", "x" * (MAX_CHARACTERS + 9), "\x1b[201~") == [Key.TOO_LONG]
    assert editor.text == "before"


def test_the_end_and_an_empty_line() -> None:
    editor = Editor()
    assert typed(editor, "\x04") == [Key.EOF]
    assert list(editor.feed(b"")) == [Key.EOF]
    assert typed(editor, "\x0c") == [Key.CLEAR]
    assert typed(editor, "\r") == [Entered("")]


def test_history_goes_back_and_keeps_what_was_being_typed() -> None:
    editor = Editor()
    typed(editor, "one\r", "two\r", "two\r", " \r", "thr")
    lines = []
    for key in (UP, UP, UP, DOWN, DOWN, DOWN):
        typed(editor, key)
        lines.append(editor.text)
    assert lines == ["two", "one", "one", "two", "thr", "thr"]
    typed(editor, UP, UP, "!\r")
    typed(editor, UP)
    assert editor.text == "one!"


@given(st.lists(st.binary(max_size=12), max_size=20))
def test_no_bytes_can_break_it(chunks: list[bytes]) -> None:
    editor = Editor()
    for chunk in chunks:
        list(editor.feed(chunk))
        assert 0 <= editor.cursor <= len(editor.text)
        assert not any(ord(character) < 32 and character not in "\n\t" for character in editor.text)


def test_a_terminal_that_edits_itself_gives_whole_lines() -> None:
    cooked = CookedLines()
    assert list(cooked.feed(b"one\ntw")) == [Entered("one")]
    assert list(cooked.feed(b"o\n")) == [Entered("two")]
    assert list(cooked.feed(b"")) == [Key.EOF]


# --- lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("hello", Say("hello")),
        ("  hello /stop", Say("  hello /stop")),
        ("", None),
        ("   ", None),
        ("/help", Command(Name.HELP)),
        ("/HELP ", Command(Name.HELP)),
        ("/switch a1b2", Command(Name.SWITCH, "a1b2")),
        ("/new A title  of words", Command(Name.NEW, "A title  of words")),
        ("/new", Command(Name.NEW)),
        ("/fork", Command(Name.FORK)),
        ("/history 20", Command(Name.HISTORY, "20")),
        ("/cancel q_1", Command(Name.CANCEL, "q_1")),
        ("//etc/passwd", Say("/etc/passwd")),
        ("/stop\nand more", Say("/stop\nand more")),
    ],
)
def test_what_a_line_asks_for(line: str, meant: object) -> None:
    assert parse(line) == meant


@pytest.mark.parametrize("line", ["/nothing", "/", "/switch", "/cancel ", "/history many", "/quit please"])
def test_a_mistake_is_told_and_never_sent(line: str) -> None:
    assert isinstance(parse(line), Mistaken)


def test_help_names_every_command() -> None:
    assert all(f"/{name.value}" in HELP for name in Name)
    assert max(map(len, HELP.splitlines())) < 79


# --- interrupts ---------------------------------------------------------------------------------------------------


def reaction(interrupts: Interrupts, **state: bool) -> Reaction:
    defaults = {"typing": False, "running": False, "waiting": False, "interactive": True}
    return interrupts.interrupt(**{**defaults, **state})


def test_the_first_one_stops_the_turn_and_the_second_one_leaves() -> None:
    interrupts = Interrupts()
    assert reaction(interrupts, running=True) is Reaction.STOP
    assert reaction(interrupts, running=True) is Reaction.LEAVE


def test_once_the_turn_has_ended_it_begins_anew() -> None:
    interrupts = Interrupts()
    reaction(interrupts, running=True)
    interrupts.forget()
    assert reaction(interrupts, running=True) is Reaction.STOP


def test_at_an_idle_prompt_it_asks_twice() -> None:
    interrupts = Interrupts()
    assert [reaction(interrupts), reaction(interrupts)] == [Reaction.HINT, Reaction.LEAVE]


def test_a_line_that_is_being_typed_is_thrown_away_first() -> None:
    interrupts = Interrupts()
    assert reaction(interrupts, typing=True, running=True) is Reaction.CLEAR
    assert reaction(interrupts, running=True) is Reaction.STOP


def test_a_message_that_waits_is_taken_back_instead_of_stopping_somebody_elses_turn() -> None:
    interrupts = Interrupts()
    assert reaction(interrupts, waiting=True, running=True, interactive=False) is Reaction.TAKE_BACK
    assert reaction(interrupts, waiting=True, interactive=False) is Reaction.LEAVE


def test_without_anything_to_stop_and_nobody_to_tell_it_leaves() -> None:
    assert reaction(Interrupts(), interactive=False) is Reaction.LEAVE
