"""The tools, languages and services that a text names, by technologies.csv."""

from collections.abc import Mapping

from cortex.transforms.policy import Policy


def tag_by_term(policy: Policy) -> dict[str, str]:
    """Return the tag of each term: `pytest` and `ruff` are of `python`."""
    rows = policy.tables["technologies"].to_pylist() if "technologies" in policy.tables else []
    return {str(row["term"]): str(row["tag"]) for row in rows}


def technology_tags(text: str, tags: Mapping[str, str]) -> set[str]:
    """
    Return the tags of the terms that stand in `text` as words of their own, whatever their case.

    >>> sorted(tags_in("Run PyTest, not `jest`.", {"pytest": "python", "jest": "javascript"}))
    ['javascript', 'python']
    """
    words = {word.strip(".,:;!?()`\"'").lower() for word in text.split()}
    return {tags[word] for word in words if word in tags}
