"""Whether the repository still agrees with what is remembered: names that are gone, branches not merged."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cortex.transforms.policy import Policy
from cortex.transforms.vocabulary import Row
from cortex.transforms.words.sentences import STATEMENT, sentences

# -- What a sentence settles on and what it turns down, by name: "FastAPI over Flask" (spec 11.3).

# Where the thing that was turned down ends and the sentence goes on.
_END = re.compile(
    r"[,;:()!?]|\s(?:because|since|as|so|and|but|while|which|that|for|in|on|when|where"
    r"|weil|da|denn|und|für|parce|car|pour|et|porque|para|y)\s",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w.@/+-]+")


@dataclass(frozen=True)
class Sides:
    """Names of technologies, lower case: those that a sentence settles on, and those that it turns down."""

    chosen: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Choices:
    """
    The wordings of a choice (choice_words.csv) and the names it may be about.

    Those are the technologies, and what is declared as a dependency (declared_names.csv): by its name the
    name in a manifest and the kind, of which a project takes one in the place of another.
    """

    patterns: tuple[re.Pattern[str], ...]
    technologies: frozenset[str]
    declared: dict[str, str]
    kinds: dict[str, str]

    @staticmethod
    def of(policy: Policy) -> "Choices":
        """Return the tables of the policy."""
        wordings = policy.tables["choice_words"]["pattern"].to_pylist()
        rows = policy.tables["declared_names"].to_pylist()
        return Choices(
            tuple(re.compile(str(wording), re.IGNORECASE) for wording in wordings),
            frozenset(str(term) for term in policy.tables["technologies"]["term"].to_pylist()),
            {str(row["term"]): str(row["declared_as"]) for row in rows},
            {str(row["term"]): str(row["kind"]) for row in rows},
        )

    def technologies_in(self, text: str) -> frozenset[str]:
        """Return the technologies that a text names."""
        return words_of(text) & self.technologies

    def names_in(self, text: str) -> frozenset[str]:
        """Return the technologies that a text names, and the dependencies that have rivals."""
        return words_of(text) & (self.technologies | self.declared.keys())

    def as_declared(self, name: str) -> str:
        """Return how a manifest names it."""
        return self.declared.get(name, name)

    def sides_of(self, sentence: str, rejected: str = "") -> Sides:
        """
        Return both sides of the choice in a sentence, each as far as it has names.

        `rejected` is what its memory is known to turn down, wherever that was said.
        """
        named_against = self.names_in(rejected)
        chosen = self.names_in(sentence) if named_against else frozenset[str]()
        for pattern in self.patterns:
            for match in pattern.finditer(sentence):
                sides = {"chosen": "", "rejected": "", **match.groupdict(default="")}
                against = self.names_in(_END.split(f"{sides['rejected']} ", maxsplit=1)[0])
                named_against |= against
                chosen |= self.names_in(sides["chosen"]) if against else frozenset()
        return Sides(chosen - named_against, named_against)

    def are_rivals(self, chosen: str, rejected: str) -> bool:
        """Return whether one would be declared in the place of the other: two frameworks, two linters."""
        return chosen in self.kinds and self.kinds[chosen] == self.kinds.get(rejected)


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text as a manifest may have them, lower case."""
    return frozenset(word.strip(".@/-").lower() for word in _WORD.findall(text))


# What a memory says is often committed within the hours after.
COMMITTED_WITHIN = timedelta(days=1)
OUTDATED = "[possibly outdated]"

