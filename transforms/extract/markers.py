"""The marker table, compiled: which event types a passage speaks of, and how strongly."""

import re
from dataclasses import dataclass
from functools import lru_cache

from cortex.transforms.policy import Policy


@dataclass(frozen=True)
class Marker:
    """One row of markers.csv."""

    language: str
    speaker: str
    event_type: str
    memory_type: str
    pattern: re.Pattern[str]
    weight: float


@dataclass(frozen=True)
class Reading:
    """What the markers say of a passage: strength by event type, and the language of the strongest."""

    strengths: dict[str, float]
    memory_types: dict[str, str]
    language: str

    def verdict(self, *, is_person: bool) -> tuple[str, str]:
        """Return the event type and memory type that the markers speak for most; the table's order breaks ties."""
        if not self.strengths:
            return ("DECISION_MADE", "decision") if is_person else ("KNOWLEDGE_ACQUIRED", "context")
        best = max(self.strengths, key=lambda name: self.strengths[name])
        return best, self.memory_types[best]


class Markers:
    """All markers of a policy; those for one speaker are tried in the table's order."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        compiled = [
            Marker(
                str(row["language"]),
                str(row["speaker"]),
                str(row["event_type"]),
                str(row["memory_type"]),
                re.compile(str(row["pattern"]), re.IGNORECASE),
                float(str(row["weight"])),
            )
            for row in rows
        ]
        self.by_speaker = {
            speaker: [marker for marker in compiled if marker.speaker in (speaker, "any")]
            for speaker in ("user", "assistant")
        }

    def read(self, text: str, speaker: str) -> Reading:
        """Return the strengths of a passage: markers of one type add up as independent evidence."""
        doubts: dict[str, float] = {}
        kinds: dict[str, tuple[float, str]] = {}
        best = (0.0, "en")
        for marker in self.by_speaker[speaker]:
            if not marker.pattern.search(text):
                continue
            doubts[marker.event_type] = doubts.get(marker.event_type, 1.0) * (1.0 - marker.weight)
            kinds[marker.event_type] = max(
                kinds.get(marker.event_type, (0.0, "")), (marker.weight, marker.memory_type)
            )
            best = max(best, (marker.weight, marker.language))
        return Reading(
            {name: 1.0 - doubt for name, doubt in doubts.items()},
            {name: kind for name, (_weight, kind) in kinds.items()},
            best[1],
        )


@lru_cache(maxsize=4)
def _compiled(rows: tuple[tuple[tuple[str, object], ...], ...]) -> Markers:
    return Markers([dict(row) for row in rows])


def markers_of(policy: Policy) -> Markers:
    """Return the compiled marker table of a policy."""
    return _compiled(tuple(tuple(row.items()) for row in policy.tables["markers"].to_pylist()))
