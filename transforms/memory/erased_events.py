"""What forgetting means for events: those of forgotten words go, every other row stays as it is (spec 12)."""

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.extract.ground.settled import FORGOTTEN
from cortex.transforms.identity import event_id
from cortex.transforms.memory.forgetting import Phrases, without_sentences
from cortex.transforms.schemas import EVENTS, Row, values

# What is left of an event's text once sentences are gone: less says nothing by itself, and extraction takes
# nothing shorter either (extract.sentences.SHORTEST_CHARS).
SHORTEST_LEFT = 24

# Free text of an event; a plan's subject is an id, an error's the command that failed.
EVENT_TEXTS = ("text", "reason", "rejected", "subject")


def erased_events(
    events: pa.Table, left: Collection[str], deleted: Collection[str], phrases: Phrases
) -> pa.Table:
    """
    Return EVENTS without what is forgotten, ordered by event_id; every other row stays as it is.

    Takes the ids of the turns that are `left` and of the events that are `deleted`. If a row holds what is
    `phrases`, that sentence goes, and the row with it if little else is said.
    """
    is_left = pc.is_in(events["turn_id"], pa.array(sorted(left), pa.string()))
    is_doomed = pc.is_in(events["event_id"], pa.array(sorted(deleted), pa.string()))
    kept = events.filter(pc.and_not(is_left, is_doomed)).sort_by("event_id")
    patterns = {name: phrases.patterns_in(kept[name].to_pylist()) for name in EVENT_TEXTS}
    holding = [at for at, matches in enumerate(zip(*patterns.values(), strict=True)) if any(matches)]
    if not holding:
        return kept
    by_id: dict[str, Row] = {}
    for at in holding:
        clean = _without_phrases(kept.slice(at, 1).to_pylist()[0], {n: p[at] for n, p in patterns.items()})
        if clean is not None:
            by_id.setdefault(clean["event_id"], clean)
    rest = kept.take(pa.array(sorted(set(range(kept.num_rows)) - set(holding)), pa.int64()))
    known = pa.array(values(rest, "event_id"), pa.string())
    clean_rows = EVENTS.of(list(by_id.values()))
    clean_rows = clean_rows.filter(pc.invert(pc.is_in(clean_rows["event_id"], known)))
    return pa.concat_tables([rest, clean_rows]).sort_by("event_id").combine_chunks()


def _without_phrases(row: Row, patterns: Mapping[str, str | None]) -> Row | None:
    """Return a row of EVENTS without the sentences that hold a pattern; None if its text says no more."""
    clean = dict(row)
    for name, pattern in patterns.items():
        if pattern:
            text_left = without_sentences(row[name], pattern).replace(FORGOTTEN, " ")
            clean[name] = " ".join(text_left.split()) or None
    if len(clean["text"] or "") < SHORTEST_LEFT:
        return None
    if clean["text"] != row["text"]:
        clean["event_id"] = event_id(row["event_type"], row["layer"], row["turn_id"], clean["text"])
    return clean
