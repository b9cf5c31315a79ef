"""
An agent for tests of `cortex eval benefit`: it does what the words that it was given allow, and no more.

It reads the prompt on stdin and finds its task by the message at the end. It writes the reference solution if
every fact's words stand before the message, the one that follows an overturned plan if only words of that do,
else the one that a developer would write who knows nothing.
"""

import json
import sys
from pathlib import Path

from cortex.scores.benefit_tasks import holds, joined

DATA = Path(__file__).parents[1] / "data" / "benefit"


def solutions() -> list[dict]:
    """Return the rows of all tasks with their solutions."""
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*.json"))]
    return [task for document in documents for task in document["tasks"]]


def written(solution: dict) -> dict[str, str]:
    """Return the files of a solution."""
    return {name: joined(text) for name, text in solution.items()}


def main() -> None:
    """Do the task that stands on stdin, in the folder one stands in."""
    prompt = sys.stdin.read()
    task = max(
        (task for task in solutions() if prompt.endswith(task["prompt"])),
        key=lambda task: len(task["prompt"]),
    )
    context = prompt.removesuffix(task["prompt"])
    knows = all(holds(context, words) for words in task["words"])
    follows = "misled" in task["solutions"] and context.strip() and holds(context, task["stale_words"])
    name = "reference" if knows else "misled" if follows else "naive"
    for path, text in written(task["solutions"][name]).items():
        Path(path).write_text(text, encoding="utf-8")
    print(f"{task['id']}: {name}")


if __name__ == "__main__":
    main()
