"""What changed with memory: measures of each session, and their differences between sides with intervals."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cortex.hooks.prose.own_prose import EDIT_TOOLS, READ_TOOLS, own_prose
from cortex.transforms.database import query
from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import METRICS, UTC_US, Row, arrow_of, column, values
from cortex.transforms.views.metrics import ANSWER, shown_calls
from cortex.transforms.words.facts import Fact, Vocabulary
from cortex.transforms.words.sentences import PROSE, is_question, sentences, share_of_all
from cortex.transforms.words.slots import WORDING

# An earlier session is one of the five before: were all of them counted, the share of what had been read or
# asked before would grow with a history by itself, and each later half would look worse than the first.
SESSIONS_BACK = 5
# As long as an answer of a slow command; whoever is away for longer is not at work.
PAUSE_MINUTES = 5.0
# A question of fewer words with a topic ("And the tests?") is another one each time.
_MIN_WORDS = 3

HANDED = arrow_of(
    [
        column("session_id", pa.string(), "session that was shown something"),
        column("shown_at", UTC_US, "when for the first time"),
        column("tokens", pa.int64(), "tokens shown; null where a call did not note them", null=True),
    ]
)
SESSION_COUNTS = pa.schema(
    [
        METRICS.arrow.field(name)
        for name in ("project_id", "session_id", "prompts", "corrections", "re_proposals")
    ]
)
ASKED_AGAIN = arrow_of(
    [
        column("project_id", pa.string(), "project of the session"),
        column("session_id", pa.string(), "session"),
        column("asked_again", pa.int64(), "questions that one of the sessions just before asked"),
    ]
)
_TURN_COLUMNS = [
    *("project_id", "session_id", "agent_id", "kind", "said_at", "text", "tool_name", "line", "block")
]


def session_effects(turns: pa.Table, metrics: pa.Table, calls: pa.Table, policy: Policy) -> pa.Table:
    """
    Return the measures of each session with a prompt, and its side, as `transforms/sql/effect.sql` says.

    Takes TURNS, METRICS and CALLS, each row once.
    """
    turns = turns.select(_TURN_COLUMNS)
    return query(
        "effect",
        {
            "edit_tools": sorted(EDIT_TOOLS),
            "read_tools": sorted(READ_TOOLS),
            "pause_minutes": PAUSE_MINUTES,
            "sessions_back": SESSIONS_BACK,
        },
        turns=turns,
        counts=metrics.select(SESSION_COUNTS.names),
        handed=handed_in(calls),
        asked=asked_again(turns, policy),
    )


def handed_in(calls: pa.Table) -> pa.Table:
    """Return HANDED, one row a session that CALLS say was shown something."""
    rows: dict[str, Row] = {}
    for call, (session, _, tokens) in shown_calls(calls):
        row = rows.setdefault(session, {"session_id": session, "shown_at": call["called_at"], "tokens": 0})
        row["tokens"] = None if None in (tokens, row["tokens"]) else row["tokens"] + tokens
    return pa.Table.from_pylist([rows[key] for key in sorted(rows)], schema=HANDED)


def asked_again(turns: pa.Table, policy: Policy) -> pa.Table:
    """
    Return ASKED_AGAIN: how many questions of a session one of the SESSIONS_BACK before it had asked already.

    Takes TURNS. The person's questions count and the assistant's; not those about how to go on, which each
    session has. Two are the same if they share most of their words, and all names and numbers.
    """
    vocabulary, phrases = Vocabulary.of(policy), Phrasebook.of(policy)
    least = policy.threshold("metrics_same_words")
    began: dict[str, dict[str, object]] = defaultdict(dict)
    questions: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    names = ("project_id", "session_id", "agent_id", "kind", "said_at", "text")
    for project, session, agent, kind, at, text in zip(*(values(turns, each) for each in names), strict=True):
        if agent is not None or at is None:
            continue
        began[project][session] = min(began[project].get(session, at), at)
        for question in _questions(kind, text):
            if phrases.procedure.search(question) or phrases.offer.search(question):
                continue
            fact = vocabulary.fact(question)
            if len(fact.word_set - WORDING) >= _MIN_WORDS:
                questions[project, session].append(fact)
    rows = []
    for project, sessions in began.items():
        before: deque[list[Fact]] = deque(maxlen=SESSIONS_BACK)
        for session in sorted(sessions, key=lambda name: (sessions[name], name)):
            own = questions[project, session]
            count = sum(
                any(_is_same(question, other, least) for asked in before for other in asked)
                for question in own
            )
            before.append(own)
            rows.append({"project_id": project, "session_id": session, "asked_again": count})
    return pa.Table.from_pylist(rows, schema=ASKED_AGAIN)


def _questions(kind: str, text: str) -> Iterator[str]:
    if kind == "choice":
        yield from (line.partition(ANSWER)[0] for line in text.split("\n"))
    elif kind in ("prompt", "text") and ("?" in text or not text.isascii()):
        for line in own_prose(text).split("\n"):
            yield from filter(is_question, sentences(line, PROSE))


def _is_same(a: Fact, b: Fact, least: float) -> bool:
    return (
        a.names == b.names
        and a.numbers == b.numbers
        and share_of_all(a.word_set - WORDING, b.word_set - WORDING) >= least
    )


# With fewer sessions on a side, one of another kind moves the mean by more than any effect would.
MIN_SESSIONS = 8
# A project counts over all with this many on each side: of one session alone, no spread is known.
_MIN_OF_A_PROJECT = 2
# Six measures are looked at together, and of skewed ones a bootstrap of few sessions is too sure: at 95 %, up
# to 12 in 100 histories without an effect differed in a measure, at 99 % at most 4 (tests of this module).
CONFIDENCE = 0.99
RESAMPLES, _SEED = 4_000, 27
# Of all measures the smaller value is the one wished for.
MEASURES = ("minutes_to_edit", "turns_to_edit", "read_again", "asked_again", "corrections", "re_proposals")
# What is compared, by name: the sides of a session that are the base, and those set against it.
COMPARED_SIDES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "first_brief": (("before",), ("with", "without")),
    "memory": (("without",), ("with",)),
}
TOO_FEW, NOT_SHOWN, LOWER, HIGHER = "too few to tell", "no difference shown", "lower", "higher"


@dataclass(frozen=True)
class EffectDifference:
    """
    A measure on both sides: means, and the difference of the second to the first with its 99 % interval.

    `base_sessions` and `sessions` are those that have the measure. With fewer than MIN_SESSIONS on a side
    the figures are None. Over several projects the means are weighted alike on both sides.
    """

    measure: str
    base_sessions: int
    sessions: int
    base_mean: float | None = None
    mean: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def verdict(self) -> str:
        """Return what may be said of it; an interval that holds 0 shows no difference."""
        if self.low is None or self.high is None:
            return TOO_FEW
        return NOT_SHOWN if self.low <= 0 <= self.high else LOWER if self.high < 0 else HIGHER


@dataclass(frozen=True)
class EffectComparison:
    """
    Two sides of one project, or, with an empty `project_id`, of all: sessions, and projects that have them.

    A difference is only taken in projects that have sessions of both sides.
    """

    project_id: str
    base_sessions: int
    base_projects: int
    sessions: int
    projects: int
    differences: tuple[EffectDifference, ...]

    @property
    def is_enough(self) -> bool:
        """Return whether both sides have the sessions that it takes to say anything of a measure."""
        return any(each.low is not None for each in self.differences)


def compared(sessions: Sequence[Row], name: str) -> list[EffectComparison]:
    """Return a comparison of COMPARED_SIDES by project, ordered by id, and last over all of them."""
    base, others = COMPARED_SIDES[name]
    strata: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for row in sessions:
        if row["side"] in base or row["side"] in others:
            strata[row["project_id"]][row["side"] in others].append(row)
    by_project = [(project, [strata[project]]) for project in sorted(strata)]
    return [_comparison(*each) for each in [*by_project, ("", list(strata.values()))]]


def _comparison(project_id: str, strata: Sequence[tuple[list[Row], list[Row]]]) -> EffectComparison:
    return EffectComparison(
        project_id,
        sum(len(base) for base, _ in strata),
        sum(bool(base) for base, _ in strata),
        sum(len(others) for _, others in strata),
        sum(bool(others) for _, others in strata),
        tuple(
            difference(name, [(_known(base, name), _known(others, name)) for base, others in strata])
            for name in MEASURES
        ),
    )


def _known(rows: Iterable[Row], name: str) -> list[float]:
    return [float(row[name]) for row in rows if row[name] is not None]


def difference(measure: str, strata: Sequence[tuple[Sequence[float], Sequence[float]]]) -> EffectDifference:
    """
    Return how the second side of each project differs from the first, over all of them.

    Differences are taken within a project and weighted by how sure its sessions make them. The interval is a
    bootstrap over sessions within project and side, the same each time: one session fewer is drawn than there
    are, without which few sessions spread too little (Rao and Wu, 1988), and its ends lie as far out as those
    of Student's t (Hesterberg, 2015).

    >>> difference("corrections", [([1.0] * 8, [0.0] * 8)]).verdict
    'lower'
    """
    kept = [sides for sides in strata if min(map(len, sides)) >= _MIN_OF_A_PROJECT]
    counts = sum(len(base) for base, _ in kept), sum(len(others) for _, others in kept)
    if min(counts) < MIN_SESSIONS:
        return EffectDifference(measure, *counts)
    weights: NDArray[np.float64] = np.array([len(a) * len(b) / (len(a) + len(b)) for a, b in kept])
    weights /= weights.sum()
    base_mean, mean = (float(weights @ np.array([np.mean(sides[at]) for sides in kept])) for at in (0, 1))
    draw = np.random.default_rng(_SEED)
    drawn = sum(
        weight * (_resampled(others, draw) - _resampled(base, draw))
        for weight, (base, others) in zip(weights, kept, strict=True)
    )
    tail = _tail(sum(counts) - 2 * len(kept))
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return EffectDifference(measure, *counts, base_mean, mean, mean - base_mean, float(low), float(high))


def interval(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of at least MIN_SESSIONS numbers and its 99 % interval, as `difference` makes it."""
    tail = _tail(len(numbers) - 1)
    drawn = _resampled(numbers, np.random.default_rng(_SEED))
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return float(np.mean(numbers)), float(low), float(high)


def _resampled(numbers: Sequence[float], draw: np.random.Generator) -> NDArray[np.float64]:
    drawn = draw.integers(0, len(numbers), (RESAMPLES, len(numbers) - 1))
    means: NDArray[np.float64] = np.array(numbers)[drawn].mean(axis=1)
    return means


def _tail(freedom: int) -> float:
    """Return the share to cut off at an end: the normal one's as far out as Student's t of `freedom`."""
    normal = NormalDist()
    z = normal.inv_cdf((1 + CONFIDENCE) / 2)
    # The first terms of the expansion of t; with 14 degrees of freedom .004 short of it.
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return normal.cdf(-t)
