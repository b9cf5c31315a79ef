"""What is worth remembering: a short fact is, noise and a question are not; nothing is kept twice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.consolidate import NO_SAME_STATEMENTS, SameStatements, propose
from cortex.transforms.memory.fold import fold, memory_id
from cortex.transforms.memory.quality import flaw_of, known_as
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import JOURNAL, VECTORS
from tests.examples import cases, examples
from tests.rows import START, entry, event, events, memories, memory

POLICY = read_policy(None)
FLAWED = (
    ("asdf", "say nothing"),
    ("asdf qwer zxcv", "say nothing"),
    ("test", "say nothing"),
    ("foo bar baz", "say nothing"),
    ("lorem ipsum", "say nothing"),
    ("asdlkfj sdkfjh", "say nothing"),
    ("aaaaaaa", "say nothing"),
    ("blablabla", "say nothing"),
    ("hello", "say nothing"),
    ("ok thanks", "say nothing"),
    ("TODO", "say nothing"),
    ("pnpm", "single word"),
    ("Kubernetes", "single word"),
    ("???", "no word"),
    ("...", "no word"),
    ("   ", "no word"),
    ("🎉🎉", "no word"),
    ("12345 678", "no word"),
    ("it is what we do", "say nothing"),
    ("the and of", "say nothing"),
    ("안녕", "single word"),
    ("should we use Postgres?", "a question"),
    ("Should we use Postgres", "a question"),
    ("Which port does the proxy take?", "a question"),
    ("Is it Redis? Or Valkey?", "a question"),
    ("why do the tests fail on Mondays", "a question"),
    ("Sollen wir Postgres nehmen?", "a question"),
    ("我们应该用 pnpm 吗", "a question"),
    ("ポートは変えますか。", "a question"),
    ("password=Tr0ub4dor3xyz", "only a secret"),
    ("sk-ant-api03-" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 3, "only a secret"),
    ("API key: ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8", "only a secret"),
)  # fmt: skip
WORTH = (
    "Use pnpm",
    "端口 8080 被占用",
    "Utiliser pnpm",
    "Prefers tabs",
    "Python 3.12 only",
    "Nie npm verwenden",
    "CI needs TZ=UTC",
    "psql needs -X",
    "No Windows support",
    "Port 5433",
    "Error pages: half static",
    "Flask salad dash",
    "make check",
    "Test with pytest -n 4",
    "API keys live in vault",
    "the key of the staging database is in 1Password",
    "Why two queues? The old one feeds the warehouse.",
    "When the build fails, clear the cache",
    "How to deploy: make ship",
    "What the mobile app calls lives in lib/legacy",
    "ポートは3000です",
    "빌드 서버는 디스크가 부족하다",
    "Логи в Loki",
    "Deploys need the token [REDACTED:token] of the release bot in CI",
)


@cases("text, reason", FLAWED)
def test_what_says_nothing_is_named(text, reason):
    assert reason in flaw_of(redact(text)[0].strip(), POLICY)


@cases("text", WORTH)
def test_a_short_fact_is_worth_keeping(text):
    assert flaw_of(redact(text)[0], POLICY) == ""


def explicit(*texts, **chosen):
    rows = [
        memory(f"m{n}", text, source_type="explicit", memory_type="context", **chosen)
        for n, text in enumerate(texts)
    ]
    return memories(*rows)


@cases(
    "new",
    [
        "The invoice service is written in Go.",
        "the invoice service is written in `Go`",
        "Invoice service: written in Go!",
        "The invoices service is written in Go",
    ],
)
def test_the_same_fact_in_like_words_is_known(new):
    known = known_as(new, explicit("Ports start at 9000.", "The invoice service is written in Go."), POLICY)
    assert known is not None and (known.memory_id, known.says_more) == ("m1", False)


def test_more_words_on_a_known_fact_take_its_place():
    known = known_as(
        "The invoice service is written in Go, because the team knows it.",
        explicit("The invoice service is written in Go."),
        POLICY,
    )
    assert known is not None and (known.memory_id, known.says_more) == ("m0", True)


@cases(
    "new",
    [
        "The invoice service is written in Rust.",
        "The invoice service is not written in Go.",
        "The payment service is written in Go.",
        "The invoice service is written in Go 1.23 and deployed by hand every second Friday of the month.",
    ],
)
def test_another_fact_is_not_known(new):
    rows = explicit("The invoice service is written in Go 1.22.")
    assert known_as(new, rows, POLICY) is None


@pytest.mark.parametrize(
    "old, new",
    [("Use pnpm", "Use npm"), ("Port 5433", "Port 5434"), ("端口 8080 被占用", "端口 8081 被占用")],
)
def test_short_facts_that_differ_in_a_word_are_two(old, new):
    assert known_as(new, explicit(old), POLICY) is None


@pytest.mark.parametrize(
    "chosen", [{"source_type": "conversation"}, {"status": "archived"}, {"status": "superseded"}]
)
def test_only_what_is_said_on_purpose_and_holds_is_reinforced(chosen):
    row = memory("m0", "The invoice service is written in Go.", source_type="explicit") | chosen
    assert known_as("The invoice service is written in Go", memories(row), POLICY) is None


OPPOSED = (
    ("Use npm, not pnpm, in the web folder", "Use pnpm, not npm, in the web folder"),
    ("Tabs over spaces in the parser", "Spaces over tabs in the parser"),
    ("Use npm in the web folder", "Use pnpm over npm in the web folder"),
    ("Never use npm here, use pnpm", "Use npm here, never use pnpm"),
    ("Retry 3 times within 5 seconds", "Retry 5 times within 3 seconds"),
    ("We lint with ruff, not with flake8", "We do not lint with ruff; we lint with flake8"),
    ("Start it with docker, never with systemd", "Do not start it with docker; start it with systemd"),
    ("Sessions go to Redis, never to cookies", "Sessions never go to Redis; they go to cookies"),
    ("Moved the tokenizer from Python to Rust", "Moved the tokenizer from Rust to Python"),
)


@cases(("old", "new"), OPPOSED)
def test_the_opposite_is_never_known_already(old, new):
    assert known_as(new, explicit(old), POLICY) is None
    assert known_as(old, explicit(new), POLICY) is None


NAMES = st.sampled_from(
    ["Redis", "npm", "pnpm", "parser.py", "tabs", "Postgres", "s1", "s2", "Parser", "parsers"]
)
FRAMES = st.sampled_from(
    [
        "{a} over {b}",
        "use {a}, not {b}",
        "{a} feeds {b} in the importer",
        "moved the cache from {a} to {b}",
        "{a} keeps the orders and {b} the cache of {a}",
        "instead of {a}, {b} serves the pages",
        "when {a} fails ask {b} twice",
    ]
)
DETAIL = st.sampled_from(["", " every night", " since the last release", ", because it is fast"])


FILLERS = (
    "the",
    "for",
    "in",
    "each",
    "nightly",
    "harbour",
    "cache",
    "importer",
    "keeps",
    "before",
    "3",
    "not",
)


@st.composite
def exchanged_pairs(draw):
    """Return a text and the same with two names exchanged, in a common sentence or among any words."""
    a, b = draw(st.lists(NAMES, min_size=2, max_size=2, unique_by=str.casefold))
    if draw(st.booleans()):
        frame = draw(FRAMES)
        return frame.format(a=a, b=b), frame.format(a=b, b=a)
    first, middle, last = (draw(st.lists(st.sampled_from(FILLERS), max_size=4)) for _ in range(3))
    one, exchanged = ([*first, x, *middle, y, *last] for x, y in ((a, b), (b, a)))
    return " ".join(one), " ".join(exchanged)


@settings(max_examples=examples(150), deadline=None)
@given(exchanged_pairs(), DETAIL, DETAIL)
def test_exchanging_two_names_never_says_the_same(pair, detail, other):
    one, exchanged = pair[0] + detail, pair[1] + other
    assert known_as(exchanged, explicit(one), POLICY) is None
    rows = [memory(f"m{n}", text, content_hash=f"m{n}") for n, text in enumerate((one, exchanged))]
    pair = SameStatements({("m0", "m1"): 1.0}, {frozenset(("m0", "m1")): one})
    for same in (NO_SAME_STATEMENTS, pair):
        merges = propose(memories(*rows), VECTORS.empty(), POLICY, "all-MiniLM-L6-v2", START, same=same)
        assert merges.num_rows == 0


def folded(kind, *texts):
    """Return the memories of facts that came in one way, each under the id that its words give it."""
    if kind == "said":
        said = events(*(event(text, event_id=text, turn_id=text) for text in texts))
        return fold(said, JOURNAL.empty(), POLICY)
    rows = []
    for text in texts:
        payload = {"text": text, "memory_type": "decision", "category": "project"}
        payload |= {"paths": ["a.md"], "authors": ["Ana"]} if kind == "team" else {}
        name = memory_id("reef-1", "decision", text)
        rows.append(entry(kind, "reef-1", payload, recorded_at=START, memory_id=name))
    return fold(events(), JOURNAL.of(rows), POLICY)


@settings(max_examples=examples(50), deadline=None)
@given(exchanged_pairs(), st.sampled_from(["said", "remember", "import", "team"]))
def test_exchanging_two_names_makes_two_memories_however_they_come_in(pair, kind):
    assert sorted(folded(kind, *pair)["text"].to_pylist()) == sorted(pair)
