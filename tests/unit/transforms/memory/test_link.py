"""Linking: true neighbours found in made data, relations named by rule, and the replay laws."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.errors import UnknownValue
from cortex.transforms.identity import content_id
from cortex.transforms.memory.link import FormerLinks, edges_between, near_rows, neighbourhood
from cortex.transforms.schemas import EDGES, MEMORIES, VECTORS
from cortex.transforms.words.slots import SlotParser
from tests.examples import examples
from tests.rows import memories, memory

POLICY = read_policy(None)
MODEL = "all-MiniLM-L6-v2"
NO_VECTORS = VECTORS.empty()


def vectors(**by_hash):
    """Return VECTORS rows with the given directions, scaled to unit length."""
    rows = []
    for name, direction in by_hash.items():
        unit = np.array(direction, dtype=np.float64)
        rows.append({"model": MODEL, "content_hash": name, "vector": (unit / np.linalg.norm(unit)).tolist()})
    return VECTORS.of(rows)


def fact(name, text="words", **chosen):
    return memory(name, text, content_hash=name, **chosen)


def seen_in(turn_id):
    return [
        {
            "turn_id": turn_id,
            "session_id": "s1",
            "file": "/t/s1.jsonl",
            "lines": [1],
            "layer": "llm:small@session-1",
        }
    ]


def only_edge(*rows, found=None):
    """Return (type, source, target, rule) of the one edge among rows that all point the same way."""
    made = edges_between(
        memories(*rows), found or vectors(**{row["memory_id"]: [1, 0.2] for row in rows}), POLICY, MODEL
    )
    assert made.num_rows == 1
    edge = made.to_pylist()[0]
    return edge["edge_type"], edge["source_id"], edge["target_id"], edge["rule"]


def test_an_edge_has_calibrated_strength_and_an_id_made_of_its_ends():
    # cos 45 degrees is .7071; from .4 to 1 that is .5118
    made = edges_between(memories(fact("a"), fact("b")), vectors(a=[1, 0], b=[1, 1]), POLICY, MODEL)
    assert made.schema.equals(EDGES.arrow)
    assert made.to_pylist() == [
        {
            "edge_id": content_id("a", "b", "relates_to"),
            "project_id": "reef-1",
            "source_id": "a",
            "target_id": "b",
            "edge_type": "relates_to",
            "strength": 0.5118,
            "rule": "similarity",
        }
    ]


def test_below_the_least_similarity_there_is_no_edge():
    # .46 is calibrated .1
    just = [0.461, (1 - 0.461**2) ** 0.5]
    under = [0.459, (1 - 0.459**2) ** 0.5]
    assert (
        edges_between(memories(fact("a"), fact("b")), vectors(a=[1, 0], b=just), POLICY, MODEL).num_rows == 1
    )
    assert (
        edges_between(memories(fact("a"), fact("b")), vectors(a=[1, 0], b=under), POLICY, MODEL).num_rows == 0
    )


def test_scopes_inactive_memories_and_raw_code_are_kept_apart():
    rows = [
        fact("a"),
        fact("b", project_id="other"),
        fact("c", status="archived"),
        fact("d", memory_type="code"),
    ]
    same = vectors(a=[1, 0], b=[1, 0], c=[1, 0], d=[1, 0])
    assert edges_between(memories(*rows), same, POLICY, MODEL).num_rows == 0


def test_vectors_of_another_model_are_not_compared():
    other = VECTORS.of(
        [row | {"model": "voyage-3.5-lite"} for row in vectors(a=[1, 0], b=[1, 0]).to_pylist()]
    )
    assert edges_between(memories(fact("a"), fact("b")), other, POLICY, MODEL).num_rows == 0
    assert edges_between(memories(fact("a"), fact("b")), other, POLICY, "voyage-3.5-lite").num_rows == 1


def test_a_model_without_calibration_is_an_error():
    with pytest.raises(UnknownValue, match="calibrated model"):
        edges_between(memories(fact("a")), vectors(a=[1, 0]), POLICY, "word2vec")


def test_nothing_links_to_nothing():
    assert edges_between(MEMORIES.empty(), NO_VECTORS, POLICY, MODEL).equals(EDGES.empty())


def test_without_vectors_shared_files_and_names_link():
    rows = [
        fact(
            "a",
            "The lease lives in storage/store.py",
            files=["storage/store.py"],
        ),
        fact("b", "read_manifest must run under storage/store.py"),
        fact("c", "read_manifest is slow"),
        fact("d", "Nothing of the kind"),
    ]
    made = edges_between(memories(*rows), NO_VECTORS, POLICY, MODEL).to_pylist()
    assert sorted(
        (edge["source_id"], edge["target_id"], edge["strength"], edge["rule"]) for edge in made
    ) == [
        ("a", "b", 0.5, "shared_terms"),
        ("b", "c", 0.5, "shared_terms"),
    ]


def test_a_memory_not_embedded_yet_links_by_what_it_shares_with_embedded_ones():
    rows = [fact("a", "fold() in fold.py"), fact("b", "fold.py is pure"), fact("c", "fold.py is quick")]
    made = edges_between(memories(*rows), vectors(a=[1, 0], b=[0, 1]), POLICY, MODEL).to_pylist()
    assert {(edge["source_id"], edge["target_id"]) for edge in made} == {("a", "c"), ("b", "c")}


def test_choosing_what_another_decision_rejected_contradicts_it():
    a = fact("a", "Use SQLite for the job queue instead of Redis", rejected="Redis")
    b = fact("b", "Use Redis for the job queue")
    assert only_edge(a, b) == ("contradicts", "a", "b", "rejected_there_chosen_here")


def test_two_that_each_name_the_others_choice_beside_their_own_contradict():
    a, b = (
        fact("a", "Use pnpm, not npm, in the web folder"),
        fact("b", "Use npm, not pnpm, in the web folder"),
    )
    assert only_edge(a, b) == ("contradicts", "a", "b", "each_chooses_what_the_other_rejects")
    c = fact("c", "Use pnpm, not yarn, in the web folder")
    assert only_edge(a, c)[0] == "relates_to"


def test_turning_down_only_a_thing_is_no_contradiction_of_it():
    a = fact("a", "Tar archives are read on disk and inside others", rejected="Only embedded tar archives")
    b = fact("b", "Embedded tar archives are read like zip archives")
    assert only_edge(a, b)[0] == "relates_to"


def test_rejecting_the_same_thing_twice_is_no_contradiction():
    a = fact("a", "Use SQLite for the job queue instead of Redis", rejected="Redis")
    b = fact("b", "No Redis for the job queue, too heavy", rejected="Redis")
    assert only_edge(a, b)[0] == "relates_to"


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        (
            "Commit generated clients to the repository",
            "Do not commit generated clients to the repository",
            "negation",
        ),
        (
            "Enable the response cache for staging requests",
            "Disable the response cache for staging requests",
            "opposite",
        ),
        (
            "Requests to the ledger time out after 30 seconds",
            "Requests to the ledger time out after 60 seconds",
            "number",
        ),
    ],
)
def test_standing_facts_that_cannot_both_hold_contradict(one, other, rule):
    assert only_edge(fact("a", one), fact("b", other)) == ("contradicts", "a", "b", rule)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "For the gauge tap: a signed app, not an access token of a person",
            "The gauge tap is fed by a signed app, not an access token, which must not leak from a person",
        ),
        ("Gauges ship as signed binaries, not built from source", "Gauges ship as signed binaries"),
        (
            "Telemetry is disabled by default where the gauge is not configured",
            "Telemetry is disabled by default where nothing of the gauge is configured",
        ),
    ],
)
def test_who_says_the_same_and_turns_something_down_beside_it_contradicts_nothing(one, other):
    assert only_edge(fact("a", one), fact("b", other))[0] != "contradicts"


def test_two_gotchas_of_like_words_are_two_gotchas():
    rows = [
        fact(name, f"Port {port} was taken by the proxy", memory_type="gotcha")
        for name, port in (("a", 80), ("b", 81))
    ]
    assert only_edge(*rows)[0] == "relates_to"


def test_the_longer_fact_about_a_file_refines_the_shorter():
    short = fact("a", "The parser streams records", files=["parser.py"])
    long = fact("b", "The parser streams records in batches of one page each", files=["parser.py"])
    assert only_edge(short, long) == ("refines", "b", "a", "same_file_more_words")


def test_a_gotcha_exemplifies_the_architecture_of_its_file():
    plan = fact("a", "All writes go through the store", memory_type="architecture", files=["store.py"])
    trap = fact("b", "A crash left a lock behind", memory_type="gotcha", files=["store.py"])
    assert only_edge(plan, trap) == ("exemplifies", "b", "a", "same_file")


def test_progress_said_with_a_decision_is_derived_from_it():
    choice = fact("a", "Ship the importer first", evidence=seen_in("t1"))
    step = fact("b", "Importer reads the old format", memory_type="progress", evidence=seen_in("t1"))
    assert only_edge(choice, step) == ("derived_from", "b", "a", "same_turn")


# --- laws, on made data

made_stores = st.integers(2, 24).flatmap(
    lambda size: st.tuples(
        st.just(size), st.integers(0, 2**31), st.lists(st.booleans(), min_size=size, max_size=size)
    )
)
QUICK = settings(max_examples=examples(25), deadline=None)
TEXTS = (
    "Use `fold` in fold.py",
    "Never use `fold` in fold.py",
    "The lease in lease.py heals",
    "Plain words only",
)


def store(size, seed):
    """Return facts in two scopes and their vectors in few dimensions, so that many are near and some tie."""
    chosen = np.random.default_rng(seed)
    directions = chosen.integers(-2, 3, (size, 4)) + 0.25
    rows = [fact(f"m{n:02d}", TEXTS[n % 4], project_id="pq"[n % 2]) for n in range(size)]
    return rows, vectors(**{row["memory_id"]: list(way) for row, way in zip(rows, directions, strict=True)})


@QUICK
@given(made_stores, st.randoms())
def test_the_order_of_memories_and_vectors_does_not_matter(made, shuffler):
    size, seed, known = made
    rows, found = store(size, seed)
    found = found.filter(known)
    in_order = edges_between(memories(*rows), found, POLICY, MODEL)
    shuffled, places = list(rows), list(range(found.num_rows))
    shuffler.shuffle(shuffled)
    shuffler.shuffle(places)
    assert edges_between(memories(*shuffled), found.take(pa.array(places, pa.int64())), POLICY, MODEL).equals(
        in_order
    )


@QUICK
@given(made_stores)
def test_linking_scope_by_scope_equals_linking_all(made):
    size, seed, known = made
    rows, found = store(size, seed)
    found = found.filter(known)
    whole = edges_between(memories(*rows), found, POLICY, MODEL).to_pylist()
    parts = []
    for scope in "pq":
        of_scope = [row for row in rows if row["project_id"] == scope]
        parts += edges_between(memories(*of_scope), found, POLICY, MODEL).to_pylist()
    assert sorted(parts, key=lambda edge: edge["edge_id"]) == whole


SLOTS = ("Chose Redis over Memcached for the cache", "The cache uses Memcached", "The cache uses Redis")


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**31))
def test_linking_only_what_changed_equals_linking_all(size, seed):
    """Memories come, go and change, and a model has changed some edges in between."""
    chosen = np.random.default_rng(seed)
    texts = (*TEXTS, *SLOTS)

    def drawn(name):
        way = [*(chosen.integers(-2, 3, 4) + 0.25), 0]
        text = texts[chosen.integers(len(texts))]
        return memory(name, text, content_hash=f"{name} {chosen.random()}"), way

    before = {f"m{n:02d}": drawn(f"m{n:02d}") for n in chosen.permutation(60)[:size]}
    after = {name: each for name, each in before.items() if chosen.random() < 0.9}
    for name in (f"m{n:02d}" for n in chosen.integers(0, 60, chosen.integers(0, 5))):
        row, way = drawn(name)
        after[name] = (row, way) if chosen.random() < 0.7 or name not in after else (row, after[name][1])
    hashes = {row["content_hash"]: way for row, way in [*before.values(), *after.values()]}
    kept = vectors(**hashes)
    had = {name for name in before if chosen.random() < 0.95}
    then = memories(*(row for row, _ in before.values()))
    known = pa.array([row["content_hash"] for name, (row, _) in before.items() if name in had], pa.string())
    edges = edges_between(then, kept.filter(pc.is_in(kept["content_hash"], known)), POLICY, MODEL)
    judged = [
        {**edge, "rule": "judged_by_model", "edge_type": "relates_to"} if chosen.random() < 0.1 else edge
        for edge in edges.to_pylist()
    ]
    has_vector = pa.array([name in had for name in then["memory_id"].to_pylist()])
    linked = FormerLinks(then.append_column("has_vector", has_vector), EDGES.of(judged))
    now = memories(*(row for row, _ in after.values()))
    whole = edges_between(now, kept, POLICY, MODEL)
    assert edges_between(now, kept, POLICY, MODEL, linked).equals(whole)


# Lost there and named here in another form, behind a reason, within a word, or as a technology.
WORDED = (
    *SLOTS,
    "Memcached evicts the cache at night",
    "Rejected the portable queue for the nightly build",
    "Portability of queues matters in the nightly build",
    "The build keeps its queue portable since jobs wait for the proxy.Queues",
    "Chose hooks over slow polling for the queue",
    "Slow polling of the queue takes an hour",
    "The queue polls slowly, 因为太慢了",
    "Chose Redis over the portable mirror for the queue",
    "The queue has a mirrored port, portability first",
    "We do not want to sign my commits anymore",
    "Signed commits need my key",
    "Use pnpm, not npm",
    "npm reads the cache",
    "Nginx answers within 30 seconds at night",
    "Nginx answers within 60 seconds at night",
)


@settings(max_examples=examples(60), deadline=None)
@given(st.permutations(WORDED), st.sets(st.sampled_from(WORDED), max_size=3))
def test_facts_known_to_word_no_choice_are_passed_over_without_a_difference(drawn, done):
    parser = SlotParser.of(POLICY)
    rows = []
    for n, text in enumerate(drawn):
        slots = parser.slots_of(text)
        memory_type = "progress" if text in done else "decision"
        row = fact(f"m{n:02d}", text, memory_type=memory_type, project_id="pq"[n % 2], trust="user")
        rows.append({**row, "chosen": slots.chosen or None, "rejected": slots.rejected or None})
    apart = vectors(**{row["memory_id"]: np.eye(len(rows))[n] for n, row in enumerate(rows)})
    parsed = edges_between(memories(*rows), apart, POLICY, MODEL, is_parsed=True)
    assert parsed.equals(edges_between(memories(*rows), apart, POLICY, MODEL))


@QUICK
@given(made_stores)
def test_edges_are_unique_canonical_and_never_supersede(made):
    size, seed, known = made
    rows, found = store(size, seed)
    edges = edges_between(memories(*rows), found.filter(known), POLICY, MODEL).to_pylist()
    assert len({frozenset((edge["source_id"], edge["target_id"])) for edge in edges}) == len(edges)
    for edge in edges:
        assert edge["edge_type"] != "supersedes"
        assert POLICY.threshold("link_above_similarity") <= edge["strength"] <= 1
        if edge["edge_type"] in ("relates_to", "contradicts"):
            assert edge["source_id"] < edge["target_id"]


@QUICK
@given(st.integers(1, 40), st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 2000))
def test_blocks_of_any_size_give_the_neighbours_of_the_whole_matrix(count, seed, neighbours, cells):
    matrix = np.random.default_rng(seed).integers(-2, 3, (count, 4)) + 0.25
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    near = near_rows(matrix, floor=0.3, neighbours=neighbours, cells=cells)
    exact = matrix.astype(np.float64) @ matrix.astype(np.float64).T
    expected, last = set(), np.full(count, 0.3)
    for row in range(count):
        others = [n for n in range(count) if n != row and exact[row, n] >= 0.3]
        others.sort(key=lambda n: (-round(exact[row, n], 4), n))
        expected.update((min(row, n), max(row, n)) for n in others[:neighbours])
        if len(others) > neighbours:
            last[row] = exact[row, others[neighbours - 1]]
    found = set(zip(near.left.tolist(), near.right.tolist(), strict=True))
    # Similarities are rounded to four decimals; if that is a close call, either neighbour may be in.
    for left, right in found ^ expected:
        assert min(abs(exact[left, right] - last[[left, right]])) < 2e-4


@QUICK
@given(st.integers(1, 30), st.integers(0, 2**31))
def test_a_cosine_is_the_same_both_ways_one_for_twins_and_never_beyond_one(count, seed):
    matrix = np.random.default_rng(seed).normal(size=(count, 8))
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    matrix = np.vstack([matrix, matrix[:1]])  # the last row is the first one's twin
    near, back = (near_rows(rows, floor=-1.0, neighbours=count, cells=64) for rows in (matrix, matrix[::-1]))
    cosine = dict(zip(zip(near.left, near.right, strict=True), near.cosine, strict=True))
    mirrored = zip(count - back.right, count - back.left, strict=True)
    other = dict(zip(mirrored, back.cosine, strict=True))
    assert set(cosine) == set(combinations(range(count + 1), 2))
    assert cosine == pytest.approx(other)
    assert cosine[0, count] == pytest.approx(1)
    assert all(abs(value) <= 1 + 1e-6 for value in cosine.values())


def test_made_clusters_are_linked_within_and_not_across():
    chosen = np.random.default_rng(7)
    centres = np.eye(12)[:6]
    rows, found = [], {}
    for n in range(60):
        rows.append(fact(f"m{n:02d}", f"fact {n}"))
        found[f"m{n:02d}"] = list(centres[n % 6] + chosen.normal(0, 0.05, 12))
    edges = edges_between(memories(*rows), vectors(**found), POLICY, MODEL).to_pylist()
    clusters = {row["memory_id"]: n % 6 for n, row in enumerate(rows)}
    assert all(clusters[edge["source_id"]] == clusters[edge["target_id"]] for edge in edges)
    assert {name for edge in edges for name in (edge["source_id"], edge["target_id"])} == set(clusters)


def test_a_neighbourhood_is_walked_in_either_direction():
    made = edges_between(
        memories(fact("a"), fact("b"), fact("c")), vectors(a=[1, 0], b=[1, 0.9], c=[0.2, 1]), POLICY, MODEL
    )
    assert neighbourhood(made, ["c"], depth=1).to_pylist() == [
        {"memory_id": "b", "distance": 1},
        {"memory_id": "c", "distance": 0},
    ]
    assert neighbourhood(made, ["c"], depth=2)["memory_id"].to_pylist() == ["a", "b", "c"]
