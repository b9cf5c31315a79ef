"""How a run fares: which scopes keep their last good version and why, and what it ends with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cortex.flows.context.run_report import RunReport
from cortex.transforms.audit import Violation
from cortex.transforms.errors import AuditFailed, FileDamaged, LossRefused
from cortex.transforms.faults import contained

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
    def apart(self, scope: str, stage: str) -> Iterator[None]:
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

        Raises FileDamaged if a damaged file kept scopes from their next version, LossRefused where briefs
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
