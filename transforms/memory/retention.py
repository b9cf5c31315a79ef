"""How long what was said is kept, by project and by type of memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cortex.transforms.identity import content_id
from cortex.transforms.vocabulary import MEMORY_TYPES


@dataclass(frozen=True)
class ProjectRetention:
    """What a project keeps: all that was said since `since` (None: ever), and memories by their type."""

    since: datetime | None = None
    by_type: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def is_on(self) -> bool:
        """Whether anything goes by its age."""
        return self.since is not None or bool(self.by_type)


@dataclass(frozen=True)
class Retention:
    """What all projects keep, and what those keep that have rules of their own, by project id."""

    everywhere: ProjectRetention = ProjectRetention()
    by_project: Mapping[str, ProjectRetention] = field(default_factory=dict)

    @property
    def is_on(self) -> bool:
        """Whether anything goes by its age anywhere."""
        return self.everywhere.is_on or any(each.is_on for each in self.by_project.values())

    @property
    def fingerprint(self) -> str:
        """What tells these rules, as of this day, from others; empty if everything is kept."""
        rules = {"": self.everywhere, **self.by_project}
        texts = [
            f"{name} {rule.since} {sorted(rule.by_type.items())}" for name, rule in sorted(rules.items())
        ]
        return content_id("retention", *texts)[:16] if self.is_on else ""

    def of(self, project_id: str) -> ProjectRetention:
        """Return what a project keeps."""
        return self.by_project.get(project_id, self.everywhere)


def project_retention(day: datetime, days: int, types: Sequence[str]) -> ProjectRetention:
    """
    Return what is kept as of `day` by the settings `retention.days` (0: for ever) and `retention.types`.

    >>> from datetime import UTC
    >>> rule = project_retention(datetime(2026, 3, 31, tzinfo=UTC), 0, ["gotcha=30", "decision=0"])
    >>> rule.since, [(name, f"{at:%d %B}") for name, at in rule.by_type.items()]
    (None, [('gotcha', '01 March')])
    """
    by_type = {name: day - timedelta(days=count) for name, count in map(days_of_type, types) if count}
    return ProjectRetention(day - timedelta(days=days) if days else None, by_type)


def days_of_type(text: str) -> tuple[str, int]:
    """Return the type and days of `type=days`. Raises ValueError for anything else."""
    name, _, days = text.partition("=")
    if name not in MEMORY_TYPES or not (days.isascii() and days.isdecimal() and len(days) <= 6):
        raise ValueError(text)
    return name, int(days)