_PATH = re.compile(r"(?<![\w/.:])[\w.-]+(?:/[\w.-]+)+|(?<![\w/.])[\w-]+\.[A-Za-z]{1,5}\b")
_CODE = re.compile(r"`([^`]{3,80})`")
_SYMBOL = re.compile(r"^([A-Za-z_][\w.:]*?)(?:\(.*\))?$")
_IS_NAME = re.compile(r"_|[a-z][A-Z]|^[A-Z]\w+[a-z]")
# A sentence that says itself that the thing went away, or was turned down, is right that it is gone.
_GONE = re.compile(
    r"\b(?:remov\w+|delet\w+|dropp?\w*|replac\w+|renam\w+|moved|retired|reverted|instead of|rather than"
    r"|no longer|not|never|without|against|reject\w+|over|obsolete|used to|was|were)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Questions:
    """
    What the repository is asked in one pass: names of code, and the times at which they were spoken of.

    `described` are the files that a memory says something about that their lines could overtake, `branches`
    those that memories were said on.
    """

    symbols: frozenset[str]
    dependencies: frozenset[str]
    instants: frozenset[datetime]
    described: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Tree:
    """What one commit holds of what was asked for."""

    symbols: frozenset[str] = frozenset()
    dependencies: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CommitEdit:
    """What one commit did to one file, in lines."""

    at: datetime
    added: int
    removed: int


@dataclass(frozen=True)
class Snapshot:
    """
    A repository as its HEAD is, and what it was; `head_at` is when that was committed.

    `deleted` are the paths that some commit deleted or renamed and that are not there now; `then` is, by the
    instant asked about, the tree of the last commit until then; `edits` are those of each file described;
    `gone_branches` were deleted, and nothing of them is in HEAD.
    """

    head: str
    head_at: datetime
    branch: str
    files: frozenset[str]
    deleted: frozenset[str]
    unmerged_branches: frozenset[str]
    now: Tree
    then: Mapping[datetime, Tree] = field(default_factory=dict)
    edits: Mapping[str, tuple[CommitEdit, ...]] = field(default_factory=dict)
    gone_branches: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Doubt:
    """One reason to doubt a memory: the mark a brief prints, and what in the repository disagrees."""

    memory_id: str
    mark: str
    reason: str


class Paths:
    """The paths of a repository, found by themselves, by their end, or by a longer path that ends in one."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def ending_in(self, named: str) -> list[str]:
        """Return the paths that are `named` or end in it."""
        # Without a table of all ends: 400 files below 1,500 folders have 1 GB of them.
        paths = self._by_name.get(named.rpartition("/")[2], ())
        return [path for path in paths if path.lstrip("./") == named or path.endswith(f"/{named}")]

    def have(self, named: str) -> bool:
        """Return whether a path of the repository is meant; absolute ones come from a session's machine."""
        if self.ending_in(named):
            return True
        ends = set(_ends_of(named))
        return any("/" in path and path in ends for path in self._by_name.get(named.rpartition("/")[2], ()))


def questions(memories: Iterable[Row], policy: Policy) -> Questions:
    """Return what must be asked of the repository to check `memories`, rows of MEMORIES."""
    memories = list(memories)
    choices = Choices.of(policy)
    claims, descriptions = policy.types_with("is_claim"), policy.types_with("is_description")
    checked = [row for row in memories if row["status"] == "active" and row["memory_type"] in claims]
    described = [row for row in checked if row["memory_type"] in descriptions]
    return Questions(
        frozenset(name for row in checked for name in symbols_in(row["text"])),
        frozenset(
            choices.as_declared(name)
            for row in checked
            for name in choices.names_in(f"{row['text']} {_rejected(row)}")
        ),
        frozenset(at for row in checked for at in _spoken_at(row)),
        frozenset(path for row in described for path in paths_in(row["text"])),
        frozenset(branch for row in memories if row["status"] == "active" for branch in branches_behind(row)),
    )


def doubts(memories: Iterable[Row], snapshot: Snapshot, policy: Policy) -> list[Doubt]:
    """
    Return why the repository no longer agrees with memories, at most one doubt each, ordered by memory_id.

    A file counts as gone if a commit took it away; a name of code or a dependency if it was there when the
    memory was said and is not now. What the memory itself calls removed, rejected or replaced is right
    about it. A memory said only on branches that are not merged, or went unmerged, holds there alone.
    """
    claims, descriptions = policy.types_with("is_claim"), policy.types_with("is_description")
    choices = Choices.of(policy)
    files, deleted = Paths(snapshot.files), Paths(snapshot.deleted)
    doubted = []
    for row in sorted((row for row in memories if row["status"] == "active"), key=lambda r: r["memory_id"]):
        gone = _gone(row, snapshot, files, deleted, choices) if row["memory_type"] in claims else ""
        gone = gone or (_rewritten(row, snapshot, policy) if row["memory_type"] in descriptions else "")
        branch = _unmerged_branch(row, snapshot)
        if gone:
            doubted.append(Doubt(row["memory_id"], OUTDATED, gone))
        elif branch:
            is_gone = branch in snapshot.gone_branches
            doubted.append(branch_doubt(row["memory_id"], branch, is_gone=is_gone))
    return doubted


def symbols_in(text: str) -> frozenset[str]:
    """
    Return the names of code that a text gives in backticks: functions, classes, constants.

    >>> sorted(symbols_in("`read_store()` calls `Tide.level`, see `git add -p` and `x`"))
    ['Tide.level', 'read_store']
    """
    names = (_SYMBOL.match(quoted) for quoted in _CODE.findall(text))
    return frozenset(name[1] for name in names if name and _IS_NAME.search(name[1]))


def paths_in(text: str) -> list[str]:
    """
    Return the paths and file names that a text gives, without the full stop of their sentence.

    >>> paths_in("Retries live in src/poll.py. See store.py too.")
    ['src/poll.py', 'store.py']
    """
    return [path.rstrip(".-") for path in _PATH.findall(text)]


def _rewritten(row: Row, snapshot: Snapshot, policy: Policy) -> str:
    """Return which file that a memory describes has other lines by now, and how many commits it took."""
    limit = policy.threshold("reality_rewritten_share")
    until = _committed_until(row["updated_at"])
    for named in paths_in(row["text"]):
        for path in sorted(path for path in snapshot.edits if named in _ends_of(path)):
            share, commits = rewritten_share(snapshot.edits[path], until)
            if share >= limit:
                return f"{share:.0%} of the lines of {named} went in {commits} commits since"
    return ""


def rewritten_share(edits: Iterable[CommitEdit], until: datetime) -> tuple[float, int]:
    """
    Return which part of a file's lines at `until` later commits removed, 0 to 1, and their number.

    A line changed is one removed and one added. A file that was not there yet has no such part.
    """
    counted = list(edits)
    before = [edit for edit in counted if edit.at <= until]
    since = [edit for edit in counted if edit.at > until]
    lines = sum(edit.added - edit.removed for edit in before)
    removed = sum(edit.removed for edit in since)
    return (min(1.0, removed / lines) if lines > 0 else 0.0), len(since)


def _spoken_at(row: Row) -> tuple[datetime, datetime]:
    """Return when a memory was said and when what it said was committed: a name of either time was true."""
    return row["updated_at"], _committed_until(row["updated_at"])


def _committed_until(said_at: datetime) -> datetime:
    last = datetime.max.replace(tzinfo=UTC)  # a record of a session may have any time
    return min(said_at, last - COMMITTED_WITHIN) + COMMITTED_WITHIN


def _rejected(row: Row) -> str:
    return str(row.get("rejected") or "")


def _gone(row: Row, snapshot: Snapshot, files: Paths, deleted: Paths, choices: Choices) -> str:
    """Return what a memory names and the repository no longer has, or nothing."""
    trees = [snapshot.then.get(at, Tree()) for at in _spoken_at(row)]
    symbols = trees[0].symbols | trees[1].symbols
    dependencies = trees[0].dependencies | trees[1].dependencies
    for sentence in sentences(row["text"], STATEMENT):
        sides = choices.sides_of(sentence, _rejected(row))
        if unmade := _not_taken(sides, row, snapshot, choices):
            return unmade
        # What a choice settles on is claimed, whatever words it turns the rest down with.
        is_about_gone = _GONE.search(_PATH.sub(" ", _CODE.sub(" ", sentence)))  # a file may be removed.py
        named = frozenset() if is_about_gone else choices.technologies_in(sentence)
        names = sides.chosen or named - sides.rejected
        for path in () if is_about_gone else paths_in(sentence):
            if deleted.have(path) and not files.have(path):
                return f"file {path} is gone"
        for name in () if is_about_gone else sorted(symbols_in(sentence)):
            if name in symbols and name not in snapshot.now.symbols:
                return f"`{name}` is gone"
        for name in sorted(names):
            declared = choices.as_declared(name)
            if declared in dependencies and declared not in snapshot.now.dependencies:
                return f"{name} is no longer a dependency"
    return ""


def _not_taken(sides: Sides, row: Row, snapshot: Snapshot, choices: Choices) -> str:
    """
    Return which chosen dependency the repository does not declare while it declares its rejected rival.

    Only if there are commits from later than a day after the choice: until then it may be work to come.
    """
    if snapshot.head_at <= _committed_until(row["updated_at"]):
        return ""
    declared = snapshot.now.dependencies
    rivals = (
        (chosen, rejected)
        for chosen in sorted(sides.chosen)
        for rejected in sorted(sides.rejected)
        if choices.are_rivals(chosen, rejected)
    )
    for chosen, rejected in rivals:
        if choices.as_declared(chosen) not in declared and choices.as_declared(rejected) in declared:
            return f"{chosen} is not a dependency, {rejected} is"
    return ""


def _ends_of(path: str) -> list[str]:
    parts = path.lstrip("./").split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def branch_doubt(memory_id: str, branch: str, *, is_gone: bool = False) -> Doubt:
    """Return the doubt about what was said on a branch alone that is not merged into the one looked at."""
    if is_gone:
        reason = f"branch {branch} is gone and was not merged into HEAD"
        return Doubt(memory_id, f"[on branch {branch}, gone and not merged]", reason)
    return Doubt(memory_id, f"[on branch {branch}, not merged]", f"branch {branch} is not merged into HEAD")


def branches_behind(row: Row) -> frozenset[str]:
    """Return the branches that a memory was said on; none if one of its places names no branch."""
    own_branches = {row["git_branch"]} if row.get("folder") else set()
    branches = frozenset(own_branches.union(place["git_branch"] for place in row["evidence"]))
    return frozenset[str]() if None in branches else branches


def _unmerged_branch(row: Row, snapshot: Snapshot) -> str:
    """Return the branch a memory was said on, if only unmerged ones saw it and HEAD is not among them."""
    branches = branches_behind(row)
    is_elsewhere = bool(branches) and snapshot.branch not in branches
    unmerged = snapshot.unmerged_branches | snapshot.gone_branches
    # One that is still there says more than one that is gone.
    there = branches & snapshot.unmerged_branches
    return min(there or branches) if is_elsewhere and branches <= unmerged else ""
