"""The manifest: which lake files count, how far each transcript was read, what runs noted for each stage."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from cortex.storage.filesystem.files import write_stored
from cortex.storage.filesystem.place import commit_elsewhere
from cortex.transforms.errors import ManifestDamaged, SchemaMismatch
from cortex.transforms.extract.language.candidate import extractor_fingerprint
from cortex.transforms.memory.loss import Loss
from cortex.transforms.policy import Policy

# -- The manifest's notes: of what each stage made its output, and what a later run still has to do.

# Stages of whose output the notes know what it was made from. What REPLACED_BY make are tables and published
# files, which a rebuild puts in place of others; PROJECTED_BY make all that can be rebuilt from the lake.
REPLACED_BY = frozenset({"embed", "link", "decay", "render"})
PROJECTED_BY = REPLACED_BY | {"consolidate", "linked", "not_due", "publish", "shown", "shown_from"}
NOTED_BY = PROJECTED_BY | {"judge"}

# In the file a note is text under a name: of a stage or another, with a scope after the colon.
_EMPTY = "empty_"
_CUTS = {"embed": "cut", "decay": "fold"}

Value = TypeVar("Value")


class Output(NamedTuple):
    """What a stage made of a scope; of all scopes where it publishes one file ("all")."""

    stage: str
    scope: str


class Makers(NamedTuple):
    """What a scope's tables follow from besides the lake: fingerprints of the policy and of extractors."""

    policy: str
    extractors: str


class PromptChoice(NamedTuple):
    """The version of a prompt that a person chose, and the newest one that there was then."""

    chosen: str
    newest: str


class Cut(NamedTuple):
    """
    What a table was made from: all that the lake held of its scope at a commit, the `generation`.

    Of a project's passages (`embed`) that are turns, of memories (`decay`) events and journal. `output` is
    the fingerprint noted of the table, `basis` one of what it follows from besides these rows, `files` one of
    the lake's files of turns, or of the journal. Transcripts that are `touched` have changed since, bar what
    newer files hold. `content` is what the table held then: of any other table this says nothing.
    """

    output: str
    basis: str
    generation: int
    files: str
    touched: tuple[str, ...] = ()
    content: str = ""


