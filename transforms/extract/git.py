"""Layer 1: commits, pushes and pull requests, read from the commands that made them."""

import re
from collections.abc import Iterator, Sequence

from cortex.hooks.prose.sources import SHELL_TOOLS
from cortex.transforms.extract.ground.candidate import (
    Candidate,
    Turn,
    line_of,
    text_of,
)
from cortex.transforms.extract.ground.statements import (
    LONGEST_CHARS,
    cut_between,
    plain,
    prose_blocks,
)
from cortex.transforms.extract.structural import Call, calls_that_ran

COMMIT = re.compile(r"\bgit (?:-[cC] \S+ )*commit\b")
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?\n(.*?)\n\s*\1\b", re.DOTALL)
MESSAGE = re.compile(r"""(?:-m|--message)[ =]\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""", re.DOTALL)
COMMITTED = re.compile(r"^\[([^\]\s]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.*)$", re.MULTILINE)
PULL_REQUEST = re.compile(r"https://[\w.-]+/[\w./-]+/(?:pull|merge_requests)/(\d+)")
PUSH = re.compile(r"\bgit (?:-[cC] \S+ )*push\b(?!.*--dry-run)")
MERGED = re.compile(r"\b(?:gh pr|glab mr) merge\b")
PR_CREATE = re.compile(r"\b(?:gh pr|glab mr) create\b")
PR_TITLE = re.compile(r"""--title[ =]\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")
TRAILER = re.compile(
    r"^(?:co-authored-by|signed-off-by|assisted-by|generated with|🤖|change-id|entire-"
    r"|confidence:|scope-risk:|tested:|not-tested:)",
    re.IGNORECASE,
)


def git_candidates(turns: Sequence[Turn]) -> Iterator[Candidate]:
    """Yield the commits and pull requests of one thread, as git and the forge confirmed them."""
    for call in calls_that_ran(turns):
        if call.tool not in SHELL_TOOLS or call.failed:
            continue
        done = COMMITTED.search(text_of(call.result)) if COMMIT.search(call.argument) else None
        if done:
            branch, commit, subject = done.groups()
            body = _first_paragraph(commit_message(call.argument))
            text = f"Committed {commit} on {branch}: {subject.rstrip('.')}{f'. {body}' if body else ''}"
            yield _progress(call, text, "commit", commit)
        opened = PULL_REQUEST.search(text_of(call.result)) if PR_CREATE.search(call.argument) else None
        if opened:
            title = PR_TITLE.search(call.argument)
            named = f": {title[1] or title[2]}" if title else ""
            yield _progress(call, f"Opened PR #{opened[1]}{named} ({opened[0]})", "pull_request", None)


def _progress(call: Call, text: str, source: str, commit: str | None) -> Candidate:
    return Candidate(
        call.turn, (line_of(call.turn), line_of(call.result)), cut_between(plain(text), LONGEST_CHARS),
        "TASK_COMPLETED", "progress", "layer1:git", source, "assistant", git_commit=commit,
    )  # fmt: skip


def _first_paragraph(message: str) -> str:
    """Return what a message says first after its subject, without trailers."""
    lines = [line for line in message.split("\n")[1:] if not TRAILER.match(line.strip())]
    return next((block.text for block in prose_blocks("\n".join(lines))), "")


def commit_message(command: str) -> str:
    """
    Return the message a commit command gives, its parts as paragraphs; empty if it gives none.

    >>> commit_message('git commit -m "Add x" -m "Because y."')
    'Add x\\n\\nBecause y.'
    """
    heredoc = HEREDOC.search(command)
    if heredoc:
        return heredoc[2].strip()
    parts = [double or single for double, single in MESSAGE.findall(command)]
    return "\n\n".join(part.replace('\\"', '"').strip() for part in parts)
