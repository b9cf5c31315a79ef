"""What is never taken in: excluded folders, sessions that say too little, and private ones."""

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.private import is_word_in
from cortex.transforms.schemas import values


def is_excluded(cwd: str, excluded: tuple[str, ...]) -> bool:
    """Return whether a folder is one of the excluded ones, or below one."""
    return any(cwd == path.rstrip("/") or cwd.startswith(path.rstrip("/") + "/") for path in excluded)


def is_trivial(turns: list[pa.Table], min_chars: int) -> bool:
    """Return whether a whole transcript says too little to be kept: "hi" and its answer (spec 4.6)."""
    text = "\n".join(text for rows in turns for text in values(rows, "text"))
    return 0 < len(text) < min_chars and "[MEMORY:" not in text  # what is told on purpose may be short


def asks_for_privacy(turns: list[pa.Table]) -> bool:
    """Return whether the first prompt of a whole transcript says that the session is private."""
    for rows in turns:
        prompts = rows.filter(pc.equal(rows["kind"], pa.scalar("prompt")))
        if prompts.num_rows:
            return is_word_in(prompts["text"][0].as_py() or "")
    return False
