"""Layer 1: commits, pushes and pull requests, read from the commands that made them."""

import re
from collections.abc import Iterator, Sequence

from cortex.hooks.sources import SHELL_TOOLS
from cortex.transforms.extract.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.rewording import with_plain_arrows
from cortex.transforms.extract.sentences import LONGEST_CHARS, Passage, plain
from cortex.transforms.extract.signals import Corpus, signals
from cortex.transforms.extract.statements import cut_between, passages
from cortex.transforms.extract.structural import Call, calls_that_ran
from cortex.transforms.extract.thread import Place
from cortex.transforms.words.sentences import shortened

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


def git_candidates(turns: Sequence[Turn], lexicon: Lexicon) -> Iterator[Candidate]:
    """Yield the commits and pull requests of one thread, and the reasons that commit messages state."""
    for call in calls_that_ran(turns):
        if call.tool in SHELL_TOOLS and not call.failed:
            yield from _from_call(call, lexicon)
    for turn in turns:
        if turn["kind"] == "shell" and COMMIT.search(text_of(turn)):
            yield from _reasons(turn, (line_of(turn),), commit_message(text_of(turn)), None, lexicon)


def _from_call(call: Call, lexicon: Lexicon) -> Iterator[Candidate]:
    lines = (line_of(call.turn), line_of(call.result))
    if COMMIT.search(call.argument):
        done = COMMITTED.search(text_of(call.result))
        if done:
            branch, commit, subject = done.groups()
            yield from _commit(call, lines, branch, commit, subject, lexicon)
    if PR_CREATE.search(call.argument):
        opened = PULL_REQUEST.search(text_of(call.result))
        if opened:
            title = PR_TITLE.search(call.argument)
            named = f": {title[1] or title[2]}" if title else ""
            yield _progress(
                call.turn, lines, f"Opened PR #{opened[1]}{named} ({opened[0]})", "is_pull_request", None
            )


def _commit(
    call: Call, lines: tuple[int, int], branch: str, commit: str, subject: str, lexicon: Lexicon
) -> Iterator[Candidate]:
    message = commit_message(call.argument)
    body = _body(message, lexicon.phrases)
    text = f"Committed {commit} on {branch}: {subject}"
    if body:
        text = f"{text.rstrip('.')}. {body[0].text}"
    yield _progress(call.turn, lines, text, "is_commit", commit)
    yield from _reasons(call.turn, lines, message, commit, lexicon, skip=1)


def _progress(turn: Turn, lines: tuple[int, ...], text: str, signal: str, commit: str | None) -> Candidate:
    shown = cut_between(with_plain_arrows(plain(text)), LONGEST_CHARS)
    return Candidate(
        turn, lines, shown, "TASK_COMPLETED", "progress", "layer1:git",
        {signal: 1.0}, "assistant", git_commit=commit,
    )  # fmt: skip


def _reasons(
    turn: Turn, lines: tuple[int, ...], message: str, commit: str | None, lexicon: Lexicon, skip: int = 0
) -> Iterator[Candidate]:
    """Yield the paragraphs of a commit message: the why of the change, in its author's considered words."""
    subject = message.split("\n", 1)[0].strip()
    for passage in _body(message, lexicon.phrases)[skip:4]:
        text = shortened(f"{plain(subject)}: {passage.text}", LONGEST_CHARS)
        reading = lexicon.read(passage.text, "assistant")
        event_type, memory_type = lexicon.kind_of(passage.text, reading)
        shown = signals(passage, Place("assistant", None), Corpus.of([]), reading.strengths, lexicon) | {
            "is_commit_body": 1.0
        }
        yield Candidate(
            turn,
            lines,
            text,
            event_type,
            memory_type,
            "layer1:git",
            shown,
            str(turn["trust"]),
            git_commit=commit,
        )


def _body(message: str, phrases: Phrasebook) -> list[Passage]:
    """Return the passages of a message after its subject, without trailers."""
    kept = [line for line in message.split("\n")[1:] if not TRAILER.match(line.strip())]
    return passages("\n".join(kept), phrases)


def commit_message(command: str) -> str:
    """
    Return the message a commit command gives, its parts as paragraphs; empty where it gives none.

    >>> commit_message('git commit -m "Add x" -m "Because y."')
    'Add x\\n\\nBecause y.'
    """
    heredoc = HEREDOC.search(command)
    if heredoc:
        return heredoc[2].strip()
    parts = [double or single for double, single in MESSAGE.findall(command)]
    return "\n\n".join(part.replace('\\"', '"').strip() for part in parts)
