"""The run report: what each stage took in, gave out, set aside; which scopes keep their last good version."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from cortex.transforms.audit import Violation
from cortex.transforms.brief.explanation import Choice
from cortex.transforms.errors import AuditFailed, FileDamaged, LossRefused, contained


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
    """A line or file, or `count` lines of it, that could not be used: where and why, never what it said."""

    file: str
    line: int | None
    reason: str
    count: int = 1


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

    @property
    def quarantined_count(self) -> int:
        """How many lines and files could not be used."""
        return sum(line.count for line in self.quarantined)

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


# -- How a run fares: which scopes keep their last good version and why, and what it ends with.

# An error message of more is not read; the run report has them all.
VIOLATIONS_NAMED = 5


@dataclass
class Outcome:
    """What went wrong in a run so far; `canonical` gives the project that another was merged into."""

    report: RunReport
    canonical: Callable[[str], str]
    audits: bool = True  # False: nothing made here is published, and the lake was audited when it was written
    failed: set[str] = field(default_factory=set)  # scopes that keep their last good version in this run
    damages: list[FileDamaged] = field(default_factory=list)  # what stopped scopes, but not the run
    refused: LossRefused | None = None  # why briefs keep their last good version in this run

    @contextmanager
    def without_damage(self, scope: str) -> Iterator[None]:
        """Let a damaged file of the lake cost `scope` its next version, and no other scope anything."""
        try:
            yield
        except FileDamaged as error:
            self._fail(scope)
            self.damages.append(error)

    @contextmanager
    def isolated(self, scope: str, stage: str) -> Iterator[None]:
        """Let what nobody foresaw, or a damaged file, cost `scope` alone its next version."""
        faults: list[str] = []
        with self.without_damage(scope), contained(faults.append):
            yield
        for fault in faults:
            self._fail(scope)
            self.report.violations.append(Violation(stage, scope, fault))

    def passes(self, scope: str, rows: int, audit: Callable[[], list[Violation]]) -> bool:
        """
        Return whether `audit` of `rows` rows finds nothing, so that they may become visible.

        Else the scope keeps its last good version: the stages that follow leave it alone, the other scopes
        go on, and the run ends with AuditFailed. The report names every violation.
        """
        if not self.audits:
            return True
        with self.report.stage("audit") as row:
            violations = audit()
            row.rows_in += rows
            row.rows_out += len(violations)
            row.note = "rows out: violations; its seconds are part of the other stages'"
        if violations:
            self._fail(scope)
            self.report.violations += violations
        return not violations

    def check_passed(self) -> None:
        """
        Raise AuditFailed, naming the first violations by id and reason, if an audit of this run failed.

        Raises FileDamaged if a damaged file kept scopes from their next version, LossRefused if briefs
        were held back.
        """
        violations = sorted(self.report.violations)
        if self.damages and not violations:
            raise self.damages[0]
        if self.refused and not violations:
            raise self.refused
        if not violations:
            return
        named = "; ".join(f"{v.table} {v.row_id[:32]}: {v.reason}" for v in violations[:VIOLATIONS_NAMED])
        rest = len(violations) - VIOLATIONS_NAMED
        more = f"; and {rest} more" if rest > 0 else ""
        raise AuditFailed(
            f"the audit kept the last good version of {', '.join(sorted(self.failed))}: {named}{more}.",
            "The report in runs/reports lists all of them. Forget or repair the rows and run again; "
            "`cortex rebuild` keeps the valid rows, even if many are lost.",
        )

    def _fail(self, scope: str) -> None:
        self.failed |= {scope, self.canonical(scope)}
