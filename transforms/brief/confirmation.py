"""When a brief asks whether its oldest claims still hold, and the line that asks (spec 8.4)."""

from collections.abc import Container, Iterable
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.brief.brief_sections import CONFIRM, Choice
from cortex.transforms.brief.candidates import LineCandidate
from cortex.transforms.brief.wording import without_provenance
from cortex.transforms.policy import Policy
from cortex.transforms.words.sentences import first_sentences

CONFIRM_HEADING = "Still true?"
QUOTED_CHARS = 70  # two quotes of a line's length and the three commands are within `brief_confirm_tokens`


def asked_until(
    sessions: pa.Table, project_id: str, confirmed_at: datetime | None, policy: Policy
) -> datetime | None:
    """
    Return until when a claim must have been last said to be asked about, or None to ask nothing.

    A brief asks when the project's sessions since `confirmed_at`, when a person last confirmed a claim of it,
    are a multiple of `brief_confirm_sessions` (0: never): of so many briefs one asks, and about no claim
    that was said in the meantime. `sessions` has (project_id, session_id, started_at, ended_at).
    """
    every = int(policy.threshold("brief_confirm_sessions"))
    if every < 1:
        return None
    is_counted = pc.field("project_id") == project_id
    if confirmed_at is not None:
        is_counted &= pc.field("started_at") > pa.scalar(confirmed_at)
    counted = sessions.filter(is_counted).sort_by([("started_at", "descending")])
    is_due = counted.num_rows > 0 and counted.num_rows % every == 0
    return counted["ended_at"][every - 1].as_py() if is_due else None


def question_about(
    candidates: Iterable[LineCandidate], until: datetime, policy: Policy, *, disputed: Container[str]
) -> list[LineCandidate]:
    """
    Return one candidate that asks whether the oldest claims in the brief still hold, or none.

    Asked about is what was last said until then: no state of the work, which the next session renews,
    nothing pinned, and nothing of `disputed`, which `cortex review` asks about.
    """
    guaranteed = policy.types_with("is_guaranteed")
    claims = [
        each
        for each in candidates
        if each.choice.is_shown
        and (each.section in guaranteed or each.is_on_purpose)
        and not each.is_pinned
        and each.choice.memory_id not in disputed
        and each.updated_at is not None
        and each.updated_at <= until
    ]
    oldest = sorted(claims, key=lambda each: (each.updated_at, each.choice.memory_id))
    oldest = oldest[: int(policy.threshold("brief_confirm_claims"))]
    forms = tuple(_question(oldest[:count]) for count in range(len(oldest), 0, -1))
    return [LineCandidate(CONFIRM, forms, Choice(CONFIRM_HEADING, "", forms[0], False, ""))] if forms else []


def _question(claims: Iterable[LineCandidate]) -> str:
    quoted = "; ".join(f'`{each.choice.memory_id[:6]}` "{_words(each)}"' for each in claims)
    return f"- Said long ago: {quoted}. If the user says so: `cortex confirm ID`, or `cortex forget ID`."


def _words(claim: LineCandidate) -> str:
    words = first_sentences(without_provenance(claim.choice.text), count=1, chars=QUOTED_CHARS)
    return words.rstrip(".").replace('"', "'")
