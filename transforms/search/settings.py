"""What the policy says to a search, as the search takes it and as the search index holds it for the hook."""

import json

from cortex.hooks.evidence.question import SearchSettings
from cortex.transforms.policy import Policy

# The signal of signal_patterns.csv and the phrases of phrases.csv that a search looks for in each language:
# a sentence says why or names a cause, only puts something forward, says what comes next.
_GIVES_REASON, _NAMES_CAUSE, _PHRASES = "gives_reason", "names_cause", ("suggests", "announces")


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
    return SearchSettings(document["numbers"], document["dropped"], document["patterns"])


def _document(policy: Policy) -> str:
    numbers = {str(name): float(row["value"] or 0.0) for (name,), row in policy.rows["ranking"].items()}
    dropped = sorted(str(row["word"]) for row in policy.rows["query_words"].values())
    return json.dumps({"numbers": numbers, "dropped": dropped, "patterns": _patterns(policy)}, sort_keys=True)


def _patterns(policy: Policy) -> dict[str, str]:
    asked: dict[str, list[str]] = {}
    for row in policy.rows["question_patterns"].values():
        asked.setdefault(str(row["asks"]), []).append(str(row["pattern"]))
    signals = policy.rows["signal_patterns"].values()
    reasons = [str(row["pattern"]) for row in signals if row["signal"] == _GIVES_REASON]
    patterns = {**asked, _GIVES_REASON: [*reasons, *_phrases(policy, _NAMES_CAUSE)]}
    patterns.update({name: _phrases(policy, name) for name in _PHRASES})
    return {name: "|".join(parts) for name, parts in patterns.items()}


def _phrases(policy: Policy, name: str) -> list[str]:
    return [str(row["pattern"]) for row in policy.rows["phrases"].values() if row["name"] == name]
