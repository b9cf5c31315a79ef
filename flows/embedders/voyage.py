"""The hosted embedder: Voyage AI's voyage-3.5-lite, used when the user has set a key."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cortex.storage.filesystem.place import install_extra
from cortex.transforms.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL = "voyage-3.5-lite"
DIMENSIONS = 1024
# The service takes at most 1,000 texts a request, 1M tokens together; 128 passages of at most 900 characters
# are about 30,000 tokens, and a request that fails costs little.
BATCH_TEXTS = 128
# The library waits between tries and repeats only what can help: rate limits, timeouts, server faults.
RETRIES = 3
TIMEOUT_S = 20.0
# A person waits for the answer to a question, and the local model answers it in 3 ms.
QUESTION_RETRIES = 0
QUESTION_TIMEOUT_S = 5.0

# What is needed of the service: texts, model, kind of input and length in; an answer with `embeddings` out.
Request = Callable[..., Any]


class VoyageEmbedder:
    """Voyage AI behind the Embedder protocol. Prose only: raw code is never given to it (spec 6.1)."""

    model = MODEL
    dimensions = DIMENSIONS

    def __init__(self, request: Request, ask: Request | None = None) -> None:
        self._request = request
        self._ask = ask or request

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> "NDArray[np.float32]":
        """
        Return one unit-length float32 row per text, in the order given.

        Raises ModelUnavailable if the service does not answer or answers in another shape: what is missing is
        embedded by a later run.
        """
        import numpy as np

        if not texts:
            return np.empty((0, DIMENSIONS), dtype=np.float32)
        input_type = "query" if as_query else "document"
        vectors = np.vstack([self._embed_batch(batch, input_type) for batch in _batches(texts)])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
        return unit

    def _embed_batch(self, texts: list[str], input_type: str) -> "NDArray[np.float32]":
        import numpy as np

        from cortex.transforms.redaction.redact import redact  # here: compiling its rules takes .2 s

        # What was taken from the lake is clean; a question typed into `recall` comes as it was typed.
        clean = [redact(text)[0] for text in texts]
        request = self._ask if input_type == "query" else self._request
        try:
            answer = request(
                clean, model=MODEL, input_type=input_type, truncation=True, output_dimension=DIMENSIONS
            )
            vectors = np.asarray(answer.embeddings, dtype=np.float32)
        except Exception as failed:  # the library's errors and those of its transport share no base class
            raise _unavailable(f"{type(failed).__name__}") from failed
        if vectors.shape != (len(texts), DIMENSIONS):
            raise _unavailable(f"the answer has the shape {vectors.shape}")
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise _unavailable("a vector of the answer has no direction")
        return vectors


def connect(key: str) -> VoyageEmbedder:
    """
    Return the hosted embedder; nothing is sent before the first `embed`.

    Raises ModelUnavailable if the `voyageai` library is not installed.
    """
    try:
        from voyageai.client import Client
    except ImportError as missing:
        raise ModelUnavailable(
            "a Voyage key is set, but the library 'voyageai' is not installed.",
            f"{install_extra('voyage')}, or remove the key to use the local model.",
        ) from missing
    retrying = Client(api_key=key, max_retries=RETRIES, timeout=TIMEOUT_S)
    quick = Client(api_key=key, max_retries=QUESTION_RETRIES, timeout=QUESTION_TIMEOUT_S)
    return VoyageEmbedder(retrying.embed, quick.embed)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), BATCH_TEXTS):
        yield list(texts[start : start + BATCH_TEXTS])


def _unavailable(reason: str) -> ModelUnavailable:
    # Only the kind of failure is told: the message of a refused request may quote the key.
    return ModelUnavailable(
        f"Voyage AI gave no embeddings ({reason}).",
        "Words alone answer meanwhile, a later run asks again. Check key and network: `cortex doctor`.",
    )
