"""Small charts as SVG: coloured by the page's style sheet, so that one serves dark and light."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from markupsafe import Markup

WIDE, NARROW, HEIGHT = 640, 300, 140
LEFT, BOTTOM, TOP, RIGHT = 34, 22, 8, 8
BASE = HEIGHT - BOTTOM


@dataclass(frozen=True)
class ChartPoint:
    """One value at an instant."""

    at: datetime
    value: float


@dataclass(frozen=True)
class ChartBar:
    """One value with its name."""

    name: str
    value: float
    address: str = ""
    short: str = ""


def line_chart(points: Sequence[ChartPoint], label: str, *, top: float = 1.0, width: int = NARROW) -> Markup:
    """Return values over time, from 0 to `top`, as an SVG image with a label; "" for fewer than two."""
    if len(points) < 2:
        return Markup("")
    first, last = points[0].at, points[-1].at
    span = (last - first).total_seconds() or 1.0
    placed = [
        (LEFT + (point.at - first).total_seconds() / span * (width - LEFT - RIGHT), _height(point.value, top))
        for point in points
    ]
    path = " ".join(f"{'ML'[at > 0]}{x:.1f} {y:.1f}" for at, (x, y) in enumerate(placed))
    area = f"{path} L{placed[-1][0]:.1f} {HEIGHT - BOTTOM} L{placed[0][0]:.1f} {HEIGHT - BOTTOM} Z"
    parts = [
        *_grid(top, width),
        f'<path class="area" d="{area}"/><path class="line" d="{path}"/>',
        f'<circle class="dot" cx="{placed[-1][0]:.1f}" cy="{placed[-1][1]:.1f}" r="3"/>',
        _text(LEFT, HEIGHT - 6, f"{first:%-d %b %Y}", "start"),
        _text(width - RIGHT, HEIGHT - 6, f"{last:%-d %b %Y}", "end"),
    ]
    return _svg(parts, label, width)


def bar_chart(bars: Sequence[ChartBar], label: str) -> Markup:
    """Return a column for each value, from 0 on, as an SVG image with a label; "" for none."""
    top = nice_top(max((bar.value for bar in bars), default=0))
    if not top:
        return Markup("")
    step = (WIDE - LEFT - RIGHT) / len(bars)
    width = min(step * 0.7, 40)
    parts = _grid(top, WIDE, is_whole=all(float(bar.value).is_integer() for bar in bars))
    for at, bar in enumerate(bars):
        x, y = LEFT + step * at + (step - width) / 2, _height(bar.value, top)
        title = f"<title>{escape(bar.name)}: {bar.value:g}</title>"
        column = f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BASE - y:.1f}"/>'
        if bar.address and bar.value:
            # All of the column's height can be clicked, however small its value is.
            place = f'x="{LEFT + step * at:.1f}" y="{TOP}" width="{step:.1f}" height="{BASE - TOP}"'
            reach = f'<rect class="reach" {place}/>'
            label_of_bar = escape(f"{bar.name}: {bar.value:g}")
            parts.append(f'<a href="{escape(bar.address)}" aria-label="{label_of_bar}">{reach}{column}</a>')
        else:
            parts.append(f"<g>{title}{column}</g>")
    every = max(1, -(-len(bars) // 8))
    for at in range(0, len(bars), every):
        parts.append(_text(LEFT + step * (at + 0.5), HEIGHT - 6, bars[at].short or bars[at].name, "middle"))
    return _svg(parts, label, WIDE, has_links=any(bar.address for bar in bars))


def nice_top(value: float) -> float:
    """
    Return the next round number: 1, 2 or 5 with zeros.

    >>> nice_top(0.7), nice_top(34), nice_top(0)
    (1.0, 50.0, 0.0)
    """
    if value <= 0:
        return 0.0
    size = 10.0 ** len(str(int(value))) / 10 if value >= 1 else 1.0
    while size / 10 >= value:
        size /= 10
    return next(size * factor for factor in (0.1, 0.2, 0.5, 1, 2, 5, 10) if size * factor >= value)


def _height(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - min(max(value / top, 0), 1) * (HEIGHT - BOTTOM - TOP)


def _grid(top: float, width: int, *, is_whole: bool = False) -> list[str]:
    """Return the lines behind a chart; where only whole numbers are counted, none for half of one."""
    parts = []
    for share in (0.0, 1.0) if is_whole and top % 2 else (0.0, 0.5, 1.0):
        y = _height(top * share, top)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f} H{width - RIGHT}"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{top * share:g}", "end"))
    return parts


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(parts: Sequence[str], label: str, width: int, *, has_links: bool = False) -> Markup:
    role = "group" if has_links else "img"  # what is in an image, a screen reader does not read
    size = f'class="chart{" wide" if width == WIDE else ""}" viewBox="0 0 {width} {HEIGHT}"'
    return Markup(f'<svg {size} role="{role}" aria-label="{escape(label)}">{"".join(parts)}</svg>')
