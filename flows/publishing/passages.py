"""A project's passages: of its transcripts those that have changed are cut again, and no other."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.reading.transcript_reader import PLACE, in_first_place
from cortex.flows.run.run import Run
from cortex.storage.lake.encryption import ENCRYPTED
from cortex.storage.lake.lake import Change, Lake
from cortex.storage.lake.manifest import Cut, Manifest, ManifestNotes, Output
from cortex.storage.tables.tables import Tables
from cortex.transforms.extract.events import mark_rewound
from cortex.transforms.identity import content_id
from cortex.transforms.memory.merged_projects import in_project
from cortex.transforms.schemas import GLOBAL_SCOPE, PASSAGES, TURNS, values
from cortex.transforms.search import passages_of

# Where more of a project's transcripts have changed all are cut again: a filter that names them is long.
TRANSCRIPTS_MOST = 200


@dataclass(frozen=True)
class Cutting:
    """PASSAGES that were cut now: all of these transcripts, or (None) of the project."""

    rows: pa.Table
    transcripts: frozenset[str] | None = None


def passages_in(run: Run, scope: str, forgotten: Sequence[str], sessions: set[str] | None = None) -> pa.Table:
    """
    Return the PASSAGES of a project, without those that a forgotten memory rested on or a person rewound.

    Of some sessions only what was said: calls are nearly all their bytes.
    """
    if scope == GLOBAL_SCOPE:
        return PASSAGES.empty()
    turns = run.readings.turns(scope, sessions)
    without = [*forgotten, *mark_rewound(turns)]
    if sessions is not None:
        turns = turns.filter(~pc.field("kind").isin(["tool_call", "tool_result"]))
    return _without(passages_of(turns, run.policy), without)


def cut_since(run: Run, scope: str, forgotten: Sequence[str]) -> Cutting:
    """Return what is to be cut of a project since its passages were made; all if that is not known."""
    if scope == GLOBAL_SCOPE:
        return Cutting(PASSAGES.empty())
    noted = run.ledger.notes.outputs.get(Output("embed", scope))
    cut = run.ledger.notes.cuts.get(Output("embed", scope))
    if cut is None or (cut.output, cut.basis) != (noted, _basis(run, scope, forgotten)):
        return Cutting(passages_in(run, scope, forgotten))
    if cut.content != run.store.tables.content_of(scope, "passages"):  # lost, or another than was noted
        return Cutting(passages_in(run, scope, forgotten))
    transcripts = changed_transcripts(run.store.lake, run.readings.parts(scope), cut)
    if transcripts is None or len(transcripts) > TRANSCRIPTS_MOST:
        return Cutting(passages_in(run, scope, forgotten))
    turns = _turns_in(run, scope, transcripts)
    passages = _without(passages_of(turns, run.policy), [*forgotten, *mark_rewound(turns)])
    return Cutting(passages, frozenset(transcripts))


def with_cut(run: Run, scope: str, forgotten: Sequence[str], output: str) -> ManifestNotes:
    """Return the notes once the passages of all turns in the lake are written, as `output`."""
    notes, lake, key = run.ledger.notes, run.store.lake, Output("embed", scope)
    content = None if scope == GLOBAL_SCOPE else run.store.tables.content_of(scope, "passages")
    if content is None:
        return replace(notes, cuts={o: cut for o, cut in notes.cuts.items() if o != key})
    files = _files_until(lake.manifest, run.readings.parts(scope), lake.manifest.generation)
    cut = Cut(output, _basis(run, scope, forgotten), lake.manifest.generation, files, content=content)
    return replace(notes, cuts={**notes.cuts, key: cut})


def changed_transcripts(lake: Lake, parts: Sequence[str], cut: Cut) -> set[str] | None:
    """
    Return the transcripts whose passages may be others now; None if that is not known any more.

    A turn that came again at an earlier place changes the transcript that it stood in as well.
    """
    if _files_until(lake.manifest, parts, cut.generation) != cut.files:
        return None
    new = [lake.read(TURNS, part, ["turn_id"], since=cut.generation) for part in parts]
    names = pa.concat_tables(new)["turn_id"].combine_chunks()
    if not len(names):
        return set(cut.touched)
    known = _places(lake, parts)
    return {*cut.touched, *values(known.filter(pc.is_in(known["turn_id"], names)), "file")}


def kept_cut(run: Run, part: str) -> Callable[[Change], None]:
    """
    Return what a commit that rewrites the turns of a partition notes, so that no old transcript is cut again.

    The files that were new since are gone then: which transcripts they have changed is noted instead.
    """
    scope = run.store.projects.canonical(part)
    parts, key = run.readings.parts(scope), Output("embed", scope)
    cut = run.store.lake.notes.cuts.get(key)
    transcripts = changed_transcripts(run.store.lake, parts, cut) if cut else None

    def note(change: Change) -> None:
        if cut is None or transcripts is None or len(transcripts) > TRANSCRIPTS_MOST:
            return
        until = change.manifest.generation
        kept = cut._replace(
            generation=until,
            files=_files_until(change.manifest, parts, until),
            touched=tuple(sorted(transcripts)),
        )
        change.notes = replace(change.notes, cuts={**change.notes.cuts, key: kept})

    return note


def hashes_in_tables(tables: Tables, scopes: Iterable[str]) -> set[str]:
    """Return the content hashes of the texts, memories and passages, that the tables of `scopes` hold."""
    pairs = [(scope, name) for scope in scopes for name in ("memories", "passages")]
    rows = (tables.open(scope, name).read(["content_hash"]) for scope, name in pairs)
    return {content_hash for part in rows for content_hash in values(part, "content_hash")}


def _turns_in(run: Run, scope: str, transcripts: set[str]) -> pa.Table:
    """Return the TURNS of whole transcripts, each in the one where it stands first."""
    lake, parts = run.store.lake, run.readings.parts(scope)
    known, files = _places(lake, parts), pa.array(sorted(transcripts), pa.string())
    sessions = set(values(known.filter(pc.is_in(known["file"], files)), "session_id"))
    turns = pa.concat_tables([lake.read(TURNS, part, sessions=sessions) for part in parts])
    return in_project(in_first_place(turns.filter(pc.is_in(turns["file"], files)), known), scope)


def _places(lake: Lake, parts: Sequence[str]) -> pa.Table:
    return pa.concat_tables([lake.read(TURNS, part, ["turn_id", "session_id", *PLACE]) for part in parts])


def _files_until(manifest: Manifest, parts: Sequence[str], generation: int) -> str:
    files = [file for part in parts for file in manifest.live(TURNS.name, part)]
    return content_id(*[f.path.removesuffix(ENCRYPTED) for f in files if f.generation <= generation])


def _basis(run: Run, scope: str, forgotten: Sequence[str]) -> str:
    return run.fingerprints.cut(run.readings.parts(scope), forgotten)


def _without(passages: pa.Table, forgotten: Sequence[str]) -> pa.Table:
    if not forgotten:
        return passages
    return passages.filter(pc.invert(pc.is_in(passages["turn_id"], pa.array(list(forgotten), pa.string()))))
