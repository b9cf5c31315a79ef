"""
A network in ONNX's file format, changed so that it turns only the rows it looks up into floats.

The local model keeps its table of 30,522 words as bytes, casts and scales all of it and then looks up the few
rows of a text. In the other order a question costs a quarter, loading for many texts takes .1 s less, and all
numbers are the same. Fields are read and written by their numbers in onnx.proto3.
"""

from collections.abc import Iterator
from dataclasses import dataclass

# Fields of ModelProto, GraphProto and NodeProto.
_GRAPH, _NODE = 7, 1
_INPUT, _OUTPUT, _NAME, _KIND, _ATTRIBUTE = 1, 2, 3, 4, 5
_VARINT, _DOUBLE, _TEXT, _FLOAT = 0, 1, 2, 5


@dataclass(frozen=True)
class _Node:
    """A node as far as it is looked at; it stands from `start` to `end`, with its field's number."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kind: str
    attributes: bytes
    start: int
    end: int


def with_rows_taken_first(network: bytes, table: str) -> bytes:
    """
    Return a network that looks rows of `table` up before it casts and scales them.

    `table` names the product of a cast table and of one factor a row. A network that computes it otherwise,
    or uses it for anything but one lookup, comes back as it is, and so do bytes that are no network.
    """
    try:
        return _rewritten(memoryview(network), table)
    except (IndexError, KeyError, StopIteration, ValueError):  # cut off, or of another make
        return network


def _rewritten(network: memoryview, table: str) -> bytes:
    start, begin, end = next(
        (s, b, e) for number, s, b, e in _fields(network, 0, len(network)) if number == _GRAPH
    )
    nodes = [_node(network, s, b, e) for number, s, b, e in _fields(network, begin, end) if number == _NODE]
    made_by = {output: node for node in nodes for output in node.outputs}
    scaled = made_by[table]
    cast = made_by[scaled.inputs[0]]
    (lookup,) = [node for node in nodes if table in node.inputs]
    kinds = (cast.kind, scaled.kind, lookup.kind, lookup.inputs[0])
    uses = sum(cast.outputs[0] in node.inputs for node in nodes)
    if kinds != ("Cast", "Mul", "Gather", table) or uses != 1:
        return bytes(network)
    taken, factor = f"{table}_rows", f"{table}_factors"
    ids, rows = lookup.inputs[1], cast.outputs[0]
    instead = b"".join(
        (
            _written("Gather", (cast.inputs[0], ids), taken, lookup.attributes),
            _written("Gather", (scaled.inputs[1], ids), factor, lookup.attributes),
            _written("Cast", (taken,), rows, cast.attributes),
            _written("Mul", (rows, factor), lookup.outputs[0], scaled.attributes),
        )
    )
    pieces: list[bytes | memoryview] = []
    position = begin
    for node in sorted((cast, scaled, lookup), key=lambda node: node.start):
        pieces += [network[position : node.start], instead if node is lookup else b""]
        position = node.end
    graph = b"".join([*pieces, network[position:end]])
    return b"".join([network[:start], _field(_GRAPH, graph), network[end:]])


def _fields(data: memoryview, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield of each field its number, where it starts, and where what it holds begins and ends."""
    while position < end:
        start = position
        key, position = _number(data, position)
        kind, length = key & 7, 0
        if kind == _VARINT:
            begin = position
            _, position = _number(data, position)
            yield key >> 3, start, begin, position
            continue
        if kind == _TEXT:
            length, position = _number(data, position)
        else:
            length = {_DOUBLE: 8, _FLOAT: 4}[kind]
        yield key >> 3, start, position, position + length
        position += length


def _node(data: memoryview, start: int, begin: int, end: int) -> _Node:
    texts: dict[int, list[str]] = {_INPUT: [], _OUTPUT: [], _KIND: [""]}
    attributes = b""
    for number, at, first, last in _fields(data, begin, end):
        if number in texts:
            texts[number].append(bytes(data[first:last]).decode())
        elif number == _ATTRIBUTE:
            attributes += bytes(data[at:last])
    return _Node(tuple(texts[_INPUT]), tuple(texts[_OUTPUT]), texts[_KIND][-1], attributes, start, end)


def _number(data: memoryview, position: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, and where it ends."""
    value = shift = 0
    while data[position] > 127:
        value |= (data[position] & 127) << shift
        shift, position = shift + 7, position + 1
    return value | data[position] << shift, position + 1


def _field(number: int, content: bytes) -> bytes:
    length, rest = bytearray(), len(content)
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    return bytes([number << 3 | _TEXT, *length, rest]) + content


def _written(kind: str, inputs: tuple[str, ...], output: str, attributes: bytes) -> bytes:
    texts = [
        *((_INPUT, name) for name in inputs),
        (_OUTPUT, output),
        (_NAME, f"{output}_made"),
        (_KIND, kind),
    ]
    return _field(_NODE, b"".join(_field(number, text.encode()) for number, text in texts) + attributes)
