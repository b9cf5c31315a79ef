"""Why something is so: the decisions about a path or a subject by time, and what they replaced."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from cortex.transforms.memory.reality import paths_in
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row
from cortex.transforms.words.facts import Vocabulary

# Which edges a chain follows, and how they read from either end.
EDGE_WORDS = {
    "supersedes": ("replaces", "replaced by"),
    "contradicts": ("at odds with", "at odds with"),
    "refines": ("refines", "refined by"),
    "derived_from": ("derived from", "led to"),
}
_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "text", "reason", "rejected", "files", "tags", "status"),
    *("trust", "created_at", "superseded_by", "merged_into", "source_type", "evidence"),
]
# One name of several words: camelCase, snake_case, kebab-case.
_JOINED_NAME = re.compile(r"-{0,2}(?:[A-Za-z0-9]+[_-])+[A-Za-z0-9]+|[A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*")
_JOINTS = re.compile(r"[\s_-]+")
# A memory of these was taken away or stands in another one.
_HIDDEN = ("pruned",)


@dataclass(frozen=True)
class Relation:
    """How a step of a chain stands to another memory: `word` reads from the step to the other."""

    word: str
    memory_id: str


@dataclass(frozen=True)
class Step:
    """
    One decision of a chain.

    `reason` is why and `rejected` what was turned down, "" where not known; `at` when it was first said.
    """

    memory_id: str
    project_id: str
    memory_type: str
    text: str
    reason: str
    rejected: str
    status: str
    trust: str
    at: datetime
    relations: tuple[Relation, ...]


def looks_like_path(target: str) -> bool:
    """
    Return whether a target names a file or folder rather than a subject.

    >>> looks_like_path("src/poll.py"), looks_like_path("auth"), looks_like_path("why do we poll?")
    (True, False, False)
    """
    word = target.strip().strip("`")
    return bool(word) and " " not in word and ("/" in word or paths_in(word) == [word])


def memories_about(target: str, memories: pa.Table, policy: Policy) -> list[str]:
    """
    Return the ids of those MEMORIES that name a path, or all words of a subject, whatever became of them.

    A path is named by a file or a text that ends in it, or lies below it. A name of code is the same in
    whatever way its words are joined: `maxPackBytes`, `--max-pack-bytes`.
    """
    rows = chain_rows(memories)
    if looks_like_path(target):
        return [row["memory_id"] for row in rows if any(_is_of(path, target) for path in _paths_of(row))]
    vocabulary = Vocabulary.of(policy)
    wanted = vocabulary.fact(_apart(target))
    words = wanted.word_set | wanted.numbers
    if not words:
        return []
    joined = _joined(target) if _JOINED_NAME.fullmatch(target.strip()) else ""
    named = []
    for row in rows:
        text = " ".join((row["text"], *row["files"], *row["tags"]))
        fact = vocabulary.fact(f"{text} {_apart(text)}")
        if (joined and joined in _joined(text)) or (not joined and words <= fact.word_set | fact.numbers):
            named.append(row["memory_id"])
    return named


def _apart(text: str) -> str:
    """Return a text with the words apart that a hyphen joins: "env-var binding" is about an env var."""
    return text.replace("-", " ")


def _joined(text: str) -> str:
    """Return a text as one word, however its words are joined."""
    return _JOINTS.sub("", text).casefold()


def chain_of(
    memories: pa.Table, edges: pa.Table, seeds: Collection[str], policy: Policy, *, limit: int
) -> list[Step]:
    """
    Return the decisions among `seeds` and what they replaced, refined or are at odds with, oldest first.

    Takes MEMORIES and EDGES of some scopes. What holds (types with `is_in_force`) makes a chain; if no
    seed does, all seeds do. Of more than `limit` the newest stay.
    """
    rows = {row["memory_id"]: row for row in chain_rows(memories)}
    kinds = policy.types_with("is_in_force")
    relations = _relations(edges.to_pylist(), rows)
    deciding = {name for name in seeds if name in rows and rows[name]["memory_type"] in kinds}
    chosen = deciding or {name for name in seeds if name in rows}
    waiting = set(chosen)
    while waiting:  # what was replaced may have replaced something itself
        name = waiting.pop()
        near = {r.memory_id for r in relations[name] if rows[r.memory_id]["memory_type"] in kinds}
        waiting |= near - chosen
        chosen |= near
    ordered = sorted((rows[name] for name in chosen), key=lambda row: (row["created_at"], row["memory_id"]))
    return [_step(row, relations[row["memory_id"]]) for row in ordered[-limit:]]


def chain_rows(memories: pa.Table) -> list[Row]:
    """Return the rows of MEMORIES that may be told: also what was replaced, nothing that was merged away."""
    return [
        row
        for row in memories.select(_COLUMNS).to_pylist()
        if row["status"] not in _HIDDEN
        and row["merged_into"] is None
        and row["memory_type"] != "code"
        and (row["trust"] != "external" or bool(row["evidence"]) or row["source_type"] == "import")
    ]


def _relations(edges: Iterable[Row], rows: dict[str, Row]) -> dict[str, list[Relation]]:
    relations: dict[str, list[Relation]] = defaultdict(list)
    for edge in sorted(edges, key=lambda edge: str(edge["edge_id"])):
        words = EDGE_WORDS.get(edge["edge_type"])
        source, target = edge["source_id"], edge["target_id"]
        if words and source in rows and target in rows:
            relations[source].append(Relation(words[0], target))
            relations[target].append(Relation(words[1], source))
    return relations


def _step(row: Row, relations: Iterable[Relation]) -> Step:
    return Step(
        row["memory_id"],
        row["project_id"],
        row["memory_type"],
        row["text"],
        row["reason"] or "",
        row["rejected"] or "",
        row["status"],
        row["trust"],
        row["created_at"],
        tuple(dict.fromkeys(relations)),
    )


def _paths_of(row: Row) -> list[str]:
    return [*row["files"], *paths_in(row["text"])]


def _is_of(path: str, target: str) -> bool:
    wanted = target.strip().strip("`").removeprefix("./").strip("/").casefold()
    named = path.strip("/").casefold()
    return f"/{named}/".find(f"/{wanted}/") >= 0 or f"/{wanted}".endswith(f"/{named}")
