"""The rule for ids that a person types: the beginning is enough; if it means several, they are listed."""

from collections.abc import Mapping, Sequence

from cortex.transforms.errors import NotFound, UsageError

MIN_ID_CHARS = 4  # as `list` and `show` print them they have 6; four tell a hundred memories apart, mostly
MATCHES_LISTED = 8
_WORDS_CHARS = 60


def typed_id(target: str) -> str:
    """
    Return what a person typed or copied as an id, as ids are written.

    >>> typed_id(" [A1B2C3] ")
    'a1b2c3'
    """
    return target.strip().strip("[]`").lower()


def several(word: str, kind: str, texts: Mapping[str, str]) -> UsageError:
    """
    Return the error for the beginning of several ids: each as far as it must be typed, with its words.

    `kind` is the plural noun for them, `texts` has what each says by its whole id.
    """
    from cortex.transforms.words.sentences import excerpt  # its patterns take longer than a list does

    short = short_ids(sorted(texts), least=max(6, len(word) + 1))
    lines = [f"\n    {short[name]}  {excerpt(texts[name], _WORDS_CHARS)}" for name in sorted(texts)]
    more = f"\n    … and {len(lines) - MATCHES_LISTED} more" if len(lines) > MATCHES_LISTED else ""
    listed = "".join(lines[:MATCHES_LISTED]) + more
    return UsageError(
        f"{len(texts)} {kind} have ids that begin with '{word}':{listed}", "Give more of the id."
    )


def begun_by(word: str, texts: Mapping[str, str], kind: str, missing: NotFound) -> str:
    """
    Return the only id of `texts` that a word begins; `kind` and `texts` are as for `several`.

    Raises `missing` if none begins so or the word is too short, UsageError for several.
    """
    word = typed_id(word)
    matches = {name: text for name, text in texts.items() if name.lower().startswith(word)}
    if len(word) < MIN_ID_CHARS or not matches:
        raise missing
    if len(matches) > 1:
        raise several(word, kind, matches)
    return next(iter(matches))


def short_ids(ids: Sequence[str], least: int = 6) -> dict[str, str]:
    """
    Return id → its beginning, as long as it takes for all of them to differ.

    >>> short_ids(["0123456789", "0123457890"])
    {'0123456789': '0123456', '0123457890': '0123457'}
    """
    length = least
    while len({name[:length] for name in ids}) < len(set(ids)):
        length += 1
    return {name: name[:length] for name in ids}
