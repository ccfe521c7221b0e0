"""A text in an editor, which any program will do for."""

from pathlib import Path

import pytest

from nerve.cli.chat_editing import NotEdited, edit_text


def script(root: Path, body: str) -> str:
    made = root / "an editor"
    made.write_text(f"#!/bin/sh\n{body}\n")
    made.chmod(0o700)
    return f"'{made}' -x"


async def test_what_the_editor_leaves_is_the_text(tmp_path: Path) -> None:
    editor = script(tmp_path, 'test "$1" = -x && grep -q "# Plän" "$2" && printf "and more\\n" >> "$2"')
    assert await edit_text("# Plän\n", {"EDITOR": editor}) == "# Plän\nand more\n"
    assert await edit_text("# Plän\n", {"EDITOR": "false", "VISUAL": editor}) == "# Plän\nand more\n"


async def test_an_editor_that_can_not_be_used_changes_nothing(tmp_path: Path) -> None:
    for editor, why in [
        ("false", "false has ended with 1"),
        ("/nonexistent/editor", "No such file"),
        ("ed 'open", r"\$EDITOR can't be read"),
        (script(tmp_path, 'rm "$2"'), "No such file"),
    ]:
        with pytest.raises(NotEdited, match=why):
            await edit_text("# Plan\n", {"EDITOR": editor})
