"""Names are nouns in the field's words, and each public name has one home (CONTRIBUTING, Names)."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cortex.transforms.schemas import ALL_TABLES

ROOT = Path(__file__).parents[2]
PRODUCTION = ("cortex", "flows", "hooks", "storage", "transforms")
ROOMS = (*PRODUCTION, "benchmarks", "docs")

# Words that say nothing about the value they name.
EMPTY_WORDS = {"told", "one", "found", "made", "said"}
# Words of our own, each with the field's word for the same thing.
OWN_WORDS = {
    "afresh": "rebuilt",
    "apart": "isolated, separate",
    "beside": "nearby, alongside, or the thing's name",
    "book": "register",
    "breach": "violation", "breaches": "violations",
    "cutter": "tokenizer",
    "deed": "action",
    "deeds": "actions",
    "doomed": "deleted",
    "entomb": "delete", "entombed": "deleted",
    "given_way": "replaced",
    "heard": "text",
    "keeper": "writer",
    "left_out": "omitted",
    "likeness": "similarity",
    "looking": "read-only",
    "material": "inputs",
    "mend": "repair", "mended": "repaired", "mending": "repair",
    "patient": "target",
    "seal": "encrypt", "sealed": "encrypted", "unseal": "decrypt", "unsealed": "decrypted",
    "seat": "take",
    "seated": "taken",
    "set_aside": "quarantine",
    "shelf": "listing",
    "sought": "query",
    "spare": "fallback",
    "standing": "eligibility, state",
    "standings": "eligibility",
    "stretch": "exchange, period, window",
    "stretches": "exchanges",
    "turned": "parsed",
    "unsettled": "unresolved",
    "wish": "preference", "wishes": "preferences",
}  # fmt: skip
# The one name of a column, a file or a policy row is its name in code as well.
COLUMNS = {name for table in ALL_TABLES for name in table.arrow.names}
# Phrases in which the word is no stand-in for a noun.
# `left_out` is a key of JSON answers.
# `own_deed` is a row of phrases.csv.
# `standing_in` is about the kind `standing` of kinds.csv: what holds for good.
# `standing_parts` is as well.
# `STANDING_TYPES` is as well.
# `connection_made` is what asyncio calls.
# `one_of` is a column's closed set; `made_at` and `made_by` are keys in the files of backups and manifests.
PHRASES = {
    "on_one_line",
    "NotFound",
    "connection_made",
    "one_of",
    "made_at",
    "made_by",
    "left_out",
    "own_deed",
    "standing_in",
    "standing_parts",
    "STANDING_TYPES",
}
ALLOWED = COLUMNS | PHRASES

# Public names with several homes by intent, with the reason.
INTENDED = {
    "TYPE_CHECKING": "hooks do without the import of typing",
    "main": "each program has one",
}
# Rooms whose modules offer the same names, since one of them is chosen at run time.
INTERFACES = ("flows/embedders/", "flows/writers/", "transforms/transcripts/assistants/")

# The nodes that can give a name: one in five.
NAMING = {
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.Name, ast.Attribute),
    *(ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar),
}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(rooms: tuple[str, ...]) -> list[Path]:
    """Return the modules of some rooms, without those behind the links in `cortex/`."""
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    return [path for path in paths if path.resolve() == path]


def inside(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def names(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each name that a module gives to something, with its line."""
    yield path.stem, 0
    for node in ast.walk(tree(path)):
        if type(node) not in NAMING:
            continue
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


def words(name: str) -> list[str]:
    """Return the words of a snake_case or CamelCase name."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


@cache
def bad_words(name: str) -> list[str]:
    if name in ALLOWED or words(name)[:1] in (["is"], ["has"]):
        return []
    spaced = f"_{'_'.join(words(name))}_"
    return [word for word in (*EMPTY_WORDS, *OWN_WORDS) if f"_{word}_" in spaced]


def bad_names(path: Path) -> list[str]:
    return [f"{inside(path)}:{line} {name}" for name, line in names(path) if bad_words(name)]


def test_names_are_nouns_in_the_words_of_the_field():
    assert [name for path in modules(ROOMS) for name in bad_names(path)] == []


def is_command(node: ast.stmt) -> bool:
    """Return whether a function is a command of the command line, which is named after what it calls."""
    decorators = getattr(node, "decorator_list", [])
    return any(re.match(r"(\w+[.])?(command|group)\(", ast.unparse(each)) for each in decorators)


def public_names(path: Path) -> set[str]:
    """Return the functions, classes and constants that a module defines at its top level."""
    public = set()
    for node in tree(path).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if not is_command(node):
                public.add(name)
            case ast.Assign(targets=targets):
                public |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                public.add(name)
    return {name for name in public if not name.startswith("_")} - INTENDED.keys()


def homes() -> dict[str, list[str]]:
    """Return the modules of each public name; those of one interface count as one."""
    homes = defaultdict(set)
    for path in modules(PRODUCTION):
        interface = next((room for room in INTERFACES if inside(path).startswith(room)), inside(path))
        for name in public_names(path):
            homes[name].add(interface)
    return {name: sorted(places) for name, places in homes.items()}


def test_each_public_name_has_one_home():
    assert {name: places for name, places in homes().items() if len(places) > 1} == {}
