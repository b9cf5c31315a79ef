"""How near the stored vectors of rows are to that of a question."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cortex.storage.tables import Vector
from cortex.transforms.search.fusion import Scores


def is_of_same_model(hits: pa.Table, vector: Vector) -> bool:
    """Return whether stored vectors compare with `vector`; not so between a new key and the next run."""
    if "vector" not in hits.schema.names:
        return True
    kind = hits.schema.field("vector").type
    return not pa.types.is_fixed_size_list(kind) or kind.list_size == len(vector)


def exact(hits: pa.Table, vector: Vector | None) -> Scores:
    """Return the cosine of each row's stored vector with `vector`; NaN where there is none."""
    similarity = np.full(hits.num_rows, np.nan)
    if vector is None or "vector" not in hits.schema.names or not is_of_same_model(hits, vector):
        return similarity
    stored: Any = hits["vector"].combine_chunks()
    known = pc.is_valid(stored).to_numpy(zero_copy_only=False)
    if known.any():
        flat = stored.drop_null().flatten().to_numpy(zero_copy_only=False)
        similarity[known] = flat.reshape(int(known.sum()), -1) @ vector
    return similarity
