"""Names that tell projects of one name apart."""

from collections.abc import Mapping, Sequence


def labels(names: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
    """
    Return project id → label: the project's name, where several share it with more of its place before it.

    `names` are by id; `places` too: a remote without its scheme, or a folder. As many parts of the place go
    before the name as it takes to differ; if the places do not differ, the id is the label.

    >>> labels({"a-1": "cli", "a-2": "cli"}, {"a-1": "github.com/kelp/cli", "a-2": "github.com/reef/cli"})
    {'a-1': 'kelp/cli', 'a-2': 'reef/cli'}
    """
    shared: dict[str, list[str]] = {}
    for project_id, name in names.items():
        shared.setdefault(name, []).append(project_id)
    result: dict[str, str] = {}
    for name, ids in shared.items():
        own = [name] if len(ids) == 1 else _distinct(name, [places.get(each, "") for each in ids])
        result.update(zip(ids, own or ids, strict=True))
    return {project_id: result[project_id] for project_id in names}


def _distinct(name: str, places: Sequence[str]) -> list[str]:
    """Return a label for each place, all different; nothing if that cannot be."""
    parts = [[part for part in place.replace("\\", "/").split("/") if part] for place in places]
    above = [each[:-1] if each and each[-1] == name else each for each in parts]
    for depth in range(1, max(map(len, above), default=0) + 1):
        candidates = ["/".join([*each[-depth:], name]) for each in above]
        if len(set(candidates)) == len(candidates):
            return candidates
    return []
