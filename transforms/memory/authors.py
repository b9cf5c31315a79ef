"""Who said a memory, in words: a colleague by name, and whether a team reviewed it."""

from cortex.transforms.vocabulary import SHARED_LAYER, TEAM_LAYER, WITHDRAWN_LAYER, Row

COLLEAGUE = "colleague"
LONGEST_AUTHORS = 66  # characters, of all names together
HELD_LAYERS = (TEAM_LAYER, SHARED_LAYER)
_WORDS = ((TEAM_LAYER, "reviewed"), (SHARED_LAYER, "shared"), (WITHDRAWN_LAYER, "withdrawn"))


def authors_of(memory: Row) -> list[str]:
    """Return the colleagues who hold a row of MEMORIES, those of a repository or a team's place; sorted."""
    layers = (place["layer"] for place in memory["evidence"])
    return sorted({layer.partition(":")[2] for layer in layers if layer.startswith(HELD_LAYERS)})


def standing_of(memory: Row) -> str:
    """Return how colleagues hold a row of MEMORIES: reviewed, or only shared; empty if they do not."""
    layers = [place["layer"] for place in memory["evidence"]]
    held = (words for start, words in _WORDS[:2] if any(layer.startswith(start) for layer in layers))
    return next(held, "")


def speaker_of(memory: Row) -> str:
    """
    Return who said a row of MEMORIES, in words: a colleague by name, and whether a team reviewed it.

    >>> speaker_of({"trust": "colleague", "evidence": [{"layer": "team:Ana Lopez"}]})
    'Ana Lopez (reviewed)'
    """
    standing = standing_of(memory)
    if memory["trust"] == COLLEAGUE and standing:
        return f"{' and '.join(authors_of(memory))[:LONGEST_AUTHORS]} ({standing})"
    return f"{memory['trust']} ({standing})" if standing else str(memory["trust"])


def author_of_layer(layer: str) -> str:
    """
    Return a layer of evidence as people read it: of a colleague's file its author.

    >>> author_of_layer("team:Ana Lopez"), author_of_layer("withdrawn:Bo"), author_of_layer("layer2:en")
    ('Ana Lopez, reviewed', 'Bo, withdrawn', 'layer2:en')
    """
    for start, words in _WORDS:
        if layer.startswith(start):
            return f"{layer.removeprefix(start)}, {words}"
    return layer


def copies_of(memory: Row) -> list[str]:
    """Return where colleagues hold a row of MEMORIES, in words, sorted: what is erased here stays there."""
    places = memory["evidence"]
    git = {place["file"] for place in places if place["layer"].startswith(TEAM_LAYER)}
    shared = {place["layer"].partition(":")[2] for place in places if place["layer"].startswith(SHARED_LAYER)}
    return [
        *(f"{file} on the default branch and in its history" for file in sorted(git)),
        *(f"what {author} shares at the team's place" for author in sorted(shared)),
    ]
