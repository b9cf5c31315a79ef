"""A neighbourhood as an SVG image: rings around the middle, each memory within the sector of its parent."""

import math
import re
from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from cortex.flows.operations.ask.graph import GraphAround, GraphNode
from cortex.hooks.prose.characters import visible
from cortex.transforms.words.sentences import excerpt

SIDE, HEIGHT_OF_PICTURE = 900, 520
# How far the outermost ring is from the middle, across and down.
REACH_ACROSS, REACH_DOWN = 330, 235
# Beyond so many on the first ring, their words would cover each other.
MOST_LABELS = 14
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
    labelled = sum(node.distance == 1 for node in neighbourhood.nodes) <= MOST_LABELS
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
