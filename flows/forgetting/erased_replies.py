"""What of a language model's replies an erasure leaves: nothing that says what is to be forgotten."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from cortex.storage.lake.lake import Lake
from cortex.transforms.identity import content_id
from cortex.transforms.memory.forgetting import Phrases
from cortex.transforms.schemas import LINKS_PURPOSE, PROJECT_PURPOSE, REPLIES, values


def about_turns(replies: pa.Table, turns: pa.Table, changed: Collection[str], texts: Phrases) -> pa.Table:
    """
    Return REPLIES without those about sessions that lose words, and those that say what is to be forgotten.

    `turns` are the project's TURNS that are left, `changed` the ids of those that lost words, `texts` what is
    to be forgotten.
    """
    left, sessions = set(values(turns, "turn_id")) - set(changed), set(values(turns, "session_id"))
    is_kept = [
        not row["session_id"]
        or (
            row["session_id"] in sessions
            and left.issuperset(row["turn_ids"])
            and not any(map(texts.is_in, _words_of_reply(row["text"])))
        )
        for row in replies.to_pylist()
    ]
    return replies.filter(pa.array(is_kept, pa.bool_()))


def erase_beside_sessions(lake: Lake, replies: dict[str, pa.Table], gone: Collection[str]) -> dict[str, str]:
    """
    Take out of `replies` the answers to questions over memories, and what others say of what is `gone`.

    Any answer may say what is to be forgotten; verdicts on pairs are in no words but ours, and what is kept
    of an answer about a project in those of the memories that it names. `replies` holds by project the
    REPLIES that are about to take the place of the lake's, `gone` the ids of memories; projects that lose
    replies are added. Returns what is to be noted of their verdicts, by project.
    """
    noted: dict[str, str] = {}
    for project_id in lake.manifest.partitions(REPLIES.name):
        known = replies[project_id] if project_id in replies else lake.read(REPLIES, project_id)
        is_judged = pc.field("purpose").isin([LINKS_PURPOSE, PROJECT_PURPOSE])
        left = known.filter((pc.field("session_id") != "") | is_judged)
        named = {name for row in left.filter(is_judged).to_pylist() for name in row["known"]}
        if not named.isdisjoint(gone):
            left = _without_verdicts(left, gone)
            noted[project_id] = content_id(lake.notes.judged.get(project_id, ""), "erased", *sorted(gone))
        if not left.equals(known):
            replies[project_id] = left
    return noted


def _without_verdicts(replies: pa.Table, gone: Collection[str]) -> pa.Table:
    # Imported here: if no language model has answered none of this is loaded.
    from cortex.transforms.writer.project import without_memories
    from cortex.transforms.writer.verdicts import without_pairs

    without = {LINKS_PURPOSE: without_pairs, PROJECT_PURPOSE: without_memories}
    rows = [
        without[row["purpose"]](row, gone) if row["purpose"] in without else row
        for row in replies.to_pylist()
    ]
    return REPLIES.of([row for row in rows if row is not None])


def _words_of_reply(text: str) -> list[str]:
    """Return a reply as it is and without the escapes of JSON."""
    return [text, text.replace('\\"', '"').replace("\\n", " ")]
