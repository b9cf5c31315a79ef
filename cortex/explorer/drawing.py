"""Pictures as SVG, coloured by the page's style sheet: small charts, and the graph around a memory."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from markupsafe import Markup

from cortex.flows.operations.ask.memory_details import GraphAround, GraphNode
from cortex.hooks.prose.characters import visible
from cortex.transforms.words.sentences import excerpt

# -- Small charts as SVG: coloured by the page's style sheet, so that one serves dark and light.

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
        # In a narrow window, where words are drawn larger, every second one has room.
        name, kind = bars[at].short or bars[at].name, "spare" if at // every % 2 else ""
        parts.append(_text(LEFT + step * (at + 0.5), HEIGHT - 6, name, "middle", kind))
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


def _text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    marks = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{marks}>{escape(words)}</text>'


def _svg(parts: Sequence[str], label: str, width: int, *, has_links: bool = False) -> Markup:
    role = "group" if has_links else "img"  # what is in an image, a screen reader does not read
    size = f'class="chart{" wide" if width == WIDE else ""}" viewBox="0 0 {width} {HEIGHT}"'
    return Markup(f'<svg {size} role="{role}" aria-label="{escape(label)}">{"".join(parts)}</svg>')


# -- A neighbourhood as an SVG image: rings around the middle, each memory within the sector of its parent.

SIDE, HEIGHT_OF_PICTURE = 900, 520
# How far the outermost ring is from the middle, across and down.
REACH_ACROSS, REACH_DOWN = 330, 235
# With more than this on the first ring, their words would overlap.
MAX_LABELS = 14
NODE_LABEL_CHARS = 30

_TYPE_NAME = re.compile(r"[a-z_]{1,30}")

NodePlaces = dict[str, tuple[float, float]]


def picture(neighbourhood: GraphAround) -> Markup:
    """Return the image; each memory in it leads to its own neighbourhood. "" if nothing is around."""
    if not [node for node in neighbourhood.nodes if node.distance]:
        return Markup("")
    places = _places(neighbourhood)
    parts = []
    parents = {node.memory_id: node.parent for node in neighbourhood.nodes}
    for edge in neighbourhood.edges:
        (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
        ends = f'x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"'
        width = 0.75 + 2.25 * edge.strength
        is_way = parents.get(edge.source) == edge.target or parents.get(edge.target) == edge.source
        classes = f"edge {_class_of(edge.edge_type)}{' way' if is_way else ''}"
        parts.append(f'<line class="{classes}" {ends} stroke-width="{width:.1f}"/>')
    parts += _spokes(neighbourhood, places)
    labelled = sum(node.distance == 1 for node in neighbourhood.nodes) <= MAX_LABELS
    for node in neighbourhood.nodes:
        parts.append(_node(node, *places[node.memory_id], has_label=labelled and node.distance == 1))
    label = f"{len(neighbourhood.nodes)} memories near the middle; the list below has them all"
    return Markup(
        f'<svg class="graph" viewBox="0 0 {SIDE} {HEIGHT_OF_PICTURE}" role="group" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _places(neighbourhood: GraphAround) -> NodePlaces:
    """Return where each node stands: children of one parent side by side, in the sector of the parent."""
    children: dict[str, list[GraphNode]] = {}
    for node in neighbourhood.nodes:
        if node.distance:
            children.setdefault(node.parent, []).append(node)
    places: NodePlaces = {neighbourhood.middle: (SIDE / 2, HEIGHT_OF_PICTURE / 2)}
    rings = max(node.distance for node in neighbourhood.nodes)
    # Turned a little, so that no words stand straight above each other.
    _spread(neighbourhood.middle, children, places, (0.35, 0.35 + 2 * math.pi), 1, max(rings, 1))
    return places


def _spread(
    parent: str,
    children: dict[str, list[GraphNode]],
    places: NodePlaces,
    sector: tuple[float, float],
    ring: int,
    rings: int,
) -> None:
    own = children.get(parent, [])
    weights = [_size(node.memory_id, children) for node in own]
    angle, end = sector
    width = end - angle
    for node, weight in zip(own, weights, strict=True):
        until = angle + width * weight / sum(weights)
        at = (angle + until) / 2
        share = ring / rings
        x = SIDE / 2 + math.cos(at) * REACH_ACROSS * share
        places[node.memory_id] = (x, HEIGHT_OF_PICTURE / 2 + math.sin(at) * REACH_DOWN * share)
        _spread(node.memory_id, children, places, (angle, until), ring + 1, rings)
        angle = until


def _size(name: str, children: dict[str, list[GraphNode]]) -> int:
    return 1 + sum(_size(node.memory_id, children) for node in children.get(name, []))


def _spokes(neighbourhood: GraphAround, places: NodePlaces) -> Sequence[str]:
    """Return the lines from a file or tag, which is no memory and so has no relations."""
    if any(node.memory_id == neighbourhood.middle for node in neighbourhood.nodes):
        return []
    x, y = places[neighbourhood.middle]
    name = escape(excerpt(visible(neighbourhood.middle), NODE_LABEL_CHARS))
    spokes = [
        f'<line class="edge" x1="{x:.0f}" y1="{y:.0f}" x2="{places[node.memory_id][0]:.0f}" '
        f'y2="{places[node.memory_id][1]:.0f}"/>'
        for node in neighbourhood.nodes
    ]
    return [*spokes, f'<text class="middle" x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{name}</text>']


def _class_of(name: str) -> str:
    """Return the name of a type as the style sheet knows it; nothing of what is no such name."""
    return name if _TYPE_NAME.fullmatch(name) else ""


def _node(node: GraphNode, x: float, y: float, *, has_label: bool) -> str:
    words = escape(excerpt(visible(node.text), 160))
    circle = (
        f'<circle class="node {_class_of(node.memory_type)}" cx="{x:.0f}" cy="{y:.0f}" '
        f'r="{(13, 9, 6, 5)[node.distance]}"><title>{words}</title></circle>'
    )
    text = ""
    if has_label:
        is_right = x >= SIDE / 2
        anchor, at = ("start", x + 14) if is_right else ("end", x - 14)
        label = escape(excerpt(visible(node.text), NODE_LABEL_CHARS))
        text = f'<text x="{at:.0f}" y="{y + 4:.0f}" text-anchor="{anchor}">{label}</text>'
    address = f"/graph?memory={escape(node.memory_id)}"
    # The middle may be of any type and colour: what tells it is the ring around it.
    halo = "" if node.distance else f'<circle class="halo" cx="{x:.0f}" cy="{y:.0f}" r="18"/>'
    return f'<a href="{address}" aria-label="{words}">{halo}{circle}{text}</a>'
