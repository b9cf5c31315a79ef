"""What may be learned without a person who looks at it: the quality gate of `learn`."""

from collections.abc import Collection, Mapping

from cortex.transforms.memory.quality import SECRET_MARK, flaw_of
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.search.index_text import unspaced_runs
from cortex.transforms.words.facts import WORD
from cortex.transforms.words.self_contained import reason_not_alone


def flaw_of_lesson(text: str, policy: Policy, word_ranks: Mapping[str, int]) -> str:
    """
    Return what keeps a text from being learned, as a clause; empty if nothing does.

    Stricter than `flaw_of`: a lesson is written by a program, and nobody looks again. It holds no secret at
    all, has `learn_words_min` words and can be read alone. It names something: a name, a number, or a word
    that is not among the `learn_common_words` most frequent of English (`word_ranks`: places from 1).
    """
    if kinds := kinds_of_secret(text):
        return f"the text holds a secret ({', '.join(sorted(set(kinds)))})"
    if SECRET_MARK.search(text):
        return "the text holds a secret"
    if flaw := flaw_of(text, policy):
        return flaw
    words = [word.rstrip("./:'’-").casefold() for word in WORD.findall(text)]
    if not unspaced_runs(text):
        if len(words) < policy.threshold("learn_words_min"):
            return "the text is too short to be a statement"
        if not _names_something(words, policy, word_ranks):
            return "the text names nothing that it is about"
    return reason_not_alone(text, policy, is_persons=True)


def _names_something(words: Collection[str], policy: Policy, word_ranks: Mapping[str, int]) -> bool:
    common = policy.threshold("learn_common_words")
    dropped = set(policy.tables["query_words"]["word"].to_pylist())
    topics = (word for word in words if word and word not in dropped)
    return any(word_ranks.get(word, common + 1) > common for word in topics)
