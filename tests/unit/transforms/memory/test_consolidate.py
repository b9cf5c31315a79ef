"""Consolidation without a model: the same fact becomes one, no detail is lost, other facts stay apart."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.identity import content_id
from cortex.transforms.memory.consolidate import merged_text, propose, wanted
from cortex.transforms.memory.fold import fold
from cortex.transforms.memory.link import FormerLinks, edges_between
from cortex.transforms.schemas import EDGES, EVENTS, JOURNAL, MEMORIES, VECTORS
from cortex.transforms.words.facts import Vocabulary
from tests.examples import cases, examples
from tests.rows import at, memories, memory

POLICY = read_policy(None)
MODEL = "all-MiniLM-L6-v2"
NO_VECTORS = VECTORS.empty()
NOW = at("2026-09-02")


def merges(*rows, found=NO_VECTORS):
    """Return (members, text) of each proposal."""
    made = propose(memories(*rows), found, POLICY, MODEL, NOW)
    told = [json.loads(entry["payload"]) for entry in made.to_pylist()]
    return sorted((tuple(payload["members"]), payload["text"]) for payload in told)


def facts(*texts, **chosen):
    return [memory(f"m{n}", text, content_hash=f"m{n}", **chosen) for n, text in enumerate(texts)]


def vectors(count, directions):
    rows = []
    for n, direction in zip(range(count), directions, strict=True):
        unit = np.array(direction, dtype=np.float64)
        rows.append(
            {"model": MODEL, "content_hash": f"m{n}", "vector": (unit / np.linalg.norm(unit)).tolist()}
        )
    return VECTORS.of(rows)


def same_direction(count):
    return vectors(count, [[1, 0]] * count)


def test_the_same_fact_with_more_detail_becomes_one_memory():
    rows = facts(
        "Uploads are resumed by chunk number",
        "Uploads are resumed by chunk number after a lost connection",
    )
    assert merges(*rows, found=same_direction(2)) == [
        (("m0", "m1"), "Uploads are resumed by chunk number after a lost connection")
    ]


def test_a_proposal_is_a_journal_row_with_an_id_of_its_content():
    rows = facts("Uploads are resumed by chunk number", "Uploads are always resumed by chunk number")
    made = propose(memories(*rows), same_direction(2), POLICY, MODEL, NOW, actor="nightly")
    assert made.schema.equals(JOURNAL.arrow)
    entry = made.to_pylist()[0]
    payload = entry["payload"]
    assert entry["memory_id"] == content_id("memory", "reef-1", "decision", "merge", "m0", "m1")
    assert entry["entry_id"] == content_id(
        NOW.isoformat(), "merge", "reef-1", entry["memory_id"], "nightly", payload
    )
    assert (entry["kind"], entry["actor"], entry["recorded_at"]) == ("merge", "nightly", NOW)
    assert payload == json.dumps(json.loads(payload), ensure_ascii=False, sort_keys=True)


def test_a_sentence_that_only_one_of_them_says_is_kept_word_for_word():
    rows = facts(
        "The importer reads the old ledger format with its checksum row. Broken rows are set aside.",
        "The importer reads the old ledger format. Broken rows are set aside with their line.",
    )
    [(_, text)] = merges(*rows, found=same_direction(2))
    assert text == rows[0]["text"] + " Broken rows are set aside with their line."


@cases(
    ("one", "other"),
    [
        (
            "Requests to the ledger time out after 30 seconds",
            "Requests to the ledger time out after 60 seconds",
        ),
        (
            "Use SQLite for the index of events and readings",
            "Use SQLite for the queue of events and readings",
        ),
        (
            "Commit generated clients to the main repository",
            "Never commit generated clients to the main repository",
        ),
        ("Enable the response cache for staging requests", "Disable the response cache for staging requests"),
        ("Call `read_all` before the ledger is closed", "Call `read_page` before the ledger is closed"),
    ],
)
def test_facts_that_differ_in_a_number_name_negation_or_swapped_word_stay_apart(one, other):
    assert merges(*facts(one, other), found=same_direction(2)) == []


def test_facts_of_few_shared_words_are_not_merged():
    assert merges(*facts("Logs rotate", "Logs rotate daily"), found=same_direction(2)) == []


def test_alike_words_without_alike_vectors_are_not_merged():
    rows = facts("Uploads are resumed by chunk number", "Uploads are always resumed by chunk number")
    assert merges(*rows, found=vectors(2, [[1, 0], [0.3, 1]])) == []


def test_without_vectors_words_alone_decide():
    rows = facts(
        "Uploads are resumed by chunk number", "Uploads are always resumed by chunk number", "Other words"
    )
    assert merges(*rows) == [(("m0", "m1"), rows[1]["text"])]


@cases(
    "chosen",
    [
        {"is_pinned": True},
        {"source_type": "explicit"},
        {"status": "archived"},
        {"status": "superseded"},
        {"project_id": "other"},
        {"memory_type": "gotcha"},
    ],
)
def test_what_is_said_on_purpose_inactive_and_memories_of_another_type_or_scope_are_left_alone(chosen):
    one, other = facts("Uploads are resumed by chunk number", "Uploads are always resumed by chunk number")
    assert merges(one, other | chosen, found=same_direction(2)) == []


def test_what_two_memories_rejected_must_not_differ():
    one, other = facts("Uploads are resumed by chunk number", "Uploads are always resumed by chunk number")
    found = same_direction(2)
    assert merges(one | {"rejected": "Whole files"}, other | {"rejected": "Byte ranges"}, found=found) == []
    assert len(merges(one | {"rejected": "Whole files"}, other, found=found)) == 1


def test_a_chain_of_neighbours_is_not_swallowed():
    # Each is near the next (40 degrees, .61 calibrated), the ends are not (80 degrees).
    turned = [[np.cos(angle), np.sin(angle)] for angle in np.radians([0, 40, 80])]
    rows = facts(*["Uploads are resumed by chunk number"] * 3)
    assert [members for members, _ in merges(*rows, found=vectors(3, turned))] == [("m0", "m1")]


def test_wanted_every_ten_extractions_or_above_eighty_active_ones():
    few, many = (memories(*(memory(f"m{n}") for n in range(count))) for count in (80, 81))
    assert [wanted(few, 9, POLICY), wanted(few, 10, POLICY), wanted(many, 0, POLICY)] == [False, True, True]
    archived = memories(*(memory(f"m{n}", status="archived") for n in range(100)))
    assert not wanted(archived, 0, POLICY)
    assert not wanted(MEMORIES.empty(), 0, POLICY)


# --- made data whose true clusters are known

WORDS = [f"{a}{b}{c}" for a in "bdkmrt" for b in "aou" for c in ("lin", "pex", "vor", "zug")]
DETAILS = ("weekly", "upstream", "verbatim", "offline", "lazily", "nightly")
clusters = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**31))


def clustered(count, size, seed):
    """Return facts of `count` subjects, each `size` times with other details, and the cluster of each."""
    chosen = np.random.default_rng(seed)
    words = [str(word) for word in chosen.permutation(WORDS)]
    rows, cluster_of = [], {}
    for cluster in range(count):
        core = words[cluster * 8 : cluster * 8 + 8]
        for telling in range(size):
            name = f"m{len(rows):02d}"
            detail = " ".join(DETAILS[:telling])
            text = f"{' '.join(core)} {cluster + 2} times {detail}".strip() + "."
            rows.append(memory(name, text, content_hash=name))
            cluster_of[name] = cluster
    return rows, cluster_of


@settings(max_examples=examples(25), deadline=None)
@given(clusters, st.randoms())
def test_true_clusters_are_found_whole_in_any_order_and_no_word_is_lost(made, shuffler):
    rows, cluster_of = clustered(*made)
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    proposed = merges(*shuffled)
    assert proposed == merges(*rows)
    expected = {}
    for name, cluster in cluster_of.items():
        expected.setdefault(cluster, []).append(name)
    assert [members for members, _ in proposed] == [
        tuple(names) for names in expected.values() if len(names) > 1
    ]
    texts = {row["memory_id"]: row["text"] for row in rows}
    for members, text in proposed:
        assert {word for name in members for word in texts[name].strip(".").split()} <= set(
            text.strip(".").split()
        )


@settings(max_examples=15, deadline=None)
@given(clusters)
def test_what_was_merged_is_not_proposed_again(made):
    rows, _ = clustered(*made)
    told = [
        {
            "entry_id": f"e{row['memory_id']}",
            "recorded_at": at("2026-09-01"),
            "kind": "remember",
            "project_id": "reef-1",
            "memory_id": row["memory_id"],
            "actor": "user",
            "payload": json.dumps({"text": row["text"], "memory_type": "decision", "category": "project"}),
        }
        for row in rows
    ]
    proposed = propose(fold(EVENTS.empty(), JOURNAL.of(told), POLICY), NO_VECTORS, POLICY, MODEL, NOW)
    folded = fold(EVENTS.empty(), JOURNAL.of(told + proposed.to_pylist()), POLICY)
    assert propose(folded, NO_VECTORS, POLICY, MODEL, at("2026-09-03")).num_rows == 0


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([*WORDS[:12], "7", "8"]), min_size=1, max_size=5), min_size=1, max_size=5
    )
)
def test_a_merged_text_says_every_word_and_number_once_said(sentences):
    vocabulary = Vocabulary.of(POLICY)
    longest, *others = (" ".join(words) + "." for words in sentences)
    text = merged_text(longest, others, vocabulary)
    said = vocabulary.fact(text)
    for other in others:
        new = vocabulary.fact(other)
        assert new.word_set <= said.word_set
        assert new.numbers <= said.numbers
    assert merged_text(text, others, vocabulary) == text


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**31))
def test_candidates_that_edges_tell_equal_those_of_all_vectors(size, seed):
    """Some memories have no vector, some edges were changed by a model, many are crowded."""
    chosen = np.random.default_rng(seed)
    texts = (
        "Use the `fold` of rows",
        "Use the `fold` of rows in the store",
        "Rows lie in the lake",
        "Poll all",
    )
    rows = memories(
        *(
            memory(f"m{n:02d}", texts[chosen.integers(4)], content_hash=f"h{n}", trust="assistant",
                   memory_type=("decision", "gotcha")[chosen.integers(2)])
            for n in range(size)
        )
    )  # fmt: skip
    ways = chosen.integers(-1, 2, (size, 3)) + 0.25
    unit = ways / np.linalg.norm(ways, axis=1, keepdims=True)
    known = VECTORS.of(
        [{"model": MODEL, "content_hash": f"h{n}", "vector": way.tolist()} for n, way in enumerate(unit)]
    )
    known = known.filter(pa.array(chosen.random(size) < 0.9))
    edges = [
        {**edge, "rule": "judged_by_model", "strength": 1.0} if chosen.random() < 0.1 else edge
        for edge in edges_between(rows, known, POLICY, MODEL).to_pylist()
    ]
    has_vector = pc.is_in(rows["content_hash"], known["content_hash"].combine_chunks())
    linked = FormerLinks(rows.append_column("has_vector", has_vector), EDGES.of(edges))
    whole = propose(rows, known, POLICY, MODEL, NOW)
    assert propose(rows, known, POLICY, MODEL, NOW, linked=linked).equals(whole)
