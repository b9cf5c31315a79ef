"""The command `related`: what a memory is linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import LIMIT
from cortex.transforms.words.ages import counted
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.related import Neighbourhood
    from cortex.transforms.views.breadth import Linked

_MOST_STEPS = 4


@command("related", "Show the memories linked to a memory.", place=80)
@click.argument("id")
@click.option(
    "--steps",
    type=click.IntRange(1, _MOST_STEPS),
    default=2,
    show_default=True,
    metavar="COUNT",
    help=f"Maximum number of links in between (up to {_MOST_STEPS}).",
)
@LIMIT
def related(context: Context, id: str, steps: int, limit: int) -> Answer:
    """Show the memories linked to the memory ID, directly or through others; nearest and strongest first."""
    from cortex.flows.operations.ask import related

    near = related.neighbourhood_of(context, id, steps=steps, limit=limit)
    data = {
        "memory": {name: near.memory[name] for name in ("memory_id", "memory_type", "text")},
        "related": [_as_dict(each, near) for each in near.linked],
        "left_out": near.left_out,
    }
    if not near.linked:
        return Answer(data, hints=["No memory is linked to it yet."])
    hints = [f"{near.left_out} more: --limit {near.left_out + len(near.linked)}"] if near.left_out else []
    return Answer(data, _lines(near), hints)


def _as_dict(linked: Linked, near: Neighbourhood) -> dict[str, object]:
    row = near.memories[linked.memory_id]
    return {
        "memory_id": linked.memory_id,
        "memory_type": row["memory_type"],
        "text": row["text"],
        "distance": linked.distance,
        "via_id": linked.via_id,
        "edge_type": linked.edge_type,
        "is_source": linked.is_source,
        "strength": round(linked.strength, 4),
    }


def _lines(near: Neighbourhood) -> Iterator[str]:
    yield excerpt(near.memory["text"], 200)
    for distance in sorted({each.distance for each in near.linked}):
        yield f"{counted(distance, 'link')} away:"
        for each in near.linked:
            if each.distance == distance:
                yield f"  {_relation(each)}  {excerpt(near.memories[each.memory_id]['text'], 160)}"
                yield f"      [{each.memory_id[:12]}], from [{each.via_id[:12]}]"


def _relation(linked: Linked) -> str:
    """
    Return the link in words, as seen from what it was reached from.

    >>> from cortex.transforms.views.breadth import Linked
    >>> _relation(Linked("b", 1, "a", "refines", 0.5, is_source=True))
    '<- refines .50'
    """
    arrow = "<-" if linked.is_source else "->"
    return f"{arrow} {linked.edge_type.replace('_', ' ')} {linked.strength:.2f}".replace(" 0.", " .")
