"""Briefs in files of the user's projects instead of the hook's: written, kept up to date, taken out."""

from pathlib import Path
from typing import NamedTuple

from cortex.flows.run.run import Run
from cortex.storage.published.surface import Surfaces, roots_of
from cortex.transforms.documents.marker_block import Unplaceable, file_of


class Wanted(NamedTuple):
    """A file that is to show a brief: its project's folder, its name there, the brief."""

    root: Path
    name: str
    text: str


def show_briefs(run: Run) -> list[str]:
    """
    Bring the files in line with `brief.surface` and the briefs (spec 11.1); return what could not be done.

    Where a file cannot be written, the hook goes on handing the brief over. Raises StoreNotWritable.
    """
    surfaces = Surfaces(run.store.home)
    wanted, problems = _wanted(run)
    shown: dict[str, str] = {}
    for path in surfaces.files():
        if path not in wanted:
            problems += _problem(path, surfaces, None)
    for path, target in wanted.items():
        problem = _problem(path, surfaces, target)
        problems += problem
        if not problem:
            shown[str(target.root)] = str(path)
    run.store.published.publish_surfaces(shown)
    return problems


def _problem(path: Path, surfaces: Surfaces, wanted: Wanted | None) -> list[str]:
    try:
        if wanted is None:
            surfaces.withdraw(path)
        else:
            surfaces.show(*wanted)
    except Unplaceable as error:
        return [f"{path} was left as it is: {error}"]
    except OSError as error:
        return [f"{path} was left as it is: {error.strerror}"]
    return []


def _wanted(run: Run) -> tuple[dict[Path, Wanted], list[str]]:
    wanted: dict[Path, Wanted] = {}
    problems: list[str] = []
    for project in run.store.projects.all():
        surface = run.settings.of_project(project.project_id, project.paths).brief_surface
        try:
            name = file_of(surface)
        except Unplaceable as error:
            problems.append(str(error))
            continue
        text = run.store.published.brief(project.project_id) if name else ""
        if name and text:
            wanted |= {root / name: Wanted(root, name, text) for root in roots_of(project.paths)}
    return wanted, list(dict.fromkeys(problems))
