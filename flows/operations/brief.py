"""A project's brief as a run would publish it: its text, its archive, and why each line is in or out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cortex.flows.briefs import archive_now, archive_of, brief_choices, brief_now, brief_of, material_of
from cortex.flows.context import Context
from cortex.flows.operations.past import store_as_of
from cortex.flows.operations.targets import projects_of
from cortex.flows.runs import looking
from cortex.storage.projects import Project
from cortex.transforms.brief.choice import Choice

LEFT_OUT_SHOWN = 40


@dataclass(frozen=True)
class Brief:
    """The text of a project's brief, or of its archive of older decisions; "" where there is nothing."""

    project_id: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """The candidates for a project's brief with reason and rank, and doubts about some by memory id."""

    project: Project
    choices: Sequence[Choice]
    doubts: Mapping[str, str]

    @property
    def shown(self) -> list[Choice]:
        """Return the candidates that are in."""
        return [choice for choice in self.choices if choice.is_shown]

    @property
    def left_out(self) -> list[Choice]:
        """Return the best LEFT_OUT_SHOWN of those that are not."""
        out = [choice for choice in self.choices if not choice.is_shown]
        return sorted(out, key=lambda choice: (-choice.rank, choice.memory_id))[:LEFT_OUT_SHOWN]


def read_briefs(
    context: Context, project: str | None = None, *, archive: bool = False, as_of: str | None = None
) -> list[Brief]:
    """Return the briefs of the named projects, else of the folder's; with `archive` their older decisions."""
    book = context.open_store().projects
    names = book.named(project) if project else [book.known(str(context.folder))]
    ids = [name for name in names if name]
    if as_of is None:
        run, read = looking(context, with_model=False), archive_now if archive else brief_now
        return [Brief(project_id, read(run, project_id)) for project_id in ids]
    past, read = store_as_of(context, as_of, ids), archive_of if archive else brief_of
    return [Brief(project_id, read(past, project_id)) for project_id in ids]


def explain_briefs(
    context: Context, project: str | None = None, *, as_of: str | None = None
) -> list[Explanation]:
    """Return why each candidate is in the brief or not, by project. Raises as `projects_of`."""
    projects = projects_of(context, context.open_store(), project)
    ids = [project.project_id for project in projects]
    run = looking(context) if as_of is None else store_as_of(context, as_of, ids)
    explanations = []
    for project_meant in projects:
        material = material_of(run, project_meant.project_id)
        explanation = Explanation(project_meant, brief_choices(run, material), dict(material.doubts))
        explanations.append(explanation)
    return explanations
