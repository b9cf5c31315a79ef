"""Items that a person may resolve (disputed memories, stale claims, proposed merges), and those they
resolved."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pyarrow as pa

from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Dismiss, Merge, entries_in
from cortex.transforms.memory.link import contrary_rules
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import BY_A_PERSON, EDGES, PROPOSED_BY_MODEL, UNSURE_BY_MODEL, Row

CONTRADICTION, STALE, MERGE = "contradiction", "stale", "merge"


@dataclass(frozen=True)
class Item:
    """
    One item to resolve.

    `memory_ids` are in dispute (the older first), a claim, or to be merged; `texts` are theirs. `offer` says
    what accepting does, `detail` is the repository's reason, the merged text, or the rule of a contradiction.
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
    What a person said on purpose is disputed whatever its type, and so is what a language model says is no
    longer true, or at odds without its knowing which holds. Of pairs that rules found a memory is in one, the
    surest, and there are at most `review_contradictions_most`: who settles one is asked about the next.
    """
    import pyarrow.compute as pc

    disputed = policy.types_with("is_disputed")
    columns = ["memory_id", "memory_type", "project_id", "text", "updated_at", "created_at", "source_type"]
    active = memories.filter(pc.field("status") == "active").select(columns).to_pylist()
    rows = {row["memory_id"]: row for row in active}
    items: list[Item] = []
    by_rules: list[Item] = []
    is_listed = (pc.field("edge_type") == "contradicts") | (pc.field("rule") == UNSURE_BY_MODEL)
    for edge in edges.filter(is_listed).to_pylist():
        ends = [rows[name] for name in (edge["target_id"], edge["source_id"]) if name in rows]
        is_by_model = edge["rule"] in (PROPOSED_BY_MODEL, UNSURE_BY_MODEL)
        is_asked = is_by_model or all(
            end["memory_type"] in disputed or end["source_type"] == "explicit" for end in ends
        )
        if len(ends) < 2 or not is_asked:
            continue
        if edge["rule"] != PROPOSED_BY_MODEL:
            ends.sort(key=_age)
        old, new = ends
        ids, texts = (old["memory_id"], new["memory_id"]), (old["text"], new["text"])
        offer = f"{ids[1][:6]} takes the place of {ids[0][:6]}"
        project_id, rule = old["project_id"], edge["rule"]
        item = Item(CONTRADICTION, project_id, ids, texts, offer, rule, is_by_model=is_by_model)
        (items if is_by_model else by_rules).append(item)
    taken = {name for item in items for name in item.memory_ids}
    most = int(policy.threshold("review_contradictions_most"))
    by_rules.sort(
        key=lambda item: tuple(_age(rows[name]) for name in reversed(item.memory_ids)), reverse=True
    )
    surest_first = contrary_rules(policy)
    for item in sorted(by_rules, key=lambda item: surest_first.index(item.detail)):
        if taken.isdisjoint(item.memory_ids) and most > 0:
            items.append(item)
            taken.update(item.memory_ids)
            most -= 1
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


def dismissal(item: Item) -> Dismiss:
    """Return the journal entry that leaves an item as it is, for good."""
    return Dismiss(sorted(item.memory_ids), item.kind, item.detail if item.kind == STALE else None)


def dismissed(journal: pa.Table) -> frozenset[str]:
    """Return the ids of the items that JOURNAL rows dismissed."""
    entries = [entry for _, entry in entries_in(journal, Dismiss)]
    return frozenset(_id_of(entry.item or "", entry.memory_ids, entry.reason or "") for entry in entries)


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
