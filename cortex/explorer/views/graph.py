"""The graph: what stands around a memory, a file or a tag, as a picture and as a list."""

from cortex.explorer.graph_picture import picture
from cortex.explorer.page import Page, ViewRequest
from cortex.flows.operations.ask import browse, graph, listing
from cortex.flows.operations.ask.browse import Filters
from cortex.flows.operations.ask.graph import MOST_GRAPH_STEPS, GraphAround

# Where nothing is named, the page begins with these.
FIRST_OFFERED = 12


def show_graph(request: ViewRequest) -> Page:
    """Show the neighbourhood of the memory, the file or the tag in the query; without one, where to begin."""
    context, memory = request.context, request.word("memory")
    file, tag = request.word("file"), request.word("tag")
    steps = request.number("steps", 2, high=MOST_GRAPH_STEPS)
    around = None
    if memory:
        memory = listing.show(context, memory, with_others=False).row["memory_id"]
        around = graph.around_memory(context, memory, steps=steps)
    elif file or tag:
        around = graph.around_word(context, file=file, tag=tag)
    nodes = [] if around is None else [node for node in around.nodes if node.distance]
    middle = next((n.text for n in around.nodes if not n.distance), around.middle) if around else ""
    data = {
        "middle": middle,
        "nodes": nodes,
        "edges": around.edges if around else [],
        "is_cut": bool(around and around.is_cut),
    }
    extra = {
        "picture": picture(around) if around else "",
        "memory": memory,
        "file": file,
        "tag": tag,
        "steps": steps,
        "step_links": [(n, request.link(steps=n)) for n in range(1, MOST_GRAPH_STEPS + 1)] if memory else [],
        "relations": _relations(around) if around else {},
        "begin": [] if around else browse.browse(context, Filters(), limit=FIRST_OFFERED).rows,
    }
    return Page("graph.html", "Graph", data, extra)


def _relations(around: GraphAround) -> dict[str, str]:
    """Return by memory how it is related to the node that it was reached by."""
    kinds = {frozenset((edge.source, edge.target)): edge for edge in around.edges}
    relations = {}
    for node in around.nodes:
        edge = kinds.get(frozenset((node.memory_id, node.parent)))
        relations[node.memory_id] = f"{edge.edge_type.replace('_', ' ')} {edge.strength:.2f}" if edge else ""
    return relations
