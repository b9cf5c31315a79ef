"""What the policy says to a search, as the search takes it and as the search index holds it for the hook."""

import json

from cortex.hooks.evidence.question import SearchSettings
from cortex.transforms.policy import Policy

# The signal of signal_patterns.csv and the phrases of phrases.csv that a search looks for in each language:
# a sentence says why or names a cause, only puts something forward, says what comes next.
_GIVES_REASON, _NAMES_CAUSE = "gives_reason", "names_cause"
# What a search looks for by a name: how questions ask, then how sentences say something.
_SEARCHED = ("reason", "means", "work", "open", _GIVES_REASON, "suggests", "announces")


def search_settings(policy: Policy) -> SearchSettings:
    """Return the numbers, the words without a topic and the patterns of a policy; made once for each."""
    return policy.derived(_settings)


def settings_document(policy: Policy) -> str:
    """Return the same as text, for the search index."""
    return policy.derived(_document)


def model_answers(policy: Policy, model: str) -> tuple[float, float] | None:
    """
    Return the cosine and the share of words that would each answer alone, by an embedding model.

    None without a model; a model that calibration.csv does not know hides nothing.
    """
    if not model:
        return None
    row = policy.rows["calibration"].get((model,), {})
    return float(row.get("answer_cosine") or 0.0), float(row.get("answer_share") or 0.0)


def _settings(policy: Policy) -> SearchSettings:
    document = json.loads(settings_document(policy))
    return SearchSettings(**document)


def _document(policy: Policy) -> str:
    numbers = {str(name): float(row["value"] or 0.0) for (name,), row in policy.rows["ranking"].items()}
    dropped = sorted(str(row["word"]) for row in policy.rows["query_words"].values())
    small_words = {
        str(row["language"]): str(row["words"]).split() for row in policy.rows["language_words"].values()
    }
    document = {
        "numbers": numbers,
        "dropped": dropped,
        "small_words": small_words,
        "patterns": _patterns(policy),
    }
    return json.dumps(document, sort_keys=True)


def _patterns(policy: Policy) -> dict[str, dict[str, str]]:
    rows = [(row["asks"], row) for row in policy.rows["question_patterns"].values()]
    rows += [(row["signal"], row) for row in policy.rows["signal_patterns"].values()]
    rows += [
        (_GIVES_REASON if row["name"] == _NAMES_CAUSE else row["name"], row)
        for row in policy.rows["phrases"].values()
    ]
    patterns: dict[str, dict[str, list[str]]] = {}
    for name, row in rows:
        if name in _SEARCHED:
            patterns.setdefault(str(name), {}).setdefault(str(row["language"]), []).append(
                str(row["pattern"])
            )
    return {
        name: {language: "|".join(parts) for language, parts in of_name.items()}
        for name, of_name in patterns.items()
    }
