"""Who said a memory, in words: a colleague by name, and whether a team reviewed it."""

from cortex.transforms.vocabulary import TEAM_LAYER, WITHDRAWN_LAYER, Row

COLLEAGUE = "colleague"
LONGEST_AUTHORS = 66  # characters, of all names together


def authors_of(memory: Row) -> list[str]:
    """Return who proposed a row of MEMORIES that a team holds in its repository, sorted; none else."""
    layers = (place["layer"] for place in memory["evidence"])
    return sorted({layer.removeprefix(TEAM_LAYER) for layer in layers if layer.startswith(TEAM_LAYER)})


def speaker_of(memory: Row) -> str:
    """
    Return who said a row of MEMORIES, in words: a colleague by name, and whether a team reviewed it.

    >>> speaker_of({"trust": "colleague", "evidence": [{"layer": "team:Ana Lopez"}]})
    'Ana Lopez (reviewed)'
    """
    authors = authors_of(memory)
    if memory["trust"] == COLLEAGUE and authors:
        return f"{' and '.join(authors)[:LONGEST_AUTHORS]} (reviewed)"
    return f"{memory['trust']} (reviewed)" if authors else str(memory["trust"])


def author_of_layer(layer: str) -> str:
    """
    Return a layer of evidence as people read it: of a file of a repository its author.

    >>> author_of_layer("team:Ana Lopez"), author_of_layer("withdrawn:Bo"), author_of_layer("layer2:en")
    ('Ana Lopez, reviewed', 'Bo, withdrawn', 'layer2:en')
    """
    for start, words in ((TEAM_LAYER, "reviewed"), (WITHDRAWN_LAYER, "withdrawn")):
        if layer.startswith(start):
            return f"{layer.removeprefix(start)}, {words}"
    return layer
