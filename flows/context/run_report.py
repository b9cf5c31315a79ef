"""The run report: what each stage took in and gave out, what was set aside, how long it took."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from cortex.transforms.audit import Violation
from cortex.transforms.brief.brief_sections import Choice


@dataclass
class StageReport:
    """One stage of one run."""

    stage: str
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class QuarantinedLine:
    """A line or file that could not be used: where and why, never what it said."""

    file: str
    line: int | None
    reason: str


@dataclass
class RunReport:
    """A whole run, as printed on the terminal and kept as JSON."""

    flow: str
    engine: str
    started_at: datetime
    stages: list[StageReport] = field(default_factory=list)
    quarantined: list[QuarantinedLine] = field(default_factory=list)
    transcripts: int = 0
    transcript_bytes: int = 0
    seconds: float = 0.0
    rows: dict[str, int] = field(default_factory=dict)
    new_rows: dict[str, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: list[Violation] = field(default_factory=list)  # lines that a brief goes on without

    @contextmanager
    def stage(self, name: str) -> Iterator[StageReport]:
        """Time one stage; a stage entered twice adds up."""
        row = next((s for s in self.stages if s.stage == name), None)
        if row is None:
            row = StageReport(name)
            self.stages.append(row)
        begun = time.perf_counter()
        try:
            yield row
        finally:
            row.seconds += time.perf_counter() - begun

    def leave_out(self, scope: str, lines: Iterable[Choice]) -> None:
        """Note the lines that the brief of a scope leaves out because of a secret, each once."""
        named = [Violation("brief", line.memory_id or scope, line.reason) for line in lines]
        self.left_out = sorted({*self.left_out, *named})

    def note(self, text: str) -> None:
        """Note what a person should know of this run, once."""
        if text not in self.notes:
            self.notes.append(text)

    def as_dict(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {
            "flow": self.flow,
            "engine": self.engine,
            "started_at": self.started_at.isoformat(),
            "seconds": round(self.seconds, 3),
            "transcripts": self.transcripts,
            "transcript_bytes": self.transcript_bytes,
            "stages": [
                {
                    "stage": s.stage,
                    "rows_in": s.rows_in,
                    "rows_out": s.rows_out,
                    "seconds": round(s.seconds, 3),
                    "note": s.note,
                }
                for s in self.stages
            ],
            "rows": self.rows,
            "new_rows": self.new_rows,
            "set_aside": [vars(line) for line in self.quarantined],
            "left_out": [vars(line) for line in self.left_out],
            "breaches": [vars(violation) for violation in self.violations],
            "notes": self.notes,
        }