@dataclass(frozen=True)
class RefusedLoss:
    """A loss that waits for a person's decision: how many of how many `what` would go, and why."""

    what: str
    lost: int
    shown: int
    why: str
    scopes: tuple[Loss, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {**vars(self), "scopes": [dict(vars(loss)) for loss in self.scopes]}

    @classmethod
    def of_dict(cls, fields: Mapping[str, Any]) -> "RefusedLoss":
        """Return what `as_dict` gave. Raises KeyError and TypeError for anything else."""
        return cls(**{**fields, "scopes": tuple(Loss(**loss) for loss in fields["scopes"])})


@dataclass(frozen=True)
class ManifestNotes:
    """
    What earlier runs noted with the lake's files. Fingerprints are of inputs, as hex text.

    `outputs` and `empty` are by output (`empty`: of these inputs nothing came, so no file is to be expected),
    `briefs`, `extractors`, `declined`, `grown`, `unextracted` and `prompts` by project ("all": every project
    without its own), `makers`, `consolidated_sessions`, `replaced_by_model` and `untold` by scope; `cuts` by
    output.
    """

    outputs: Mapping[Output, str] = field(default_factory=dict)
    empty: Mapping[Output, str] = field(default_factory=dict)
    briefs: Mapping[str, str] = field(default_factory=dict)  # of the tables, settings and repository shown
    makers: Mapping[str, Makers] = field(default_factory=dict)
    cuts: Mapping[Output, Cut] = field(default_factory=dict)  # of what there are passages and memories
    extractors: Mapping[str, str] = field(default_factory=dict)  # that made the project's events
    declined: Mapping[str, str] = field(default_factory=dict)  # extractors that a person does not want yet
    grown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # sessions that may take back words
    unextracted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # sessions read in part
    replaced_by_model: Mapping[str, int] = field(
        default_factory=dict
    )  # facts, to a model's, since the last brief
    untold: Mapping[str, int] = field(default_factory=dict)  # facts of prose alone, since the last brief
    consolidated_sessions: Mapping[str, int] = field(default_factory=dict)  # there at the last merging
    judged: Mapping[str, str] = field(default_factory=dict)  # of the verdicts of a language model, by scope
    prompts: Mapping[str, PromptChoice] = field(default_factory=dict)  # that read sessions, once chosen
    team: Mapping[str, str] = field(default_factory=dict)  # of branches and journal, by project, once read
    retained: str | None = None  # of the rules of retention that were carried out last
    to_wipe: tuple[str, ...] = ()  # scopes whose tables hold erased bytes in older versions
    encrypted_with: str | None = None  # id of the key that new lake files are encrypted with
    refused_loss: RefusedLoss | None = None

    def with_output(self, output: Output, fingerprint: str, *, is_empty: bool = False) -> "ManifestNotes":
        """Return the notes once a stage has made `output`, or nothing at all, of these inputs."""
        empty = {**self.empty, output: fingerprint} if is_empty else self.empty
        return replace(self, outputs={**self.outputs, output: fingerprint}, empty=empty)

    def due_to_wipe(self, scopes: Collection[str]) -> "ManifestNotes":
        """Return the notes with `scopes` added to those whose old bytes are to be removed."""
        return replace(self, to_wipe=tuple(sorted({*self.to_wipe, *scopes})))

    def without_outputs(self, stages: Collection[str], scopes: Collection[str]) -> "ManifestNotes":
        """Return the notes as if `stages` had made nothing of `scopes` yet."""
        outputs = {o: f for o, f in self.outputs.items() if o.stage not in stages or o.scope not in scopes}
        is_rendered = "render" in stages
        briefs = {p: f for p, f in self.briefs.items() if not is_rendered or p not in scopes}
        cuts = {o: cut for o, cut in self.cuts.items() if o.stage not in stages or o.scope not in scopes}
        return replace(self, outputs=outputs, briefs=briefs, cuts=cuts)

    def without_projections(self, scopes: Collection[str] | None = None) -> "ManifestNotes":
        """Return the notes as if nothing had been made from the lake, of `scopes` or (default) at all."""
        named = (
            {o.scope for o in (*self.outputs, *self.cuts)} | {*self.briefs, *self.makers}
            if scopes is None
            else scopes
        )
        left = {scope: makers for scope, makers in self.makers.items() if scope not in named}
        return replace(self.without_outputs(PROJECTED_BY, named), makers=left)

    def in_place_of(self, before: "ManifestNotes") -> "ManifestNotes":
        """Return the notes of `before` with what these say of outputs, briefs and makers over them."""
        return replace(
            before,
            outputs={**before.outputs, **self.outputs},
            empty={**before.empty, **self.empty},
            briefs={**before.briefs, **self.briefs},
            makers={**before.makers, **self.makers},
            cuts={**before.cuts, **self.cuts},
        )

    def of_scopes(self, scopes: Collection[str]) -> "ManifestNotes":
        """Return what is noted of the outputs, briefs and makers of `scopes`."""
        return ManifestNotes(
            outputs={output: f for output, f in self.outputs.items() if output.scope in scopes},
            empty={output: f for output, f in self.empty.items() if output.scope in scopes},
            briefs={scope: f for scope, f in self.briefs.items() if scope in scopes},
            makers={scope: m for scope, m in self.makers.items() if scope in scopes},
            cuts={output: cut for output, cut in self.cuts.items() if output.scope in scopes},
        )

    def as_texts(self) -> dict[str, str]:
        """Return the notes as the manifest file holds them: name → text, by name."""
        texts = {f"{o.stage}:{o.scope}": text for o, text in self.outputs.items()}
        texts |= {f"{_EMPTY}{o.stage}:{o.scope}": text for o, text in self.empty.items()}
        texts |= {f"brief:{name}": text for name, text in self.briefs.items()}
        texts |= {f"made_by:{name}": ":".join(makers) for name, makers in self.makers.items()}
        texts |= {f"{_CUTS[o.stage]}:{o.scope}": json.dumps(cut) for o, cut in self.cuts.items()}
        texts |= {f"extract:{name}": text for name, text in self.extractors.items()}
        texts |= {f"declined:{name}": text for name, text in self.declined.items()}
        texts |= {f"grown:{name}": json.dumps(sessions) for name, sessions in self.grown.items()}
        texts |= {f"unextracted:{name}": json.dumps(sessions) for name, sessions in self.unextracted.items()}
        texts |= {
            f"consolidated_sessions:{name}": str(count) for name, count in self.consolidated_sessions.items()
        }
        texts |= {f"given_way:{name}": str(count) for name, count in self.replaced_by_model.items()}
        texts |= {f"untold:{name}": str(count) for name, count in self.untold.items()}
        texts |= {f"judged:{name}": text for name, text in self.judged.items()}
        texts |= {f"prompt:{name}": ":".join(choice) for name, choice in self.prompts.items()}
        texts |= {f"team:{name}": text for name, text in self.team.items()}
        if self.retained:
            texts["retained"] = self.retained
        if self.to_wipe:
            texts["to_wipe"] = json.dumps(self.to_wipe)
        if self.encrypted_with:
            texts["sealed_with"] = self.encrypted_with
        if self.refused_loss:
            texts["loss"] = json.dumps(self.refused_loss.as_dict(), sort_keys=True)
        return dict(sorted(texts.items()))

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> "ManifestNotes":
        """
        Return the notes that the manifest file holds; a name that this Cortex does not know is left out.

        Raises KeyError, TypeError or ValueError for a note of another form.
        """
        alone = {name: text for name, text in texts.items() if ":" not in name}
        by_name: dict[str, dict[str, str]] = {}
        for name, text in texts.items():
            head, colon, scope = name.partition(":")
            if colon:
                by_name.setdefault(head, {})[scope] = text
        loss = alone.get("loss")
        return cls(
            outputs=_outputs(by_name, ""),
            empty=_outputs(by_name, _EMPTY),
            briefs=by_name.get("brief", {}),
            makers=_each(by_name, "made_by", _makers),
            cuts={
                Output(stage, scope): _cut(text)
                for stage, name in _CUTS.items()
                for scope, text in by_name.get(name, {}).items()
            },
            extractors=by_name.get("extract", {}),
            declined=by_name.get("declined", {}),
            grown=_each(by_name, "grown", _names),
            unextracted=_each(by_name, "unextracted", _names),
            consolidated_sessions=_each(by_name, "consolidated_sessions", int),
            replaced_by_model=_each(by_name, "given_way", int),
            untold=_each(by_name, "untold", int),
            judged=by_name.get("judged", {}),
            prompts=_each(by_name, "prompt", _prompt_choice),
            team=by_name.get("team", {}),
            retained=alone.get("retained") or None,
            to_wipe=_names(alone.get("to_wipe", "[]")),
            encrypted_with=alone.get("sealed_with"),
            refused_loss=RefusedLoss.of_dict(json.loads(loss)) if loss else None,
        )


def _outputs(by_name: Mapping[str, Mapping[str, str]], prefix: str) -> dict[Output, str]:
    return {
        Output(stage, scope): text
        for stage in NOTED_BY
        for scope, text in by_name.get(prefix + stage, {}).items()
    }


def _each(
    by_name: Mapping[str, Mapping[str, str]], name: str, value_of: Callable[[str], Value]
) -> dict[str, Value]:
    return {scope: value_of(text) for scope, text in by_name.get(name, {}).items()}


def _makers(text: str) -> Makers:
    policy, _, extractors = text.partition(":")
    return Makers(policy, extractors)


def _cut(text: str) -> Cut:
    output, basis, generation, files, touched, *content = json.loads(text)
    names = _checked_names(touched)
    return Cut(str(output), str(basis), int(generation), str(files), names, str(*content))


def _prompt_choice(text: str) -> PromptChoice:
    chosen, _, newest = text.partition(":")
    return PromptChoice(chosen, newest)


def _names(text: str) -> tuple[str, ...]:
    """Return a JSON list of names. Raises TypeError for anything else."""
    return _checked_names(json.loads(text))


def _checked_names(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("not a list of names")
    return tuple(names)


MANIFEST_VERSION = 1

# Where this Cortex writes lake files. What has another name is not ours: it is neither read nor removed, and
# a manifest that was tampered with reaches nothing outside the lake.
_LAKE_FILE = re.compile(r"[a-z]+/(?:project|model)=[^/]+/\d{8,}-[0-9a-f]{12}\.parquet(?:\.aes)?")


def is_lake_file(path: str) -> bool:
    """Return whether `path`, relative to the lake, has the form of a file that this Cortex writes."""
    return _LAKE_FILE.fullmatch(path) is not None


@dataclass(frozen=True)
class LakeFile:
    """One live Parquet file of the lake; `sessions` lists those it holds whole, shadowing older files."""

    path: str  # relative to lake/, with forward slashes
    table: str
    partition: str
    rows: int
    generation: int
    sessions: tuple[str, ...] = ()
    digest: str = ""  # SHA-256 of what was written, in hex digits; empty where no version noted it


@dataclass(frozen=True)
class Cursor:
    """How far a transcript was read: whole lines only; `head` tells whether it is still the same file."""

    read_bytes: int
    read_lines: int
    head: str
    head_bytes: int
    project_id: str
    session_id: str | None


class LiveFiles(dict[str, LakeFile]):
    """The lake's files by path; those of a partition are found without looking at all others."""

    def __init__(self, files: Mapping[str, LakeFile] = MappingProxyType({})) -> None:
        super().__init__(files)
        self._grouped: dict[str, dict[str, list[LakeFile]]] | None = None

    def __setitem__(self, path: str, file: LakeFile) -> None:
        """Add a file."""
        self._grouped = None
        super().__setitem__(path, file)

    def __delitem__(self, path: str) -> None:
        """Take a file out."""
        self._grouped = None
        super().__delitem__(path)

    def by_partition(self, table: str) -> Mapping[str, list[LakeFile]]:
        """Return the files of a table by partition, each partition's oldest first."""
        if self._grouped is None:
            self._grouped = {}
            for file in sorted(self.values(), key=lambda f: (f.generation, f.path)):
                self._grouped.setdefault(file.table, {}).setdefault(file.partition, []).append(file)
        return self._grouped.get(table, {})


@dataclass
class Manifest:
    """
    What the store holds; replaced as a whole, last in every commit.

    `replaced` names files that counted once, or were written for a commit that never came: what a sweep may
    remove. Every other file of the lake is someone's truth.
    """

    generation: int = 0
    files: dict[str, LakeFile] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    notes: ManifestNotes = field(default_factory=ManifestNotes)
    replaced: frozenset[str] = frozenset()

    def live(self, table: str, partition: str | None = None) -> list[LakeFile]:
        """Return the live files of a table (of one partition), oldest first."""
        by_partition = self._grouped().by_partition(table)
        if partition is not None:
            return list(by_partition.get(partition, ()))
        return sorted(chain.from_iterable(by_partition.values()), key=lambda f: (f.generation, f.path))

    def partitions(self, table: str) -> list[str]:
        """Return the partitions of a table that have a live file, sorted."""
        return sorted(self._grouped().by_partition(table))

    def _grouped(self) -> LiveFiles:
        if not isinstance(self.files, LiveFiles):
            self.files = LiveFiles(self.files)
        return self.files

    def copy(self) -> "Manifest":
        """Return a copy to change before it is committed."""
        return replace(self, files=LiveFiles(self.files), cursors=dict(self.cursors))


def read_manifest(path: Path) -> Manifest:
    """
    Return the manifest at `path`, an empty one if there is none.

    Raises ManifestDamaged for what is not a manifest, SchemaMismatch for a version that is not this one.
    """
    try:
        raw = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return Manifest()
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is not JSON") from error
    except OSError as error:
        raise _damaged(path, f"it cannot be read ({(error.strerror or 'input error').lower()})") from error
    if not isinstance(raw, dict):
        raise _damaged(path, "it is not an object")
    version = raw.get("version")
    if version != MANIFEST_VERSION:
        raise SchemaMismatch(
            f"the store has version {version}, this Cortex reads {MANIFEST_VERSION}.",
            "Install the version of Cortex that wrote it.",
        )
    try:
        return _parsed(raw)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise _damaged(path, "its entries were not written by Cortex") from error


Kind = TypeVar("Kind", LakeFile, Cursor)


def _parsed(raw: Mapping[str, Any]) -> Manifest:
    notes = ManifestNotes.of_texts({name: _text(value) for name, value in raw["stages"].items()})
    # By themselves: versions that know of none read the files' entries all the same.
    digests = raw.get("digests", {})
    files = {name: _lake_file(name, entry, digests.get(name, "")) for name, entry in raw["files"].items()}
    cursors = {file: _of_types(Cursor, entry) for file, entry in raw["cursors"].items()}
    replaced = frozenset(_own_path(name) for name in raw.get("replaced", ()))
    return Manifest(_count(raw["generation"]), files, cursors, notes, replaced)


def _lake_file(name: str, entry: Mapping[str, Any], digest: str) -> LakeFile:
    sessions = tuple(_text(session) for session in entry["sessions"])
    return _of_types(LakeFile, {**entry, "path": _own_path(name), "sessions": sessions, "digest": digest})


def _of_types(kind: type[Kind], entry: Mapping[str, Any]) -> Kind:
    """Return the entry as `kind`. Raises TypeError for a missing or unknown field, or one of another type."""
    parsed = kind(**entry)
    for each in fields(kind):
        value = getattr(parsed, each.name)
        if each.type is int:
            _count(value)
        elif each.type is str or (each.name == "session_id" and value is not None):
            _text(value)
    return parsed


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("not a count")
    return value


def _own_path(name: object) -> str:
    if not isinstance(name, str) or not is_lake_file(name):
        raise ValueError("not a file of the lake")
    return name


def _damaged(path: Path, why: str) -> ManifestDamaged:
    return ManifestDamaged(
        f"{path} is damaged: {why}.",
        "Restore a backup (cortex restore FILE), or rebuild it from the lake's files: "
        "cortex rebuild --adopt-lake",
    )


def write_manifest(path: Path, manifest: Manifest) -> None:
    """
    Replace the manifest at `path`; this is the moment at which a commit happens.

    That of a copy is committed where the store is first. Raises LeaseLost and StoreUnreachable.
    """
    import orjson

    raw = {
        "version": MANIFEST_VERSION,
        "generation": manifest.generation,
        "files": {
            name: {
                "table": f.table,
                "partition": f.partition,
                "rows": f.rows,
                "generation": f.generation,
                "sessions": list(f.sessions),
            }
            for name, f in sorted(manifest.files.items())
        },
        "digests": {name: f.digest for name, f in sorted(manifest.files.items()) if f.digest},
        "cursors": {name: vars(cursor) for name, cursor in sorted(manifest.cursors.items())},
        "stages": manifest.notes.as_texts(),
        "replaced": sorted(manifest.replaced),
    }
    content = orjson.dumps(raw, option=orjson.OPT_INDENT_2)
    home = path.parent.parent
    commit_elsewhere(home, manifest.files, manifest.notes.encrypted_with, content)
    write_stored(home, path, content)


# -- Which projects were read by another extractor than today's: known from the manifest alone.


def outdated(manifest: Manifest, policy: Policy) -> list[str]:
    """Return the projects with events of another extractor or policy than today's, but for those declined."""
    today = extractor_fingerprint(policy)
    notes = manifest.notes
    return [
        name
        for name in manifest.partitions("turns")
        if today not in (notes.extractors.get(name), notes.declined.get(name))
    ]
