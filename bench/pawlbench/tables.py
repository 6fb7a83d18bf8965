"""Tables as text for the terminal and as Markdown for docs/performance."""

from dataclasses import dataclass, field

from .records import Spread, quotient


@dataclass
class Table:
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_text(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        drawn = [
            "  ".join(_align(cell, widths[i], i) for i, cell in enumerate(line)).rstrip()
            for line in lines
        ]
        return "\n".join([*drawn, *(f"{note}." for note in self.notes)])

    def as_markdown(self) -> str:
        rule = ["---" if i == 0 else "---:" for i in range(len(self.columns))]
        drawn = ["| " + " | ".join(line) + " |" for line in [self.columns, rule, *self.rows]]
        return "\n".join(drawn) + "".join(f"\n\n{note}." for note in self.notes)


def _align(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def number(value: float) -> str:
    """Three digits that count, or all before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(of: Spread | None) -> str:
    """The median; with the lowest and the highest where they differ."""
    if of is None:
        return "-"
    if of.lowest == of.highest:
        return number(of.middle)
    return f"{number(of.middle)} ({number(of.lowest)}..{number(of.highest)})"


def ratio(of: Spread | None, to: Spread | None) -> str:
    found = quotient(of, to)
    return "-" if found is None else f"{found:.2f}"


def share(of: Spread | None, to: Spread | None) -> str:
    found = quotient(of, to)
    return "-" if found is None else f"{100 * found:.0f} %"
