"""A small terminal in memory: what the sequences that `nerve chat` sends leave on the screen, and all above it."""

import re
import unicodedata

from attrs import define, field, frozen

_TOKEN = re.compile(r"\x1b\[([?\d;]*)([@-~])|([\r\n\b])|(\x1b.?)|([^\x1b\r\n\b]+)")


@frozen
class Cell:
    character: str
    style: str = ""  # SGR parameters


@define(eq=False)
class Terminal:
    """Rows are never lost at the top; ``top`` is the first one that is on the screen.

    Knows what is sent to it and no more: an unknown sequence raises ValueError.
    """

    columns: int = 80
    height: int = 24
    rows: list[list[Cell]] = field(factory=lambda: [[]])
    row: int = 0
    column: int = 0
    _style: str = ""
    _rest: str = ""

    @property
    def top(self) -> int:
        return max(0, len(self.rows) - self.height)

    def feed(self, text: str) -> None:
        text = self._rest + text
        self._rest = ""
        if (begun := re.search(r"\x1b(\[[?\d;]*)?\Z", text)) is not None:
            text, self._rest = text[: begun.start()], text[begun.start() :]
        for sequence in _TOKEN.finditer(text):
            parameters, final, control, strange, plain = sequence.groups()
            if plain is not None:
                for character in plain:
                    self._put(character)
            elif control is not None:
                self._control(control)
            elif final is not None:
                self._sequence(parameters, final)
            else:
                raise ValueError(f"what is {strange!r}?")

    def text(self) -> str:
        """Everything, the rows that have scrolled away included."""
        lines = ("".join(cell.character for cell in row).rstrip() for row in self.rows)
        return "\n".join(lines).rstrip("\n")

    def _put(self, character: str) -> None:
        if unicodedata.combining(character):
            return  # on top of what is there; not kept
        wide = unicodedata.east_asian_width(character) in "WF"
        if self.column + wide >= self.columns:
            self.column = 0
            self._down()
        row = self.rows[self.row]
        row.extend(Cell(" ") for _ in range(self.column - len(row)))
        cells = [Cell(character, self._style), *([Cell("", self._style)] if wide else [])]
        row[self.column : self.column + len(cells)] = cells
        self.column += len(cells)

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def _control(self, control: str) -> None:
        match control:
            case "\r":
                self.column = 0
            case "\n":
                self._down()
            case _:
                self.column = max(0, self.column - 1)

    def _sequence(self, parameters: str, final: str) -> None:
        count = int(parameters) if parameters.isdigit() else 1
        match final:
            case "m":
                self._style = "" if parameters in ("", "0") else parameters
            case "A":
                self.row = max(self.top, self.row - count)
            case "C":
                self.column = min(self.columns - 1, self.column + count)
            case "D":
                self.column = max(0, self.column - count)
            case "G":
                self.column = count - 1
            case "H":
                self.row, self.column = self.top, 0
            case "K":
                del self.rows[self.row][self.column :]
            case "J" if parameters == "2":
                for row in self.rows[self.top :]:
                    row.clear()
            case "J":
                del self.rows[self.row][self.column :]
                del self.rows[self.row + 1 :]
            case "h" | "l":
                pass
            case _:
                raise ValueError(f"what is CSI {parameters}{final}?")
