"""A small plotter: lines over a shared x axis, side by side, as one SVG.

It draws what the benchmarks' pages need and nothing else, so that no plotting library is installed for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 380, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 34, 62
_COLOURS = ("#0b6e99", "#c2571a", "#3a7d44", "#7a4fa3", "#8a6d1f")


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: named lines, each with a y for every x."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]


def svg(panels: Sequence[Panel]) -> str:
    """Return the panels, side by side, as the text of an SVG file."""
    drawn = [_panel(panel, index * _WIDTH) for index, panel in enumerate(panels)]
    width = _WIDTH * len(panels)
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" '
                f'viewBox="0 0 {width} {_HEIGHT}" font-family="sans-serif" font-size="11" fill="#222">'
            ),
            f'<rect width="{width}" height="{_HEIGHT}" fill="#fff"/>',
            *drawn,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, offset: int) -> str:
    top_y = _nice(max(max(line) for line in panel.lines.values()))
    top_x = max(panel.x)

    def place(x: float, y: float) -> tuple[float, float]:
        inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + inner_width * x / top_x, _HEIGHT - _BOTTOM - inner_height * y / top_y

    parts = [f'<g transform="translate({offset} 0)">', _text(_WIDTH / 2, 18, panel.title, size=13)]
    for tick in range(6):
        value = top_y * tick / 5
        x, y = place(0, value)
        parts.append(f'<path d="M{x:.1f} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(_text(x - 6, y + 4, f"{value:g}", anchor="end"))
        value = top_x * tick / 5
        x, y = place(value, 0)
        parts.append(_text(x, y + 15, f"{value:g}"))
    parts.append(_text(_WIDTH / 2, _HEIGHT - _BOTTOM + 31, panel.x_label))
    middle = (_HEIGHT - _BOTTOM + _TOP) / 2
    parts.append(f'<g transform="rotate(-90 14 {middle})">{_text(14, middle, panel.y_label)}</g>')
    for index, (name, line) in enumerate(panel.lines.items()):
        colour = _COLOURS[index]
        points = [place(x, y) for x, y in zip(panel.x, line, strict=True)]
        listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{listed}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points]
        left, low = _LEFT + min(150, 310 // len(panel.lines)) * index, _HEIGHT - 12
        parts.append(f'<path d="M{left} {low - 4}h18" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(left + 24, low, name, anchor="start"))
    return "\n".join([*parts, "</g>"])


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 11) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _nice(value: float) -> float:
    """Return the least round number that is not below the value."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value)
