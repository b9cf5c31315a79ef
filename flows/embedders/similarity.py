"""How near the stored vectors of rows are to that of a question."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cortex.storage.tables.tables import Vector


def is_of_same_model(hits: pa.Table, vector: Vector) -> bool:
    """Return whether stored vectors compare with `vector`; not so between a new key and the next run."""
    if "vector" not in hits.schema.names:
        return True
    kind = hits.schema.field("vector").type
    return not pa.types.is_fixed_size_list(kind) or kind.list_size == len(vector)


def exact(hits: pa.Table, vector: Vector | None) -> NDArray[np.float64]:
    """Return the cosine of each row's stored vector with `vector`; NaN if there is none."""
    similarity = np.full(hits.num_rows, np.nan)
    if vector is None or "vector" not in hits.schema.names or not is_of_same_model(hits, vector):
        return similarity
    stored: Any = hits["vector"].combine_chunks()
    # Without Arrow's own functions: a question would wait a tenth of a second for their import.
    known = np.array([vector.is_valid for vector in stored], dtype=bool)
    if known.any():
        flat = stored.values.to_numpy(zero_copy_only=False).reshape(-1, len(vector))
        similarity[known] = flat[stored.offset : stored.offset + len(stored)][known] @ vector
    return similarity
