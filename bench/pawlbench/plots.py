"""Plots as SVG, drawn by gnuplot: one small Debian package without Python packages behind it (matplotlib
brings NumPy and more), kept up for decades, and its SVG is text that a diff can show. Without gnuplot the
tables are made all the same."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from .processes import run
from .records import Spread

HINT = "the plots are left out: gnuplot is not installed (Debian: apt-get install gnuplot-nox)"


@dataclass
class Plot:
    """Series of values over the same places: lines over numbers, or groups of bars."""

    title: str
    across: str
    up: str
    places: list[str]
    series: dict[str, list[Spread | None]] = field(default_factory=dict)
    bars: bool = False
    logarithmic: bool = False


def draw(plot: Plot, file: Path) -> bool:
    """False when gnuplot is not there."""
    if shutil.which("gnuplot") is None:
        return False
    file.write_text(run(["gnuplot"], text=script(plot)) + "\n")
    return True


def script(plot: Plot) -> str:
    tics = ", ".join(f"{_quoted(place)} {i}" for i, place in enumerate(plot.places))
    settings = [
        "set terminal svg size 940,500 font 'Helvetica,13' background '#ffffff'",
        f"set title {_quoted(plot.title)}",
        f"set xlabel {_quoted(plot.across)}",
        f"set ylabel {_quoted(plot.up)}",
        f"set xtics ({tics}){' rotate by -30' if plot.bars else ''}",
        f"set xrange [-0.6:{len(plot.places) - 0.4}]",
        "set logscale y" if plot.logarithmic else "set yrange [0:*]",
        "set grid ytics linetype 1 linewidth 0.5 linecolor rgb '#d0d0d0'",
        "set key outside right top Left reverse",
        "set border 3",
        "set tics nomirror",
        "set format y '%.6g'",
        "set colorsequence podo",  # told apart without red and green
    ]
    blocks = [_block(number, values) for number, values in enumerate(plot.series.values())]
    curves = _bars(plot) if plot.bars else _lines(plot)
    return "\n".join([*settings, *blocks, "plot " + ", ".join(curves)]) + "\n"


def _bars(plot: Plot) -> list[str]:
    """Bars of one place side by side, each with the reach from the lowest to the highest."""
    width = 0.8 / max(len(plot.series), 1)
    curves = []
    for number, name in enumerate(plot.series):
        at = f"($1 + {(number - (len(plot.series) - 1) / 2) * width:.4f})"
        curves += [
            f"$series{number} using {at}:2:({width * 0.92:.4f}) with boxes"
            f" fill solid 0.8 noborder linetype {number + 2} title {_quoted(name)}",
            f"$series{number} using {at}:3:(0):($4 - $3) with vectors nohead"
            " linewidth 2 linecolor rgb '#404040' notitle",
        ]
    return curves


def _lines(plot: Plot) -> list[str]:
    """Series that are called "mode, commit": a colour a mode, dashes for all but the first commit."""
    colours: dict[str, int] = {}
    curves = []
    for number, name in enumerate(plot.series):
        mode = name.partition(", ")[0]
        dashes = 2 if mode in colours else 1
        colour = colours.setdefault(mode, len(colours) + 1)
        curves += [
            f"$series{number} using 1:2:3:4 with yerrorbars linetype {colour} pointtype 0 notitle",
            f"$series{number} using 1:2 with linespoints linetype {colour} dashtype {dashes}"
            f" linewidth 2 pointtype 7 pointsize 0.5 title {_quoted(name)}",
        ]
    return curves


def _block(number: int, values: list[Spread | None]) -> str:
    rows = [f"{i} {v.middle} {v.lowest} {v.highest}" for i, v in enumerate(values) if v is not None]
    return f"$series{number} << EOD\n" + "\n".join(rows) + "\nEOD"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''").replace("_", "\\\\_") + "'"
