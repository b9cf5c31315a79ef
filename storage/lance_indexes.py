"""The indexes of a dataset: its words, and the vectors once there are many."""

from typing import Any

# Vectors from which they get an index, and parts of one from which it is rebuilt. Without an index a search
# reads every vector: 2 ms of processor time a thousand. With one it is 12 ms at 100,000, which take 3.5 s to
# index, and each run that changes rows adds a part.
VECTORS_INDEXED, INDEX_PARTS = 20_000, 8
# A single one: every vector is compared, as one byte a number. More would be no faster and lose neighbours.
PARTITIONS = 1


def make_indexes(handle: Any, *, words: str, vectors: str) -> None:
    """Make the indexes of two columns that are missing: of a new dataset, of one that grew, after a kill."""
    name_of = {index.columns[0]: index.name for index in handle.list_indices()}
    if words not in name_of:
        create_word_index(handle, words)
    if vectors not in handle.schema.names or handle.count_rows() < VECTORS_INDEXED:
        return
    parts = handle.index_stats(name_of[vectors]).num_indices if vectors in name_of else 0
    if parts >= INDEX_PARTS or (not parts and handle.count_rows(f"{vectors} is not null") >= VECTORS_INDEXED):
        _index_vectors(handle, vectors)


def create_word_index(handle: Any, column: str) -> None:
    """Index the words of a column, stemmed."""
    from lancedb.index import FTS

    # Question words are dropped from the query instead of here, which measures better.
    words = FTS(with_position=False, stem=True, remove_stop_words=False, ascii_folding=True)
    handle.create_index(column, config=words, replace=True)


def _index_vectors(handle: Any, column: str) -> None:
    from lancedb.index import IvfSq

    handle.create_index(column, config=IvfSq(distance_type="cosine", num_partitions=PARTITIONS), replace=True)
