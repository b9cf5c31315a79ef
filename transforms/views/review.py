"""Items that a person may resolve (disputed memories, stale claims, proposed merges), and those they
resolved."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cortex.hooks.evidence.text import word_set
from cortex.hooks.prose.memory_types import SETTLING_TYPES
from cortex.transforms.errors import UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Dismiss, ImportMemory, Merge, dismissals_in_force, entries_in
from cortex.transforms.memory.link import contrary_rules
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import (
    BY_A_PERSON,
    EDGES,
    GLOBAL_SCOPE,
    PROPOSED_BY_MODEL,
    SOURCE_TYPES,
    UNSURE_BY_MODEL,
    Row,
)
from cortex.transforms.words.sentences import share_of_all

CONTRADICTION, STALE, MERGE, EVERYWHERE = "contradiction", "stale", "merge", "global"
# Two texts that share a smaller part of their words are not compared by what they say.
_MIN_SHARE = 0.2


@dataclass(frozen=True)
class Item:
    """
    One item to resolve.

    `memory_ids` are in dispute (the older first), a claim, to be merged, or wishes of several projects, which
    may become one of all; `texts` are theirs. `offer` says what accepting does, `detail` is the repository's
    reason, the merged or global text, or the rule of a contradiction.
    """

    kind: str
    project_id: str
    memory_ids: tuple[str, ...]
    texts: tuple[str, ...]
    offer: str
    detail: str = ""
    entry: Row | None = None  # the journal entry that a merge would be
    is_by_model: bool = False  # a language model proposes it, or cannot tell

    @property
    def item_id(self) -> str:
        """Return the id by which a person resolves it; the same as long as the memories and the reason
        are."""
        return _id_of(self.kind, self.memory_ids, self.detail if self.kind == STALE else "")


def disputes(memories: pa.Table, edges: pa.Table, policy: Policy) -> list[Item]:
    """
    Return the pairs of active memories at odds, the newer offered in the place of the older.

    Which types are disputed says the policy: an overview is not refuted by the change that came after it.
    What a person said on purpose is disputed whatever its type, and so is a claim that a language model says
    is no longer true, or at odds without its knowing which holds. Where the work stood (a plan, a record) is
    overtaken by what came later, without being asked about: of 26 pairs of real sessions two judges called 9
    right, 13 half right and 4 wrong, of the 8 that are asked about 4, 4 and none.
    A memory is in one pair, the surest, and of those that rules found there are at most
    `review_contradictions_most`: who settles one is asked about the next.
    """
    import pyarrow.compute as pc

    disputed, claims = policy.types_with("is_disputed"), policy.types_with("is_claim")
    columns = ["memory_id", "memory_type", "project_id", "text", "updated_at", "created_at", "source_type"]
    active = memories.filter(pc.field("status") == "active").select(columns).to_pylist()
    rows = {row["memory_id"]: row for row in active}
    pairs: list[Item] = []
    is_listed = (pc.field("edge_type") == "contradicts") | (pc.field("rule") == UNSURE_BY_MODEL)
    for edge in edges.filter(is_listed).to_pylist():
        ends = [rows[name] for name in (edge["target_id"], edge["source_id"]) if name in rows]
        if len(ends) < 2:
            continue
        is_by_model = edge["rule"] in (PROPOSED_BY_MODEL, UNSURE_BY_MODEL)
        if edge["rule"] != PROPOSED_BY_MODEL:
            ends.sort(key=_age)
        old, new = ends
        types, asked = (claims, ends[:1]) if is_by_model else (disputed, ends)
        if not all(end["memory_type"] in types or end["source_type"] == "explicit" for end in asked):
            continue
        ids, texts = (old["memory_id"], new["memory_id"]), (old["text"], new["text"])
        offer = f"{ids[1][:6]} takes the place of {ids[0][:6]}"
        project_id, rule = old["project_id"], edge["rule"]
        item = Item(CONTRADICTION, project_id, ids, texts, offer, rule, is_by_model=is_by_model)
        pairs.append(item)
    pairs.sort(key=lambda item: tuple(_age(rows[name]) for name in reversed(item.memory_ids)), reverse=True)
    surest_first = contrary_rules(policy)
    pairs.sort(key=lambda item: -1 if item.is_by_model else surest_first.index(item.detail))
    items: list[Item] = []
    taken: set[str] = set()
    most = int(policy.threshold("review_contradictions_most"))
    for item in pairs:
        if taken.isdisjoint(item.memory_ids) and (item.is_by_model or most > 0):
            items.append(item)
            taken.update(item.memory_ids)
            most -= not item.is_by_model
    return sorted(items, key=lambda item: item.memory_ids)


def _age(row: Row) -> tuple[object, ...]:
    return row["updated_at"], row["created_at"], row["memory_id"]


def stale_claims(memories: pa.Table, doubts: Iterable[Doubt]) -> list[Item]:
    """Return each active memory that its repository no longer agrees with."""
    import pyarrow.compute as pc

    columns = ["memory_id", "project_id", "text"]
    active = memories.filter(pc.field("status") == "active").select(columns).to_pylist()
    rows = {row["memory_id"]: row for row in active}
    return [
        Item(
            STALE,
            rows[doubt.memory_id]["project_id"],
            (doubt.memory_id,),
            (rows[doubt.memory_id]["text"],),
            "it is archived: out of the brief, still found",
            doubt.reason,
        )
        for doubt in doubts
        if doubt.memory_id in rows
    ]


def merges(memories: pa.Table, proposed: pa.Table, same: Collection[tuple[str, str]] = ()) -> list[Item]:
    """
    Return each merge that a consolidation would make, or a person may; takes its JOURNAL rows.

    `same` are the pairs that say the same, by a language model.
    """
    texts = dict(zip(memories["memory_id"].to_pylist(), memories["text"].to_pylist(), strict=True))
    items = []
    for row, merge in entries_in(proposed, Merge):
        members = tuple(sorted(merge.members))
        sources = tuple(str(texts[name]) for name in members)
        offer = f"{len(members)} become one"
        is_by_model = any(set(pair) <= set(members) for pair in same)
        items.append(
            Item(MERGE, row["project_id"], members, sources, offer, merge.text, row, is_by_model=is_by_model)
        )
    return items


def global_proposals(memories: pa.Table, policy: Policy) -> list[Item]:
    """
    Return what may hold in every project: a wish that a person has in two, or that a model takes for such.

    Takes MEMORIES of all scopes. Wishes are the rules in a person's words; they are the same by the measure
    that `remember` has (`known_as`). What a language model marks may be a decision too, if the person said
    it. What a global memory says already is not asked about.
    """
    import pyarrow.compute as pc

    is_persons = (pc.field("status") == "active") & (pc.field("trust") == "user")
    columns = ["memory_id", "memory_type", "project_id", "text", "category", "created_at", "source_type"]
    rows = memories.filter(is_persons).select([*columns, "status"])
    is_global = pc.field("project_id") == GLOBAL_SCOPE
    known = rows.filter(is_global)
    own = rows.filter(~is_global).sort_by([("created_at", "ascending"), ("memory_id", "ascending")])
    groups: list[list[Row]] = []
    for row in own.to_pylist():
        is_proposed = row["category"] == "proposed" and row["memory_type"] in SETTLING_TYPES
        if not (row["memory_type"] == "pattern" or is_proposed) or _known_in(row["text"], known, policy):
            continue
        others = [group for group in groups if _may_say_the_same(row, group[0])]
        names = pa.array([group[0]["memory_id"] for group in others], pa.string())
        heads = rows.filter(pc.field("memory_id").isin(names))
        head = _known_in(row["text"], heads, policy) if others else None
        home = next((group for group in others if group[0]["memory_id"] == head), None)
        if home is None:
            groups.append([row])
        else:
            home.append(row)
    return [item for group in groups for item in _everywhere(group)]


def _known_in(text: str, memories: pa.Table, policy: Policy) -> str | None:
    # Imported here: it brings the redactor, which no question needs.
    from cortex.transforms.memory.quality import known_as

    known = known_as(text, memories, policy, SOURCE_TYPES) if memories.num_rows else None
    return known.memory_id if known else None


def _may_say_the_same(row: Row, other: Row) -> bool:
    return share_of_all(word_set(row["text"]), word_set(other["text"])) >= _MIN_SHARE


def _everywhere(group: Sequence[Row]) -> Iterator[Item]:
    """Yield the item of wishes that say the same, if they are of two projects or a model marks one."""
    projects = {row["project_id"] for row in group}
    is_by_model = len(projects) == 1
    if is_by_model and not any(row["category"] == "proposed" for row in group):
        return
    ids = tuple(row["memory_id"] for row in group)
    # One of them holds the words of the others: the longest says all.
    text = max((row["text"] for row in group), key=lambda text: (len(text), text))
    texts = tuple(row["text"] for row in group)
    where = "it is said in one project" if is_by_model else f"it is said in {len(projects)} projects"
    offer = f"it holds in every project; {where}"
    yield Item(EVERYWHERE, group[-1]["project_id"], ids, texts, offer, text, is_by_model=is_by_model)


def without_declined(items: Iterable[Item], journal: pa.Table) -> list[Item]:
    """Return what may hold everywhere without what a person declined for some of its memories."""
    declined = [set(entry.memory_ids) for entry in dismissals_in_force(journal) if entry.item == EVERYWHERE]
    return [item for item in items if not any(ids <= set(item.memory_ids) for ids in declined)]


def global_memory(members: Sequence[Row], text: str) -> ImportMemory:
    """
    Return the journal entry of the memory that holds everywhere: a person's, with all their evidence.

    Raises UsageError if none of `members` says `text` any more.
    """
    # Imported here: folding is of a run, and most questions look at doubts alone.
    from cortex.transforms.memory.fold import import_of

    first = min(members, key=lambda row: (row["created_at"], row["memory_id"]))
    longest = next((row for row in members if row["text"] == text), None)
    if longest is None:
        raise UsageError(f"'{text}' was changed since it was proposed.", "Run `cortex review` again.")
    places = {place["turn_id"]: place for row in members for place in row["evidence"]}
    whole = {
        **longest,
        "project_id": GLOBAL_SCOPE, "category": GLOBAL_SCOPE, "source_type": "explicit", "trust": "user",
        "status": "active", "created_at": first["created_at"],
        "updated_at": max(row["updated_at"] for row in members),
        "evidence": [*places.values()], "initial_confidence": 1.0, "access_count": 0,
        "files": sorted({name for row in members for name in row["files"]}),
        "tags": sorted({name for row in members for name in row["tags"]}),
    }  # fmt: skip
    return import_of(whole)


def dismissal(item: Item) -> Dismiss:
    """Return the journal entry that leaves an item as it is, for good."""
    return Dismiss(sorted(item.memory_ids), item.kind, item.detail if item.kind == STALE else None)


def dismissed(journal: pa.Table) -> dict[str, Dismiss]:
    """Return what JOURNAL rows dismissed, by the id of the item."""
    return {
        _id_of(entry.item or "", entry.memory_ids, entry.reason or ""): entry
        for entry in dismissals_in_force(journal)
    }


def unresolved(items: Iterable[Item], journal: pa.Table) -> list[Item]:
    """Return the items that nobody dismissed."""
    known = dismissed(journal)
    return [item for item in items if item.item_id not in known]


def doubts_left(doubts: Iterable[Doubt], journal: pa.Table) -> list[Doubt]:
    """Return the doubts that nobody dismissed; of another reason, a doubt is another one."""
    known = dismissed(journal)
    return [doubt for doubt in doubts if _id_of(STALE, [doubt.memory_id], doubt.reason) not in known]


def resolved_edges(edges: pa.Table, journal: pa.Table) -> pa.Table:
    """Return EDGES where pairs that a person let stand side by side are related and not at odds."""
    known = dismissed(journal)
    if not known:
        return edges
    rows = edges.to_pylist()
    for row in rows:
        ends = (row["source_id"], row["target_id"])
        if row["edge_type"] == "contradicts" and _id_of(CONTRADICTION, ends, "") in known:
            row.update(edge_type="relates_to", rule=BY_A_PERSON, edge_id=content_id(*ends, "relates_to"))
    return EDGES.of(sorted(rows, key=lambda row: str(row["edge_id"])))


def _id_of(kind: str, memory_ids: Iterable[str], reason: str) -> str:
    return content_id("review", kind, *sorted(memory_ids), reason)
