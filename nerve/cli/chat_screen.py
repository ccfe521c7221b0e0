"""A terminal whose last row is being edited while text streams in above it.  Says what to write; writes nothing."""

import re
from collections.abc import Callable, Iterable

from attrs import define, field

from nerve.cli.chat_text import Piece, Symbols, Tone, character_width, merged, painted, width

_RUNS = re.compile(r"\n| +|[^ \n]+")
_CLEAR_BELOW = "\r\x1b[J"
_UP = "\x1b[A"
_TAB = "    "
_LEAST_COLUMNS = 4


@define
class Prompt:
    """The row that is edited: what stands before it, and the text, the cursor before its ``cursor``-th character."""

    label: str = ""
    text: str = ""
    cursor: int = 0


@define(eq=False)
class Screen:
    """``columns`` is asked at every change: terminals are resized.

    Rows are broken here, one column before the edge, so that it is always known where the text above the prompt ends.
    """

    columns: Callable[[], int]
    colour: bool = True
    symbols: Symbols = field(factory=Symbols)
    _column: int = 0  # behind the last character of the text
    _prompt: Prompt | None = None
    _drawn: bool = False

    def show(self, pieces: Iterable[Piece]) -> str:
        """Add text at the end, above the prompt."""
        shown = [*merged(pieces)]
        return self._hidden() + "".join(map(self._piece, shown)) + self._draw() if shown else ""

    def edit(self, prompt: Prompt | None) -> str:
        """Put this prompt in the last row, or none."""
        if prompt == self._prompt and self._drawn:
            return ""
        hidden = self._hidden()
        self._prompt = prompt
        return hidden + self._draw()

    def redraw(self) -> str:
        """After the terminal was cleared or has changed its size."""
        self._drawn = False
        return "\r\x1b[J" + self._draw(fresh=True)

    # --- text -----------------------------------------------------------------------------------------------------

    def _piece(self, piece: Piece) -> str:
        limit = max(_LEAST_COLUMNS, self.columns() - 1)
        text = "".join(self._run(run, limit) for run in _RUNS.findall(piece.text.replace("\t", _TAB)))
        return painted(Piece(text, piece.tone)) if self.colour else text

    def _run(self, run: str, limit: int) -> str:
        """Spaces, a word or a line feed, with the line feeds that keep it inside the rows."""
        if run == "\n":
            self._column = 0
            return run
        needed = width(run)
        if self._column + needed <= limit:
            self._column += needed
            return run
        if run.isspace():
            self._column = limit  # whatever comes next begins a new row
            return ""
        if needed <= limit:
            self._column = needed
            return "\n" + run
        return self._broken(run, limit)

    def _broken(self, run: str, limit: int) -> str:
        written = []
        for character in run:
            step = character_width(character)
            if self._column + step > limit:
                written.append("\n")
                self._column = 0
            written.append(character)
            self._column += step
        return "".join(written)

    # --- the prompt -----------------------------------------------------------------------------------------------

    def _hidden(self) -> str:
        """Take the prompt away and go back behind the text."""
        if not self._drawn:
            return ""
        self._drawn = False
        if self._column == 0:
            return _CLEAR_BELOW
        return f"{_CLEAR_BELOW}{_UP}\x1b[{self._column}C"

    def _draw(self, *, fresh: bool = False) -> str:
        if self._prompt is None:
            return ""
        self._drawn = True
        row, before = self._row(self._prompt)
        begin = "\n" if self._column and not fresh else ""
        return f"{begin}{row}\r" + (f"\x1b[{before}C" if before else "")

    def _row(self, prompt: Prompt) -> tuple[str, int]:
        """The one row of the prompt, and the column of the cursor; a long text shows the part around the cursor."""
        label = prompt.label
        room = max(_LEAST_COLUMNS, self.columns() - 1 - width(label))
        cells = [self._cell(character) for character in prompt.text]
        first = 0
        while width("".join(cells[first : prompt.cursor])) >= room:
            first += 1
        shown = ""
        for cell in cells[first:]:
            if width(shown + cell) > room:
                break
            shown += cell
        before = width(label) + width("".join(cells[first : prompt.cursor]))
        painted_label = painted(Piece(label, Tone.PERSON)) if self.colour else label
        return painted_label + shown, before

    def _cell(self, character: str) -> str:
        if character == "\n":
            return self.symbols.newline
        return _TAB if character == "\t" else character
